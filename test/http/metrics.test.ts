/** The figures of /metrics: each request one decision, by route and reason, and no label that a caller chose. */
import { test } from 'tap'
import packageJson from '../../package.json' with { type: 'json' }
import { call, runInput } from '../../testing/support/client.ts'
import { openRun } from '../../testing/support/event-stream.ts'
import { gated, type Gated } from '../../testing/support/gated.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** Lines of our own figures that are not zero, by name and labels. */
async function figures({ gateway }: Gated): Promise<Record<string, number>> {
  const { text } = await call(`${gateway.healthUrl}/metrics`)
  const lines = text.split('\n').filter((line) => line.startsWith('threadwarden_') && !line.endsWith(' 0'))
  return Object.fromEntries(
    lines.map((line) => [line.slice('threadwarden_'.length, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

const decisions = (all: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith('decisions_total')))

void test('every request is one decision, by route and reason', async (t) => {
  const gate = await gated(t, events())
  const { base, alice, bob, upstream } = gate
  await call(`${base}/info`)
  await call(`${base}/info`, { token: 'nonsense' })
  await call(`${base}//`, { token: alice })
  await call(`${base}/nowhere`, { token: alice })
  await call(`${base}/info`, { method: 'DELETE', token: alice })
  await call(`${base}/info`, { token: alice })
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  await call(`${base}/agent/default/run`, { token: bob, body: runInput('t1') })
  await call(`${base}/agent/default/run`, { token: alice, body: {} })
  await call(`${base}/threads/clear`, { method: 'POST', token: alice })
  upstream.answer(json({ threads: [] }))
  await call(`${base}/threads`, { token: alice })
  t.same(decisions(await figures(gate)), {
    'decisions_total{route="none",reason="credential-missing"}': 1,
    'decisions_total{route="none",reason="token-malformed"}': 1,
    'decisions_total{route="none",reason="target-empty-segment"}': 1,
    'decisions_total{route="none",reason="route-unknown"}': 1,
    'decisions_total{route="none",reason="method-not-allowed"}': 1,
    'decisions_total{route="info",reason="permitted"}': 1,
    'decisions_total{route="agent/run",reason="permitted"}': 1,
    'decisions_total{route="agent/run",reason="thread-foreign"}': 1,
    'decisions_total{route="agent/run",reason="thread-id-invalid"}': 1,
    'decisions_total{route="threads/clear",reason="operator-only"}': 1,
    'decisions_total{route="threads/list",reason="permitted"}': 1,
  })
})

void test('the version of the gateway and of Node.js are labels', async (t) => {
  const { version } = packageJson
  t.equal((await figures(await gated(t)))[`build_info{version="${version}",node="${process.version}"}`], 1)
})

void test('query names that do not pass are counted', async (t) => {
  const gate = await gated(t)
  await call(`${gate.base}/info?a=1&b=2&c`, { token: gate.alice })
  t.equal((await figures(gate))['dropped_total{kind="query-name"}'], 3)
})

void test('a list whose query is refused was not permitted', async (t) => {
  const gate = await gated(t)
  await call(`${gate.base}/threads?limit=0`, { token: gate.alice })
  t.same(decisions(await figures(gate)), { 'decisions_total{route="threads/list",reason="query-limit-invalid"}': 1 })
})

void test('what the parser refuses is counted as well', async (t) => {
  const gate = await gated(t)
  await call(gate.gateway.url, { headers: { 'x-pad': 'x'.repeat(30_000) } })
  t.same(decisions(await figures(gate)), { 'decisions_total{route="none",reason="http-headers-too-large"}': 1 })
})

void test('what the upstream fails to give is counted by reason', async (t) => {
  const gate = await gated(t, json({}, 302))
  const { base, alice, upstream } = gate
  await call(`${base}/info`, { token: alice })
  await call(`${base}/info`, { token: alice })
  upstream.answer((_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('x'))
  await call(`${base}/info`, { token: alice })
  upstream.answer((_request, response) => void response.destroy())
  await call(`${base}/info`, { token: alice })
  upstream.answer(json({ items: [] }))
  await call(`${base}/threads`, { token: alice })
  await upstream.close()
  await call(`${base}/info`, { token: alice })
  t.match(await figures(gate), {
    'upstream_errors_total{reason="upstream-redirect"}': 2,
    'upstream_errors_total{reason="upstream-html"}': 1,
    'upstream_errors_total{reason="upstream-broke-off"}': 1,
    'upstream_errors_total{reason="upstream-list-unreadable"}': 1,
    'upstream_errors_total{reason="upstream-unreachable"}': 1,
  })
})

void test('claims are counted when they are made and when they are taken back', async (t) => {
  const gate = await gated(t, events())
  const run = (id: string) => call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput(id) })
  await run('t1')
  await run('t1')
  t.match(await figures(gate), { 'claims_total{outcome="new"}': 1 })
  gate.upstream.answer(json({}, 400))
  await run('t2')
  t.match(await figures(gate), { 'claims_total{outcome="new"}': 2, 'claims_total{outcome="released"}': 1 })
  await run('t1')
  t.equal((await figures(gate))['claims_total{outcome="released"}'], 1, 'a refused run on a thread of old takes nothing back')
})

void test('open streams are counted while they are open', async (t) => {
  const gate = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  })
  const connection = await openRun(gate)
  await connection.until('data: 1')
  t.equal((await figures(gate))['open_streams'], 1)
  gate.upstream.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('not yet whole')
  })
  const plain = await openRun(gate)
  await plain.until('not yet whole')
  t.equal((await figures(gate))['open_streams'], 1, 'an answer that is slow is no stream')
  plain.destroy()
  connection.destroy()
  await until(async () => (await figures(gate))['open_streams'] === undefined)
})
