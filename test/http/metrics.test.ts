/** The figures of /metrics: each request one decision, by route and reason, and no label that a caller chose. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { test } from 'tap'
import packageJson from '../../package.json' with { type: 'json' }
import { ROUTES } from '../../src/core/route/routes.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { openRun } from '../../testing/support/event-stream.ts'
import { gated, NOWHERE, type Gated } from '../../testing/support/gated.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
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

void test('the time in the gateway has neither the wait for the body nor that for the upstream', async (t) => {
  let delayed = 0
  const gate = await gated(t, async (request, response) => {
    const began = performance.now()
    await sleep(50)
    delayed = performance.now() - began
    await json({})(request, response)
  })
  const connection = await openRaw(gate.gateway.url)
  const body = JSON.stringify(runInput('t1'))
  const target = '/api/copilotkit/agent/default/run'
  connection.write(
    head(
      `POST ${target} HTTP/1.1`,
      'host: x',
      `authorization: Bearer ${gate.alice}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'expect: 100-continue',
    ),
  )
  await connection.until('100 Continue')
  const asked = performance.now()
  await sleep(50)
  const held = performance.now() - asked
  connection.write(body)
  await connection.until('200 OK')
  const run = '{route="agent/run",status_class="2xx"}'
  await until(async () => (await figures(gate))[`request_duration_seconds_count${run}`] === 1)
  const all = await figures(gate)
  const sum = (name: string): number => 1000 * (all[`${name}_sum${run}`] ?? NaN)
  t.ok(sum('upstream_first_byte_seconds') >= delayed - 1)
  t.ok(sum('gateway_duration_seconds') > 0)
  t.ok(
    sum('gateway_duration_seconds') + held + sum('upstream_first_byte_seconds') <= sum('request_duration_seconds'),
    'all of them are parts of the whole',
  )
})

void test('an event stream counts when it ends, and a caller who leaves before the answer has no status', async (t) => {
  const gate = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  })
  const stream = await openRun(gate)
  await stream.until('data: 1')
  const ended = 'request_duration_seconds_count{route="agent/run",status_class="2xx"}'
  t.equal((await figures(gate))['upstream_first_byte_seconds_count{route="agent/run",status_class="2xx"}'], 1)
  t.equal((await figures(gate))[ended], undefined)
  stream.destroy()
  await until(async () => (await figures(gate))[ended] === 1)
  gate.upstream.answer(() => {})
  const waiting = await openRun(gate)
  await gate.upstream.arrived(2)
  waiting.destroy()
  const left = '{route="agent/run",status_class="none"}'
  await until(async () => (await figures(gate))[`request_duration_seconds_count${left}`] === 1)
  t.equal((await figures(gate))[`gateway_duration_seconds_count${left}`], undefined, 'it had no answer')
})

void test('the buckets of a duration are cumulative', async (t) => {
  const metrics = makeMetrics()
  for (const milliseconds of [5, 6, 70_000]) metrics.requests.took('request', 'info', 200, milliseconds)
  const { text } = await metrics.expose()
  const of = (part: string): string | undefined =>
    text.split('\n').find((line) => line.startsWith(`threadwarden_request_duration_seconds_${part}`))
  const info = 'route="info",status_class="2xx"'
  t.equal(of(`bucket{${info},le="0.005"}`)?.split(' ')[1], '1', 'a bound is in its bucket')
  t.equal(of(`bucket{${info},le="0.01"}`)?.split(' ')[1], '2')
  t.equal(of(`bucket{${info},le="10"}`)?.split(' ')[1], '2')
  t.equal(of(`bucket{${info},le="+Inf"}`)?.split(' ')[1], '3')
  t.equal(of(`count{${info}}`)?.split(' ')[1], '3')
  t.equal(of(`sum{${info}}`)?.split(' ')[1], '70.011')
})

void test('nothing that a caller or an upstream sends becomes a label', async (t) => {
  const gate = await gated(t, events())
  const { base, alice, upstream } = gate
  const values = async (): Promise<ReadonlyMap<string, ReadonlySet<string>>> => {
    const { text } = await call(`${gate.gateway.healthUrl}/metrics`)
    const found = new Map<string, Set<string>>()
    const own = text.split('\n').filter((line) => line.startsWith('threadwarden_'))
    for (const [, label = '', value = ''] of own.flatMap((line) => [...line.matchAll(/[{,](\w+)="([^"]*)"/g)]))
      found.set(label, (found.get(label) ?? new Set()).add(value))
    return found
  }
  for (const token of [alice, 'odd']) {
    for (const [method, path, headers] of [
      ['ODD', '/info', {}],
      ['GET', '/odd', {}],
      ['GET', '/info?odd=odd', { 'x-odd': 'odd', 'x-request-id': 'odd', 'user-agent': 'odd', 'x-forwarded-for': 'odd' }],
      ['GET', '/threads/odd/messages', {}],
      ['PATCH', '/threads/odd', {}],
      ['GET', '/threads?cursor=odd&agentId=odd', {}],
      ['POST', '/agent/odd/stop/odd', {}],
      ['OPTIONS', '/info', { origin: 'https://odd.example', 'access-control-request-method': 'ODD' }],
    ] as const)
      await call(`${base}${path}`, { method, token, headers })
    await call(`${base}/agent/odd/run`, { token, body: runInput('odd', 'odd', { odd: 'odd' }) })
    await call(base, { token, body: { method: 'odd', params: { agentId: 'odd' }, body: {} } })
  }
  for (const status of [299, 418, 599, 999]) {
    upstream.answer(
      (_request, response) => void response.writeHead(status, 'odd', { 'content-type': 'odd/odd', odd: 'odd' }).end(),
    )
    await call(`${base}/agent/odd/run`, { token: alice, body: runInput(`odd-${status}`) })
  }
  const all = await values()
  const routes = new Set<string>(ROUTES.map(({ id }) => id))
  t.same(
    [...(all.get('route') ?? [])].filter((route) => route !== 'none' && !routes.has(route)),
    [],
  )
  t.same(
    [...(all.get('status_class') ?? [])].filter((one) => !['2xx', '4xx', '5xx'].includes(one)),
    [],
  )
  const labels = [...all].filter(([label]) => !['version', 'node', 'le'].includes(label))
  t.notMatch(JSON.stringify(labels.map(([, known]) => [...known])), /odd/i)
})

void test('operations of the store and their failures are counted, but no answer from the cache', async (t) => {
  const gate = await gated(t, events())
  const run = (id: string) => call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput(id) })
  const count = async (operation: string, name = 'duration_seconds_count') =>
    (await figures(gate))[`store_operation_${name}{operation="${operation}",engine="sqlite"}`]
  await run('t1')
  await until(async () => (await count('settle')) === 1)
  t.equal(await count('claim'), 1)
  const looked = await count('access')
  await run('t1')
  await run('t1')
  t.ok(((await count('access')) ?? 0) <= (looked ?? 0) + 1, 'the second look-up fills the cache')
  t.equal(await count('access', 'errors_total'), undefined)
  const database = new Database(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  database.exec('ALTER TABLE threads RENAME TO gone')
  t.equal((await run('t2')).status, 503)
  await until(async () => (await count('access', 'errors_total')) === 1)
})

void test('the memory that bodies hold is in use until they end, of a budget', async (t) => {
  const gate = await gated(t, events(), { config: { limits: { bodiesInFlight: '8MiB', runBody: '1MiB' } } })
  t.equal((await figures(gate))['memory_budget_bytes{use="bodies"}'], 8 * 2 ** 20)
  const used = async () => (await figures(gate))['memory_budget_used_bytes{use="bodies"}']
  t.equal(await used(), undefined)
  const connection = await openRaw(gate.gateway.url)
  const target = 'POST /api/copilotkit/agent/default/run HTTP/1.1'
  const lines = ['host: x', `authorization: Bearer ${gate.alice}`, 'content-type: application/json', 'content-length: 500']
  connection.write(head(target, ...lines))
  connection.write('x'.repeat(300))
  await until(async () => ((await used()) ?? 0) >= 300)
  connection.destroy()
  await until(async () => (await used()) === undefined)
})

void test('the conditions of /readyz are 1 while they are pending, and 0 afterwards', async (t) => {
  const gate = await gated(t, events(), { config: { upstream: { url: NOWHERE, transport: 'auto' } } })
  const pending = (of: Record<string, number>) => of['readiness_pending{condition="upstream"}']
  t.equal(pending(await figures(gate)), 1)
  const { gateway } = await gated(t)
  const done = async () =>
    (await call(`${gateway.healthUrl}/metrics`)).text.includes('readiness_pending{condition="upstream"} 0\n')
  await until(done)
})

void test('the gateway looks for unconfirmed claims when it starts', async (t) => {
  const gate = await gated(t)
  const looks = 'store_operation_duration_seconds_count{operation="unconfirmed",engine="sqlite"}'
  await until(async () => (await figures(gate))[looks] === 1)
  t.equal((await figures(gate))['unconfirmed_claims'], undefined)
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

void test('an ended stream counts with its reason and duration', async (t) => {
  const credential = 'c'.repeat(40)
  let end: (how: 'whole' | 'broken') => void = () => {}
  const gate = await gated(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
      end = (how) => void (how === 'whole' ? response.end() : response.destroy())
    },
    { config: { admin: { port: 0, credential } } },
  )
  const began = performance.now()
  for (const [reason, finish] of [
    ['complete', () => end('whole')],
    ['upstream-broke-off', () => end('broken')],
    ['caller-left', (stream) => stream.destroy()],
    [
      'credential-invalid',
      () => call(`${gate.gateway.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } }),
    ],
  ] as const satisfies [string, (stream: RawConnection) => unknown][]) {
    const stream = await openRun(gate)
    await stream.until('data: 1')
    t.equal((await figures(gate))[`stream_duration_seconds_count{reason="${reason}"}`], undefined)
    await finish(stream)
    await until(async () => (await figures(gate))[`stream_duration_seconds_count{reason="${reason}"}`] === 1)
  }
  const all = await figures(gate)
  const seconds = Object.entries(all).flatMap(([name, sum]) => (name.startsWith('stream_duration_seconds_sum') ? [sum] : []))
  t.equal(seconds.length, 4)
  t.ok(seconds.reduce((sum, more) => sum + more) <= (performance.now() - began) / 1000)
})
