/** A request that may have been read is never sent again: an agent's run costs money and has effects. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'

void test('an upstream that resets after reading gets a run once, and a read as well', async (t) => {
  let resets = false
  const upstream = await startRawUpstream((socket) => (resets ? socket.resetAndDestroy() : socket.end(OK)))
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  resets = true
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 502)
  t.equal((await call(`${base}/info`, { token: alice })).status, 502)
  t.equal((await call(`${base}/threads/t1/messages`, { token: alice })).status, 502)
  t.equal(upstream.requests.length, 4)
})

void test('an idle connection that the upstream closes under a request costs no second sending', async (t) => {
  // The upstream closes each connection when the second request on it has come: the gateway took it for idle and good.
  const seen = new WeakMap<object, number>()
  const upstream = await startRawUpstream((socket) => {
    const count = (seen.get(socket) ?? 0) + 1
    seen.set(socket, count)
    if (count === 1) socket.write(OK)
    else socket.destroy()
  })
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  const statuses: number[] = []
  for (let count = 0; count < 10; count += 1) statuses.push((await call(`${base}/info`, { token: alice })).status)
  t.equal(upstream.requests.length, 10, 'each arrives once')
  t.ok(statuses.includes(502), 'and the ones that broke off say so')
})

void test('an idle connection that the upstream has closed is not used', async (t) => {
  const closed: (() => boolean)[] = []
  const upstream = await startRawUpstream((socket) => {
    let gone = false
    socket.on('close', () => (gone = true))
    closed.push(() => gone)
    socket.end(OK)
  })
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  for (let count = 0; count < 5; count += 1) {
    t.equal((await call(`${base}/info`, { token: alice })).status, 200)
    await until(() => closed.every((one) => one()))
  }
  t.equal(upstream.requests.length, 5)
})

void test('an upstream that asks to come back later is not asked again', async (t) => {
  const { base, alice, upstream } = await gated(t, json({ error: 'busy' }, 503, { 'retry-after': '0' }))
  const answer = await call(`${base}/info`, { token: alice })
  t.equal(answer.status, 503)
  t.equal(answer.headers.get('retry-after'), '0')
  t.equal(codeOf(await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })), undefined)
  t.equal(upstream.requests.length, 2)
})

void test('a time-out is not tried again', async (t) => {
  const { base, alice, upstream } = await gated(t, () => {}, { config: { upstream: { timeouts: { headers: '1s' } } } })
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 504)
  t.equal(upstream.requests.length, 1)
})
