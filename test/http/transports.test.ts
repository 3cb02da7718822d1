/** The two transports and the two bridges, by what an upstream that records gets, and what the client is answered. */
import { test, type Test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { owners } from '../../testing/support/rows.ts'
import { events, INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'

const BASE = '/api/copilotkit'
const SINGLE = {
  ...INFO,
  singleRoute: { resourceOperations: true, threadEndpoints: { list: true } },
  threadEndpoints: { list: false },
}

/** Answers a gateway's questions as a single-route runtime does. */
const asSingle: Answering = (request, response) =>
  (request.method === 'POST' ? json(SINGLE) : json({ error: 'Method not allowed' }, 405, { allow: 'POST' }))(request, response)

/** A gateway before an upstream that is single-route; it answers everything of callers alike. */
async function single(t: Test, answering: Answering = json({}), config: object = {}): Promise<GatedUpstream> {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  upstream.answerQuestions(asSingle)
  const gate = await gateBefore(t, upstream.url, { config: { ...config, upstream: { transport: 'single-route' } } })
  return { upstream, ...gate }
}

/** What arrived last: method, target and the JSON of its body. */
function last({ upstream }: GatedUpstream): unknown {
  const { method, target, json } = upstream.requests.at(-1)!
  return [method, target, json]
}

void test('before a single-route upstream a path becomes an envelope on exactly the base path', async (t) => {
  const gate = await single(t)
  const { base, alice } = gate
  const run = runInput('t1')
  for (const [method, path, body, envelope] of [
    ['GET', '/info', undefined, { method: 'info', params: {} }],
    ['POST', '/agent/default/run', run, { method: 'agent/run', params: { agentId: 'default' }, body: run }],
    ['POST', '/agent/default/connect', run, { method: 'agent/connect', params: { agentId: 'default' }, body: run }],
    ['POST', '/agent/default/stop/t1', undefined, { method: 'agent/stop', params: { agentId: 'default', threadId: 't1' } }],
    [
      'GET',
      '/threads/t1/messages',
      undefined,
      { method: 'resource/request', params: { path: '/threads/t1/messages', httpMethod: 'GET' } },
    ],
    [
      'PATCH',
      '/threads/t1',
      { name: 'n', x: 1 },
      { method: 'resource/request', params: { path: '/threads/t1', httpMethod: 'PATCH' }, body: { name: 'n' } },
    ],
    ['DELETE', '/threads/t1', undefined, { method: 'resource/request', params: { path: '/threads/t1', httpMethod: 'DELETE' } }],
  ] as const) {
    const answer = await call(`${base}${path}`, { method, token: alice, ...(body === undefined ? {} : { body }) })
    t.equal(answer.status, 200, path)
    t.strictSame(last(gate), ['POST', BASE, envelope], path)
    t.same(gate.upstream.requests.at(-1)!.headers.get('content-type'), ['application/json'])
  }
})

void test('an envelope is written anew for a single-route upstream: nothing of it that was not read arrives', async (t) => {
  const gate = await single(t)
  const run = runInput('t1')
  const sent = {
    method: 'agent/run',
    params: { agentId: 'default', threadId: 'foreign' },
    body: { ...run, extra: 1 },
    threadId: 'foreign',
  }
  t.equal((await call(gate.base, { token: gate.alice, body: sent })).status, 200)
  t.strictSame(last(gate), ['POST', BASE, { method: 'agent/run', params: { agentId: 'default' }, body: run }])
  t.same(owners(gate.gateway.folder), ['t1=corp:alice'])
})

void test('before a multi-route upstream an envelope becomes the route that it asks for', async (t) => {
  const gate = await gated(t)
  const run = runInput('t1')
  for (const [envelope, expected] of [
    [{ method: 'agent/run', params: { agentId: 'default' }, body: run }, ['POST', `${BASE}/agent/default/run`, run]],
    [
      { method: 'agent/stop', params: { agentId: 'default', threadId: 't1' } },
      ['POST', `${BASE}/agent/default/stop/t1`, undefined],
    ],
    [
      { method: 'resource/request', params: { path: '/threads/t1', httpMethod: 'PATCH' }, body: { name: 'n' } },
      ['PATCH', `${BASE}/threads/t1`, { name: 'n' }],
    ],
    [
      { method: 'resource/request', params: { path: '/threads/t1/state', httpMethod: 'GET' } },
      ['GET', `${BASE}/threads/t1/state`, undefined],
    ],
  ] as const) {
    t.equal((await call(gate.base, { token: gate.alice, body: envelope })).status, 200)
    t.strictSame(last(gate), expected)
  }
})

void test('/info says to each client what works for it', async (t) => {
  const multi = await gated(t, json({ ...INFO, threadEndpoints: { list: true } }))
  t.strictSame((await call(`${multi.base}/info`, { token: multi.alice })).json, { ...INFO, threadEndpoints: { list: true } })
  t.match((await call(multi.base, { token: multi.alice, body: { method: 'info' } })).json, SINGLE)
  const gate = await single(t, json(SINGLE))
  t.strictSame((await call(gate.base, { token: gate.alice, body: { method: 'info' } })).json, SINGLE)
  const { threadEndpoints, ...info } = (await call(`${gate.base}/info`, { token: gate.alice })).json as Record<string, unknown>
  t.strictSame([threadEndpoints, info], [{ list: true }, INFO], 'nothing of singleRoute is left')
})

void test('an /info that can’t be read is 502 over a bridge, and what is no 200 passes as it is', async (t) => {
  const gate = await single(t)
  for (const [answering, status] of [
    [json([1]), 502],
    [json(SINGLE, 200, { 'content-encoding': 'gzip' }), 502],
    [json(SINGLE, 200, { 'content-type': 'text/plain' }), 502],
    [(_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{'), 502],
    [json({ error: 'theirs' }, 500), 500],
    [json({ error: 'theirs' }, 404), 404],
  ] as readonly (readonly [Answering, number])[]) {
    gate.upstream.answer(answering)
    const answer = await call(`${gate.base}/info`, { token: gate.alice })
    t.equal(answer.status, status)
    t.equal(codeOf(answer), status === 502 ? 'upstream-unusable' : undefined)
  }
})

void test('what an upstream of this kind doesn’t have is 404, after the credential and before the policy', async (t) => {
  const gate = await single(t)
  t.equal(codeOf(await call(`${gate.base}/cpk-debug-events`)), 'credential-missing')
  t.equal(codeOf(await call(`${gate.base}/cpk-debug-events`, { token: gate.alice })), 'not-found')
  t.ok(gate.gateway.lines.some((line) => line['reason'] === 'upstream-lacks-route'))
  t.same(gate.upstream.requests, [])
})

void test('without the tunnel an upstream has no threads to read, and verify can’t tell', async (t) => {
  const old = json({ version: '1.54.1', agents: {}, mode: 'sse' })
  const question: Answering = (request, response) =>
    request.method === 'POST' ? old(request, response) : json({}, 404)(request, response)
  for (const unknownThread of ['claim', 'verify'] as const) {
    const upstream = await startUpstream(events())
    t.teardown(() => upstream.close())
    upstream.answerQuestions(question)
    const gate = await gateBefore(t, upstream.url, { config: { upstream: { transport: 'auto' }, ownership: { unknownThread } } })
    if (unknownThread === 'claim') await gate.gateway.ready()
    else await until(() => gate.gateway.readiness.pending().has('unknownThread'))
    const run = await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t1') })
    t.equal(run.status, unknownThread === 'claim' ? 200 : 403)
    t.equal(codeOf(await call(`${gate.base}/threads`, { token: gate.alice })), 'not-found')
    t.equal(codeOf(await call(`${gate.base}/threads/t1/messages`, { token: gate.alice })), 'not-found')
  }
})

void test('a log line names once, for each kind of client, what would make the bridge unnecessary', async (t) => {
  const bridges = (gate: GatedUpstream): unknown[] =>
    gate.gateway.lines.filter((line) => String(line['msg']).includes('useSingleEndpoint')).map(({ from, to, msg }) => [from, to, /useSingleEndpoint=\{\w+\}/.exec(String(msg))?.[0]]) // oxfmt-ignore
  const multi = await gated(t)
  const before = await single(t)
  for (const gate of [multi, before]) {
    for (let times = 0; times < 3; times += 1) {
      await call(gate.base, { token: gate.alice, body: { method: 'info' } })
      await call(`${gate.base}/info`, { token: gate.alice })
    }
  }
  t.same(bridges(multi), [['single-route', 'multi-route', 'useSingleEndpoint={false}']])
  t.same(bridges(before), [['multi-route', 'single-route', 'useSingleEndpoint={true}']])
  const requests = multi.gateway.lines
    .filter((line) => line['msg'] === 'request')
    .map((line) => [line['route'], line['transport']])
  t.same(requests.slice(0, 2), [['info', 'single-route'], ['info', undefined]]) // oxfmt-ignore
})

void test('who is refused makes no bridge', async (t) => {
  const gate = await gated(t)
  await call(gate.base, { body: { method: 'info' } })
  await call(gate.base, { token: gate.alice, body: { method: 'inspector/metadata' } })
  t.notOk(gate.gateway.lines.some((line) => String(line['msg']).includes('useSingleEndpoint')))
})

void test('the limits are those of what is asked, not of the envelope', async (t) => {
  const limits = { limits: { body: '1KiB', runBody: '4KiB' } }
  for (const gate of [await gated(t, undefined, { config: limits }), await single(t, json({}), limits)]) {
    const large = 'x'.repeat(2048)
    const run = { method: 'agent/run', params: { agentId: 'default' }, body: runInput('t1', large) }
    t.equal((await call(gate.base, { token: gate.alice, body: run })).status, 200)
    const rename = { method: 'resource/request', params: { path: '/threads/t1', httpMethod: 'PATCH' }, body: { name: large } }
    t.equal((await call(gate.base, { token: gate.alice, body: rename })).status, 413)
    t.equal((await call(gate.base, { token: gate.alice, body: { ...run, body: runInput('t1', large + large) } })).status, 413)
    t.equal(gate.upstream.requests.length, 1)
  }
})

void test('what the policy refuses without a thread is refused before the body of it is looked at', async (t) => {
  const gate = await gated(t)
  const envelope = { method: 'resource/request', params: { path: '/memories', httpMethod: 'POST' }, body: 'nonsense' }
  t.same(codeOf(await call(gate.base, { token: gate.alice, body: envelope })), 'not-allowed')
})

void test('connect with an unknown thread is an empty stream in both transports, and asks nobody', async (t) => {
  for (const gate of [await gated(t), await single(t)]) {
    const envelope = { method: 'agent/connect', params: { agentId: 'default' }, body: runInput('t1') }
    for (const answer of [
      await call(gate.base, { token: gate.alice, body: envelope }),
      await call(`${gate.base}/agent/default/connect`, { token: gate.alice, body: runInput('t1') }),
    ]) {
      t.same([answer.status, answer.headers.get('content-type'), answer.text], [200, 'text/event-stream', ''])
    }
    t.same(gate.upstream.requests, [])
    t.same(owners(gate.gateway.folder), [])
  }
})

void test('a run that the upstream refuses leaves no row, in an envelope as well', async (t) => {
  const gate = await single(t, json({ error: 'no' }, 404))
  const envelope = { method: 'agent/run', params: { agentId: 'default' }, body: runInput('t1') }
  t.equal((await call(gate.base, { token: gate.alice, body: envelope })).status, 404)
  t.same(owners(gate.gateway.folder), [])
})

void test('whoever may bring nothing large is not read beyond what is small', async (t) => {
  const config = { authentication: { mode: 'optional' }, limits: { body: '1KiB', runBody: '4KiB' } }
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const authentication = { ...signer.authentication, mode: 'optional' }
  const gate = await gated(t, undefined, { signer, config: { ...config, authentication } })
  const run = { method: 'agent/run', params: { agentId: 'default' }, body: runInput('t1', 'x'.repeat(2048)) }
  t.same(codeOf(await call(gate.base, { body: run })), 'body-too-large', 'anonymous callers may not run')
  t.equal((await call(gate.base, { token: gate.alice, body: run })).status, 200)
})

void test('an /info that nests deeper than can be written is 502', async (t) => {
  const depth = 20_000
  const text = `{"version":"1","agents":{},"x":${'['.repeat(depth)}${']'.repeat(depth)}}`
  const gate = await single(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(text),
  )
  t.equal(codeOf(await call(`${gate.base}/info`, { token: gate.alice })), 'upstream-unusable')
})
