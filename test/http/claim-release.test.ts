/** The first run claims a thread; the claim goes again exactly where the run certainly did not start (docs/explanation/ownership.md). */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { DEFAULT_POLICY } from '../../src/config/policy-file.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

void test('the row is there before the run is sent, and provisional until the run is confirmed', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t)
  let before: unknown
  upstream.answer((request, response) => {
    before = rows(gateway.folder).map((row) => [row.thread_id, row.user_id, row.provisional, row.pending])
    return events({ type: 'RUN_STARTED' })(request, response)
  })
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.same(before, [['t1', 'corp:alice', 1, 1]])
  t.match(rows(gateway.folder), [{ thread_id: 't1', user_id: 'corp:alice', provisional: 0, pending: 0, deleted_at: null }])
})

void test('the head of a 2xx confirms: the stream need not end', async (t) => {
  const { gateway, alice } = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n')
  })
  const connection = await openRaw(gateway.url)
  const body = JSON.stringify(runInput('t1'))
  connection.write(
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ) + body,
  )
  await connection.until('data: {}')
  t.match(rows(gateway.folder), [{ thread_id: 't1', provisional: 0 }])
  connection.destroy()
})

void test('after 408, 499, a 5xx, a 3xx or a page the run may be going on: the claim stays', async (t) => {
  const { base, alice, bob, upstream, gateway } = await gated(t)
  for (const status of [408, 499, 500, 502, 503, 504, 302]) {
    upstream.answer(json({ error: 'no' }, status))
    await call(`${base}/agent/default/run`, { token: alice, body: runInput(`t${status}`) })
    const claimed = rows(gateway.folder).find(({ thread_id: id }) => id === `t${status}`)
    t.match(claimed, { user_id: 'corp:alice', provisional: 1 }, String(status))
    t.equal(codeOf(await call(`${base}/agent/default/run`, { token: bob, body: runInput(`t${status}`) })), 'not-owner')
  }
  upstream.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in')
  })
  t.equal(codeOf(await call(`${base}/agent/default/run`, { token: alice, body: runInput('page') })), 'upstream-unusable')
  t.match(
    rows(gateway.folder).find(({ thread_id: id }) => id === 'page'),
    { user_id: 'corp:alice', provisional: 1 },
    'a page with status 200 confirms nothing',
  )
})

void test('after a time-out the claim stays', async (t) => {
  const { base, alice, gateway } = await gated(t, () => {}, { config: { upstream: { timeouts: { headers: '1s' } } } })
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 504)
  t.same(owners(gateway.folder), ['t1=corp:alice'])
})

void test('after a reset the claim stays', async (t) => {
  const upstream = await startRawUpstream((socket) => socket.resetAndDestroy())
  t.teardown(() => upstream.close())
  const { base, alice, gateway } = await gateBefore(t, upstream.url)
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 502)
  t.same(owners(gateway.folder), ['t1=corp:alice'])
})

void test('a caller who leaves after the run was sent keeps the claim', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, () => {})
  const leaving = new AbortController()
  const run = fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput('t1')),
    signal: leaving.signal,
  })
  await upstream.arrived(1)
  leaving.abort()
  await t.rejects(run)
  await until(() => upstream.requests[0]!.left())
  t.same(owners(gateway.folder), ['t1=corp:alice'])
  // A run beside it that is refused does not take the row along: what was left stays registered.
  upstream.answer(json({ error: 'no' }, 404))
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 404)
  t.match(rows(gateway.folder), [{ thread_id: 't1', user_id: 'corp:alice', provisional: 1 }])
})

void test('a run of an operator on a thread whose owner’s first run is under way keeps the thread with its owner', async (t) => {
  const policy = readFileSync(DEFAULT_POLICY.path, 'utf8').replace(
    'rules:\n',
    'rules:\n  - routes: [agent/run]\n    allow: [operator]\n    threads: [foreign]\n',
  )
  const answers: (() => void)[] = []
  const { base, alice, bob, olga, gateway } = await gated(
    t,
    (request, response) => {
      const refused = request.headers.get('authorization')?.[0] === `Bearer ${alice}`
      answers.push(() => void (refused ? json({ error: 'no' }, 422) : events())(request, response))
    },
    { policy },
  )
  const run = (token: string) => call(`${base}/agent/default/run`, { token, body: runInput('t1') })
  const first = run(alice)
  await until(() => answers.length === 1)
  const second = run(olga)
  await until(() => answers.length === 2)
  answers[1]?.()
  t.equal((await second).status, 200)
  answers[0]?.()
  t.equal((await first).status, 422)
  t.match(rows(gateway.folder), [{ user_id: 'corp:alice', provisional: 1 }], 'what the operator began there is hers')
  t.equal(codeOf(await run(bob)), 'not-owner')
})
