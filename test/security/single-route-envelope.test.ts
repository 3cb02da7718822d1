/**
 * The runtime's other transport: one POST with `{"method", "params", "body"}`, taken on any path below the base, with a
 * generic tunnel to every thread (`resource/request`) and a body that may be JSON in a string (contract §1.3). Before a
 * runtime of that kind the path says one thing and the body does another. `method` and `params` at the top of a body reach
 * nothing, on no path; the one envelope that is answered is the question for /info, and it goes on as GET /info.
 */
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { gated, type GatedUpstream } from '../support/gated.ts'
import { ask } from '../support/raw.ts'
import { events, json } from '../support/upstream.ts'
import { BASE, BODY_TARGETS, codeIn, run } from './thread-routes.ts'

const tunnel = (path: string, httpMethod = 'GET', body?: unknown) => ({
  method: 'resource/request',
  params: { path, httpMethod },
  ...(body === undefined ? {} : { body }),
})

/** Everything that the envelope can ask for, aimed at the thread `foreign`. */
const ENVELOPES: Record<string, object> = {
  'agent/run': { method: 'agent/run', params: { agentId: 'default' }, body: runInput('foreign') },
  'agent/connect': { method: 'agent/connect', params: { agentId: 'default' }, body: runInput('foreign') },
  'agent/suggest': { method: 'agent/suggest', params: { agentId: 'default' }, body: runInput('foreign') },
  'agent/run with its body in a string': {
    method: 'agent/run',
    params: { agentId: 'default' },
    body: JSON.stringify(runInput('foreign')),
  },
  'agent/stop': { method: 'agent/stop', params: { agentId: 'default', threadId: 'foreign' }, body: {} },
  transcribe: { method: 'transcribe', body: { audio: 'AAAA', mimeType: 'audio/webm' } },
  'inspector/metadata': { method: 'inspector/metadata' },
  'inspector/learning': { method: 'inspector/learning', params: { agentId: 'default' } },
  'the tunnel to messages': tunnel('/threads/foreign/messages'),
  'the tunnel to state': tunnel('/junk/threads/foreign/state'),
  'the tunnel through dot segments': tunnel('/threads/mine/../foreign/events'),
  'the tunnel to the list': tunnel('/threads?limit=100'),
  'the tunnel to clear': tunnel('/threads/clear', 'POST', {}),
  'the tunnel to delete': tunnel('/threads/foreign', 'DELETE'),
  'the tunnel to annotate': tunnel('/annotate', 'POST', { threadId: 'foreign', type: 'x', payload: {} }),
  'the tunnel to memories': tunnel('/memories', 'GET'),
  'a method in other letters': { method: 'INFO' },
  'a method with a space': { method: ' info' },
  'info in a list': { method: ['info'] },
  'info as an object': { method: { toString: 'info' } },
  'no method': { params: {}, body: {} },
}

/** A gateway where `mine` is alice's and `foreign` is bob's. */
async function owned(t: Parameters<typeof gated>[0]): Promise<GatedUpstream & { readonly before: number }> {
  const gate = await gated(t, events())
  t.equal(await run(gate.gateway.url, gate.alice, 'mine'), 200)
  t.equal(await run(gate.gateway.url, gate.bob, 'foreign'), 200)
  return { ...gate, before: gate.upstream.beginnings() }
}

void test('no envelope but the question for /info is answered on the base path, whoever asks', async (t) => {
  const { gateway, alice, olga, upstream, before } = await owned(t)
  for (const [name, envelope] of Object.entries(ENVELOPES)) {
    for (const token of [alice, olga]) {
      const answer = await ask(gateway.url, { target: BASE, token, body: JSON.stringify(envelope) })
      t.same([answer.status, codeIn(answer)], [404, 'not-found'], name)
    }
    const nobody = await ask(gateway.url, { target: BASE, body: JSON.stringify(envelope) })
    t.same([nobody.status, codeIn(nobody)], [401, 'credential-missing'], name)
  }
  t.equal(upstream.beginnings(), before)
})

void test('the question for /info goes on as GET /info: nothing of its envelope arrives', async (t) => {
  const { gateway, alice, upstream } = await owned(t)
  upstream.answer(json({ version: '1' }))
  for (const more of [
    {},
    { params: { path: '/threads/foreign/messages', agentId: 'x' } },
    { body: runInput('foreign') },
    { body: JSON.stringify(runInput('foreign')), params: { threadId: 'foreign' } },
    { threadId: 'foreign', httpMethod: 'DELETE' },
  ]) {
    for (const target of [BASE, `${BASE}?threadId=foreign`]) {
      t.equal((await ask(gateway.url, { target, token: alice, body: JSON.stringify({ method: 'info', ...more }) })).status, 200)
      const arrived = upstream.requests.at(-1)!
      t.same([arrived.method, arrived.target, arrived.body.length], ['GET', `${BASE}/info`, 0])
    }
  }
})

void test('an envelope that two parsers read differently is no question for /info', async (t) => {
  const { gateway, alice, upstream, before } = await owned(t)
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
    const answer = await ask(gateway.url, { target: BASE, token: alice, body })
    t.same([answer.status, codeIn(answer)], [404, 'not-found'], body)
  }
  for (const type of ['text/plain', 'application/json; charset=utf-16', 'multipart/form-data; boundary=b']) {
    const body = '{"method":"info"}'
    const framing = [`Content-Type: ${type}`, `Content-Length: ${body.length}`]
    t.equal((await ask(gateway.url, { target: BASE, token: alice, body, framing })).status, 404, type)
  }
  t.equal(upstream.beginnings(), before)
})

void test('on every other path an envelope is what the path says, or nothing', async (t) => {
  const { gateway, alice, upstream, before } = await owned(t)
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
  for (const [name, envelope] of Object.entries(ENVELOPES)) {
    const body = JSON.stringify(envelope)
    for (const [path, status] of Object.entries(paths)) {
      t.equal((await ask(gateway.url, { target: `${BASE}/${path}`, token: alice, body })).status, status, `${name} at ${path}`)
    }
    for (const target of ['/', '/api', '/other/api/copilotkit', '/api/copilotkit-2']) {
      t.equal((await ask(gateway.url, { target, token: alice, body })).status, 404, `${name} at ${target}`)
    }
    for (const { target } of BODY_TARGETS) {
      const answer = await ask(gateway.url, { target, token: alice, body })
      t.same([answer.status, codeIn(answer)], [400, 'thread-id-invalid'], `${name} at ${target}`)
    }
  }
  t.equal(upstream.beginnings(), before)
})

void test('an envelope beside an own thread is dropped from every body', async (t) => {
  const { gateway, alice, upstream } = await owned(t)
  const bodies = [
    ...BODY_TARGETS.map(({ target, body }) => ['POST', target, body('mine')] as const),
    ['POST', `${BASE}/agent/default/stop/mine`, { runId: 'r' }] as const,
    ['PATCH', `${BASE}/threads/mine`, { name: 'n' }] as const,
    ['POST', `${BASE}/threads/mine/archive`, { agentId: 'default' }] as const,
    ['POST', `${BASE}/transcribe`, { audio: 'AAAA' }] as const,
    ['DELETE', `${BASE}/threads/mine`, { agentId: 'default' }] as const,
  ]
  for (const [method, target, own] of bodies) {
    for (const [name, envelope] of Object.entries(ENVELOPES)) {
      // A deleted thread takes part no longer.
      if (method === 'DELETE' && name !== 'agent/run') continue
      const body = JSON.stringify({ ...envelope, httpMethod: 'GET', ...own })
      t.equal((await ask(gateway.url, { method, target, token: alice, body })).status, 200, `${name} at ${target}`)
      const arrived = upstream.requests.at(-1)!
      t.same([arrived.method, arrived.target], [method, target])
      t.same(arrived.json, own, `${name} at ${target}`)
    }
  }
})

void test('dropped keys are counted', async (t) => {
  const { gateway, alice } = await owned(t)
  const body = JSON.stringify({ ...ENVELOPES['agent/run'], ...runInput('mine') })
  await ask(gateway.url, { target: `${BASE}/agent/default/run`, token: alice, body })
  t.match((await call(`${gateway.healthUrl}/metrics`)).text, 'threadwarden_dropped_total{kind="body-key"} 3')
})
