/**
 * The runtime's other transport: one POST with `{"method", "params", "body"}`, taken on any path below the base, with a
 * generic tunnel to every thread (`resource/request`) and a body that may be JSON in a string (runtime-behaviour.md, "Single-route transport"). An envelope is
 * what it says, wherever it goes; it is read on the base path alone, and `method` and `params` at the top of any other body
 * reach nothing.
 */
import { call, runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachUpstream } from '../../testing/support/pairs.ts'
import { sampleOf } from '../../testing/support/sample.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { BASE, BODY_TARGETS, codeIn, run } from './thread-routes.ts'

const tunnel = (path: string, httpMethod = 'GET', body?: unknown) => ({
  method: 'resource/request',
  params: { path, httpMethod },
  ...(body === undefined ? {} : { body }),
})

const agent = (method: string, body: unknown, more: object = {}) => ({ method, params: { agentId: 'default', ...more }, body })

const FOREIGN = [403, 'not-owner'] as const
const HIDDEN = [404, 'not-found'] as const
const NOT_ALLOWED = [403, 'not-allowed'] as const
const NONE = [404, 'not-found'] as const
const TARGET = [400, 'target-malformed'] as const
const BODY = [400, 'body-malformed'] as const

/** Everything that an envelope can ask for, aimed at the thread `foreign`, and what alice gets. */
const ENVELOPES: Record<string, readonly [envelope: object, answer: readonly [number, string]]> = {
  'agent/run': [agent('agent/run', runInput('foreign')), FOREIGN],
  'agent/connect': [agent('agent/connect', runInput('foreign')), FOREIGN],
  'agent/suggest': [agent('agent/suggest', runInput('foreign')), FOREIGN],
  'agent/run with an own thread in its params': [agent('agent/run', runInput('foreign'), { threadId: 'mine' }), FOREIGN],
  'agent/run with an own thread beside it': [{ ...agent('agent/run', runInput('foreign')), ids: { threadId: 'mine' } }, FOREIGN],
  'agent/run with its body in a string': [agent('agent/run', JSON.stringify(runInput('foreign'))), BODY],
  'agent/run with its body in two strings': [agent('agent/run', JSON.stringify(JSON.stringify(runInput('foreign')))), BODY],
  'agent/run with an own body in a string': [agent('agent/run', JSON.stringify(runInput('mine'))), BODY],
  'agent/run with its body in a list': [agent('agent/run', [runInput('foreign')]), BODY],
  'agent/run with an envelope for a body': [
    agent('agent/run', agent('agent/run', runInput('foreign'))),
    [400, 'thread-id-invalid'],
  ],
  'agent/run without a body': [{ method: 'agent/run', params: { agentId: 'default' } }, BODY],
  'agent/run without params': [{ method: 'agent/run', body: runInput('mine') }, [400, 'agent-id-invalid']],
  'agent/run with params in a string': [
    { method: 'agent/run', params: '{"agentId":"default"}', body: runInput('mine') },
    [400, 'agent-id-invalid'],
  ],
  'agent/run of an agent that is a path': [
    agent('agent/run', runInput('mine'), { agentId: 'x/../../threads' }),
    [400, 'agent-id-invalid'],
  ],
  'agent/stop': [agent('agent/stop', {}, { threadId: 'foreign' }), FOREIGN],
  'agent/stop with an own thread in its body': [agent('agent/stop', { threadId: 'mine' }, { threadId: 'foreign' }), FOREIGN],
  'agent/stop of two threads': [agent('agent/stop', {}, { threadId: ['mine', 'foreign'] }), [400, 'thread-id-invalid']],
  'inspector/metadata': [{ method: 'inspector/metadata' }, NOT_ALLOWED],
  'inspector/learning': [{ method: 'inspector/learning', params: { agentId: 'default' } }, NOT_ALLOWED],
  'the debug feed': [{ method: 'cpk-debug-events' }, NONE],
  'the tunnel to messages': [tunnel('/threads/foreign/messages'), FOREIGN],
  'the tunnel to events': [tunnel('/threads/foreign/events'), HIDDEN],
  'the tunnel behind something': [tunnel('/junk/threads/foreign/state'), NONE],
  'the tunnel through dot segments': [tunnel('/threads/mine/../foreign/messages'), TARGET],
  'the tunnel through encoded dot segments': [tunnel('/threads/mine/%2e%2e/foreign/messages'), TARGET],
  'the tunnel through backslashes': [tunnel('/threads\\foreign\\messages'), TARGET],
  'the tunnel to another host': [tunnel('//evil/threads/foreign/messages'), TARGET],
  'the tunnel to another host by a backslash': [tunnel('/\\evil/threads/foreign/messages'), TARGET],
  'the tunnel to an address': [tunnel('http://copilotkit.resource/threads/foreign/messages'), TARGET],
  'the tunnel without a slash': [tunnel('threads/foreign/messages'), TARGET],
  'the tunnel with a fragment': [tunnel('/threads/foreign/messages#/threads/mine/messages'), TARGET],
  'the tunnel with a slash at its end': [tunnel('/threads/foreign/messages/'), TARGET],
  'the tunnel with an encoded slash': [tunnel('/threads/mine%2F..%2Fforeign/messages'), TARGET],
  'the tunnel with a tab': [tunnel('/threads/fore\tign/messages'), TARGET],
  'the tunnel with letters that stand encoded': [tunnel('/threads/%66oreign/messages'), TARGET],
  'the tunnel with a query twice': [tunnel('/threads?limit=1&limit=2'), TARGET],
  'the tunnel with no path': [{ method: 'resource/request', params: { httpMethod: 'GET' } }, TARGET],
  'the tunnel with a path that is a list': [
    { method: 'resource/request', params: { path: ['/threads'], httpMethod: 'GET' } },
    TARGET,
  ],
  'the tunnel to nothing': [tunnel('/'), NONE],
  'the tunnel to agents': [tunnel('/agent/default/run', 'POST', runInput('mine')), NONE],
  'the tunnel to the debug feed': [tunnel('/cpk-debug-events'), NONE],
  'the tunnel to info': [tunnel('/info'), NONE],
  'the tunnel to transcribe': [tunnel('/transcribe', 'POST', { audio: 'AAAA' }), NONE],
  'the tunnel to the inspector': [tunnel('/inspector-metadata'), NONE],
  'the tunnel to clear': [tunnel('/threads/clear', 'POST', {}), NOT_ALLOWED],
  'the tunnel to clear with a body that is none': [tunnel('/threads/clear', 'POST', '{}'), NOT_ALLOWED],
  'the tunnel to memories with a body that is none': [tunnel('/memories', 'POST', [{ content: 'x' }]), NOT_ALLOWED],
  'the tunnel to delete': [tunnel('/threads/foreign', 'DELETE'), FOREIGN],
  'the tunnel with no method': [{ method: 'resource/request', params: { path: '/threads' } }, [405, 'method-not-allowed']],
  'the tunnel with another method': [tunnel('/threads/mine/messages', 'POST'), [405, 'method-not-allowed']],
  'the tunnel with a method in other letters': [tunnel('/threads/mine', 'delete'), [405, 'method-not-allowed']],
  'the tunnel with a blank in its method': [tunnel('/threads/mine', 'DELETE '), [405, 'method-not-allowed']],
  'the tunnel with two methods': [tunnel('/threads/mine', ['PATCH', 'DELETE'] as never), [405, 'method-not-allowed']],
  'the tunnel to annotate': [tunnel('/annotate', 'POST', { threadId: 'foreign', type: 'x', payload: {} }), FOREIGN],
  'the tunnel to annotate with its body in a string': [
    tunnel('/annotate', 'POST', JSON.stringify({ threadId: 'foreign', type: 'x', payload: {} })),
    BODY,
  ],
  'the tunnel to memories': [tunnel('/memories', 'GET'), NOT_ALLOWED],
  'a tunnel in a tunnel': [tunnel('/', 'POST', tunnel('/threads/foreign/messages')), NONE],
  'a method in other letters': [{ method: 'INFO' }, NONE],
  'a method with a space': [{ method: ' info' }, NONE],
  'a method that every object has': [{ method: 'constructor' }, NONE],
  'info in a list': [{ method: ['info'] }, NONE],
  'info as an object': [{ method: { toString: 'info' } }, NONE],
  'no method': [{ params: {}, body: {} }, NONE],
}

/** A gateway where `mine` is alice's and `foreign` is bob's. */
async function owned(t: Parameters<typeof gated>[0], pair: Pair): Promise<GatedUpstream & { readonly before: number }> {
  const gate = await gated(t, events(), { pair })
  t.equal(await run(gate.gateway, gate.alice, 'mine'), 200)
  t.equal(await run(gate.gateway, gate.bob, 'foreign'), 200)
  return { ...gate, before: gate.upstream.beginnings() }
}

void testEachUpstream('an envelope gets what it asks for, and of another’s thread nothing', async (t, pair) => {
  const { gateway, alice, upstream, before } = await owned(t, pair)
  for (const [name, [envelope, expected]] of Object.entries(ENVELOPES)) {
    const answer = await gateway.ask({ target: BASE, token: alice, body: JSON.stringify(envelope) })
    t.same([answer.status, codeIn(answer)], expected, name)
    const nobody = await gateway.ask({ target: BASE, body: JSON.stringify(envelope) })
    t.same([nobody.status, codeIn(nobody)], [401, 'credential-missing'], name)
  }
  t.equal(upstream.beginnings(), before)
})

void testEachUpstream('the question for /info goes on as GET /info: nothing of its envelope arrives', async (t, pair) => {
  const { gateway, alice, upstream } = await owned(t, pair)
  upstream.answer(json({ version: '1' }))
  for (const more of [
    {},
    { params: { path: '/threads/foreign/messages', agentId: 'x' } },
    { body: runInput('foreign') },
    { body: JSON.stringify(runInput('foreign')), params: { threadId: 'foreign' } },
    { threadId: 'foreign', httpMethod: 'DELETE' },
  ]) {
    for (const target of [BASE, `${BASE}?threadId=foreign`]) {
      t.equal((await gateway.ask({ target, token: alice, body: JSON.stringify({ method: 'info', ...more }) })).status, 200)
      const arrived = upstream.requests.at(-1)!
      t.same([arrived.method, arrived.target, arrived.body.length], ['GET', `${BASE}/info`, 0])
    }
  }
})

void testEachUpstream('an envelope that two parsers read differently is refused', async (t, pair) => {
  const { gateway, alice, upstream, before } = await owned(t, pair)
  for (const body of [
    '{"method":"info","method":"agent/run"}',
    '{"method":"agent/run","method":"info"}',
    '{"method":"info","\\u006dethod":"agent/run"}',
    '{"method":"info","__proto__":{"method":"agent/run"}}',
    '\ufeff{"method":"info"}',
    '{"method":"info"}{"method":"agent/run"}',
    '[{"method":"info"}]',
    '"info"',
    '',
  ]) {
    const answer = await gateway.ask({ target: BASE, token: alice, body })
    t.same([answer.status, codeIn(answer)], body === '' ? NONE : BODY, body)
  }
  for (const type of ['text/plain', 'application/json; charset=utf-16', 'multipart/form-data; boundary=b']) {
    const body = '{"method":"info"}'
    const framing = [`Content-Type: ${type}`, `Content-Length: ${body.length}`]
    t.equal((await gateway.ask({ target: BASE, token: alice, body, framing })).status, 404, type)
  }
  t.equal(upstream.beginnings(), before)
})

void testEachUpstream('on every other path an envelope is what the path says, or nothing', async (t, pair) => {
  const { gateway, alice, upstream, before } = await owned(t, pair)
  const paths: Record<string, number> = {
    info: 405,
    threads: 405,
    'threads/clear': 403,
    'threads/subscribe': 403,
    'threads/foreign/messages': 405,
    'threads/foreign/archive': 403,
    'agent/default/stop/foreign': 403,
    'agent/default': 404,
    copilotkit: 404,
    api: 404,
    'resource/request': 404,
    'agent/run': 404,
  }
  const addressed = [
    ...Object.entries(paths).map(([path, status]) => ({ target: `${BASE}/${path}`, expected: [status] })),
    // The base with a slash.
    { target: `${BASE}/`, expected: [400] },
    ...['/', '/api', '/other/api/copilotkit', '/api/copilotkit-2'].map((target) => ({ target, expected: [404] })),
    ...BODY_TARGETS.map(({ target }) => ({ target, expected: [400, 'thread-id-invalid'] })),
  ]
  for (const [at, [name, [envelope]]] of Object.entries(ENVELOPES).entries()) {
    const body = JSON.stringify(envelope)
    for (const { target, expected } of sampleOf(addressed, 4, at)) {
      const answer = await gateway.ask({ target, token: alice, body })
      t.same([answer.status, codeIn(answer)].slice(0, expected.length), expected, `${name} at ${target}`)
    }
  }
  t.equal(upstream.beginnings(), before)
})

void testEachUpstream('an envelope beside an own thread is dropped from every body', async (t, pair) => {
  const { gateway, alice, upstream } = await owned(t, pair)
  const bodies = [
    ...BODY_TARGETS.map(({ target, body }) => ['POST', target, body('mine')] as const),
    ['POST', `${BASE}/agent/default/stop/mine`, { runId: 'r' }] as const,
    ['PATCH', `${BASE}/threads/mine`, { name: 'n' }] as const,
    ['POST', `${BASE}/threads/mine/archive`, { agentId: 'default' }] as const,
    ['POST', `${BASE}/transcribe`, { audio: 'AAAA' }] as const,
    ['DELETE', `${BASE}/threads/mine`, { agentId: 'default' }] as const,
  ]
  for (const [at, [method, target, own]] of bodies.entries()) {
    const all = Object.entries(ENVELOPES)
    // A deleted thread takes part no longer.
    for (const [name, [envelope]] of method === 'DELETE' ? all.slice(0, 1) : sampleOf(all, 4, at)) {
      const body = JSON.stringify({ ...envelope, httpMethod: 'GET', ...own })
      t.equal((await gateway.ask({ method, target, token: alice, body })).status, 200, `${name} at ${target}`)
      const arrived = upstream.requests.at(-1)!
      t.same([arrived.method, arrived.target], [method, target])
      t.same(arrived.json, own, `${name} at ${target}`)
    }
  }
})

void testEachUpstream('dropped keys are counted', async (t, pair) => {
  const { gateway, alice } = await owned(t, pair)
  const body = JSON.stringify({ ...ENVELOPES['agent/run']![0], ...runInput('mine') })
  await gateway.ask({ target: `${BASE}/agent/default/run`, token: alice, body })
  t.match((await call(`${gateway.healthUrl}/metrics`)).text, 'threadwarden_dropped_total{kind="body-key"} 3')
})
