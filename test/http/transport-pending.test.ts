/** Until the upstream has shown which transport it speaks nothing is forwarded, unless the configuration names it. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, NOWHERE, type Gated } from '../../testing/support/gated.ts'
import { owners } from '../../testing/support/rows.ts'
import { events, INFO, json, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const AUTO = { config: { upstream: { transport: 'auto' } } }

/** A gateway whose upstream answers /info like this, and has been asked. */
async function asked(t: Parameters<typeof gateBefore>[0], info: Answering): Promise<Gated & { readonly upstream: Upstream }> {
  const upstream = await startUpstream(events())
  t.teardown(() => upstream.close())
  upstream.answerQuestions(info)
  const gate = await gateBefore(t, upstream.url, AUTO)
  await until(() => /GET .*\/info/.test(gate.gateway.readiness.pending().get('upstream') ?? ''))
  return { ...gate, upstream }
}

const UNFIT: Record<string, Answering> = {
  '404': json({ error: 'no' }, 404),
  '405': json({ error: 'no' }, 405),
  '401': json({ error: 'no' }, 401),
  '403': json({ error: 'no' }, 403),
  '400': json({ error: 'no' }, 400),
  '500': json({ error: 'no' }, 500),
  'a page': (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>'),
  'a redirect': json({}, 302, { location: '/elsewhere' }),
  'no content': (_request, response) => void response.writeHead(204).end(),
  'another JSON': json({ status: 'ok' }),
  'no agents': json({ version: '1.75.0' }),
  'no version': json({ agents: {} }),
  'agents that are a list': json({ version: '1.75.0', agents: [] }),
  'a version that is a number': json({ version: 1, agents: {} }),
  'a right one with another status': json(INFO, 201),
  'half of one': (_request, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(INFO).slice(0, -1)),
}

void test('whatever else it answers: 503 not-ready, nothing arrives and nothing is claimed', async (t) => {
  for (const [name, info] of Object.entries(UNFIT)) {
    const { base, gateway, alice, upstream } = await asked(t, info)
    for (const answer of [
      await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') }),
      await call(`${base}/info`, { token: alice }),
      await call(base, { token: alice, body: { method: 'info' } }),
    ]) {
      t.equal(answer.status, 503, name)
      t.equal(codeOf(answer), 'not-ready', name)
      t.ok(answer.headers.has('retry-after'))
    }
    t.equal((await call(`${gateway.healthUrl}/readyz`)).status, 503, name)
    t.same(upstream.requests, [], name)
    t.same(owners(gateway.folder), [])
  }
})

void test('what is pending says what to do', async (t) => {
  for (const [status, advice] of [
    [401, /name upstream\.transport, or give upstream\.headers a credential/],
    [403, /name upstream\.transport/],
    [404, /GET .*\/info answered 404, POST .* answered 404: neither .* upstream\.basePath/],
    [405, /neither a multi-route nor a single-route runtime/],
  ] as const) {
    const { gateway } = await asked(t, json({}, status))
    const { pending } = (await call(`${gateway.healthUrl}/readyz`)).json as { pending: Record<string, string> }
    t.match(pending['upstream'], advice)
  }
})

void test('it goes on asking, and is ready when the answer is right', async (t) => {
  const { base, gateway, alice, upstream } = await asked(t, json({ error: 'no' }, 404))
  t.equal((await call(`${base}/info`, { token: alice })).status, 503)
  upstream.answerQuestions(json(INFO))
  await gateway.ready()
  t.equal((await call(`${base}/info`, { token: alice })).status, 200)
  t.ok(gateway.lines.some((line) => line['msg'] === 'waiting for the upstream' && line['level'] === 'warn'))
  t.ok(gateway.lines.some((line) => line['msg'] === 'the upstream answers'))
})

void test('an upstream that comes later is found', async (t) => {
  const first = await startUpstream()
  const port = Number(new URL(first.url).port)
  await first.close()
  const { base, gateway, alice } = await gateBefore(t, first.url, AUTO)
  t.equal((await call(`${base}/info`, { token: alice })).status, 503)
  const later = await startUpstream(json({}), { port })
  t.teardown(() => later.close())
  await gateway.ready()
  t.equal((await call(`${base}/info`, { token: alice })).status, 200)
})

void test('the credential comes before not-ready, and not-ready before the route', async (t) => {
  const { base, gateway, alice, signer } = await asked(t, json({}, 404))
  t.equal(codeOf(await call(`${base}/nowhere`)), 'credential-missing')
  t.equal(codeOf(await call(`${base}/nowhere`, { token: `${alice}x` })), 'credential-invalid')
  t.equal(codeOf(await call(`${base}/info`, { token: signer.sign('') })), 'user-id-invalid')
  t.equal(codeOf(await call(`${base}//info`)), 'target-malformed')
  for (const path of ['/nowhere', '/threads/clear', '/threads/x/messages', '/agent/clear/run']) {
    t.equal(codeOf(await call(`${base}${path}`, { token: alice })), 'not-ready', path)
  }
  t.equal(codeOf(await call(gateway.url, { token: alice })), 'not-ready')
})

void test('a transport that is named waits for no answer', async (t) => {
  const upstream = await startUpstream(json({}))
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json({}, 401))
  const { base, gateway, alice } = await gateBefore(t, upstream.url)
  t.equal((await call(`${base}/info`, { token: alice })).status, 200)
  await until(() => upstream.questions.length > 0)
  await gateway.ready()
})

// A time-out of its own: the gateway may ask as seldom as it likes once it knows, but not while it is pending.
void test('an upstream that comes later is found soon where the transport is named, too', { timeout: 10_000 }, async (t) => {
  const first = await startUpstream()
  await first.close()
  const { gateway } = await gateBefore(t, first.url)
  await until(() => gateway.readiness.pending().has('upstream'))
  const later = await startUpstream(json({}), { port: Number(new URL(first.url).port) })
  t.teardown(() => later.close())
  await gateway.ready()
})

void test('no query name is counted as dropped while the upstream is not known', async (t) => {
  const { base, alice, gateway } = await gateBefore(t, NOWHERE, { config: { upstream: { transport: 'auto' } } })
  t.equal((await call(`${base}/info?strange=1`, { token: alice })).status, 503)
  const metrics = await call(`${gateway.healthUrl}/metrics`)
  t.notMatch(metrics.text, /threadwarden_dropped_total\{kind="query-name"\} [1-9]/)
})
