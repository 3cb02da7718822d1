/** What does not fit between `unknownThread` and the upstream is said aloud, before somebody pays for it. */
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { events, json, startUpstream, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** An upstream whose own threads, and answers for histories, are these. */
async function upstreamWith(t: Parameters<typeof gated>[0], threads: unknown, histories: number): Promise<Upstream> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) => {
    if (request.target.endsWith('/info')) return json({ version: '1.75.0', agents: {} })(request, response)
    if (request.target.endsWith('/threads')) return json({ threads })(request, response)
    return json({ error: 'no' }, histories)(request, response)
  })
  return upstream
}

async function pendingOf(healthUrl: string): Promise<Record<string, string>> {
  const answer = await call(`${healthUrl}/readyz`)
  return (answer.json as { pending: Record<string, string> }).pending
}

void test('claim before an upstream that has threads already: a warning that cannot be overlooked', async (t) => {
  const upstream = await upstreamWith(t, [{ id: 'old1' }, { id: 'old2' }], 404)
  const { gateway } = await gateBefore(t, upstream.url)
  await until(() => gateway.lines.some((line) => line['threads'] === 2))
  const line = gateway.lines.find((one) => one['threads'] === 2)
  t.equal(line?.['level'], 'warn')
  t.match(line?.['msg'], /THE FIRST USER TO RUN/)
})

void test('claim before an upstream that does not give its list is warned of, too', async (t) => {
  const upstream = await upstreamWith(t, 'none', 404)
  const { gateway } = await gateBefore(t, upstream.url)
  await until(() => gateway.lines.some((line) => /did not give its list of threads: THE FIRST USER/.test(String(line['msg']))))
})

void test('no warning where the upstream has none, or the table is not empty', async (t) => {
  const empty = await upstreamWith(t, [], 404)
  const first = await gateBefore(t, empty.url)
  await until(() => empty.questions.some(({ target }) => target.endsWith('/threads')))
  empty.answer(events())
  await call(`${first.base}/agent/default/run`, { token: first.alice, body: runInput('t1') })

  const full = await upstreamWith(t, [{ id: 'old1' }], 404)
  const second = await gateBefore(t, full.url, {
    shared: first.gateway.folder,
    signer: first.signer,
    config: { upstream: { transport: 'auto' } },
  })
  await until(() => second.gateway.lines.some((line) => line['msg'] === 'the upstream answers'))
  await call(`${second.base}/info`, { token: first.alice })
  for (const { gateway } of [first, second]) {
    t.notOk(gateway.lines.some((line) => /THE FIRST USER/.test(String(line['msg']))))
  }
  t.notOk(
    full.questions.some(({ target }) => target.endsWith('/threads')),
    'with owners in the table nobody looks',
  )
})

void test('a further upstream is warned of as long as the table has no thread of it, whatever it has of others', async (t) => {
  const first = await upstreamWith(t, [], 404)
  const legal = await upstreamWith(t, [{ id: 'old1' }], 404)
  const { base, alice, gateway, signer } = await gateBefore(t, first.url)
  first.answer(events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  const further = { url: legal.url, basePath: '/api/copilotkit', publicPath: '/legal', transport: 'multi-route' }
  const both = { shared: gateway.folder, signer, config: { upstreams: { legal: further } } }
  const { gateway: second } = await gateBefore(t, first.url, both)
  await until(() => second.lines.some((line) => line['threads'] === 1))
  const warned = second.lines.filter((line) => /THE FIRST USER TO RUN/.test(String(line['msg'])))
  t.match(warned, [{ level: 'warn', upstream: 'legal', threads: 1, msg: /has no thread of this upstream/ }])
  t.equal(warned.length, 1)
})

void test('verify before an upstream that serves no histories is not ready, and says why by name', async (t) => {
  const upstream = await upstreamWith(t, [], 422)
  const { gateway } = await gateBefore(t, upstream.url, { config: { ownership: { unknownThread: 'verify' } } })
  await until(async () => 'unknownThread' in (await pendingOf(gateway.healthUrl)))
  t.equal((await call(`${gateway.healthUrl}/readyz`)).status, 503)
  t.match((await pendingOf(gateway.healthUrl))['unknownThread'], /422.*unknownThread to claim or deny/)
  t.ok(gateway.lines.some((line) => line['level'] === 'error' && /422/.test(String(line['msg']))))
})

void test('verify that meets a 422 only later says so then', async (t) => {
  const { base, alice, gateway } = await gated(t, json({ error: 'no' }, 422), {
    config: { ownership: { unknownThread: 'verify' } },
  })
  t.notOk('unknownThread' in (await pendingOf(gateway.healthUrl)))
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 403)
  t.ok('unknownThread' in (await pendingOf(gateway.healthUrl)))
})

void test('verify before an upstream that serves them is ready', async (t) => {
  const upstream = await upstreamWith(t, [], 404)
  const { gateway } = await gateBefore(t, upstream.url, { config: { ownership: { unknownThread: 'verify' } } })
  await until(() => upstream.questions.filter(({ target }) => /\/(?:messages|events)$/.test(target)).length === 2)
  await gateway.ready()
  t.same(await pendingOf(gateway.healthUrl), {})
})
