/** An upstream that does not answer is told apart from one that answers late, and neither by its address. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { startFullBacklog } from '../../testing/support/full-backlog.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'

void test('a refused connection is 502 upstream-unreachable on every kind of route', async (t) => {
  const port = await freePort()
  const { base, alice, gateway } = await gateBefore(t, `http://127.0.0.1:${port}`)
  for (const answer of [
    await call(`${base}/info`, { token: alice }),
    await call(`${base}/threads`, { token: alice }),
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') }),
  ]) {
    t.equal(answer.status, 502)
    t.equal(codeOf(answer), 'upstream-unreachable')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.notMatch(answer.text, String(port))
  }
  const failures = gateway.lines.filter((line) => line['msg'] === 'the upstream gave no answer')
  t.equal(failures.length, 3)
  t.equal(failures[0]?.['detail'], 'ECONNREFUSED')
})

void test('a connection that does not come about within its time is 502', async (t) => {
  const silent = await startFullBacklog()
  t.teardown(() => silent.close())
  const { base, alice, gateway } = await gateBefore(t, silent.url, { config: { upstream: { timeouts: { connect: '300ms' } } } })
  const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.equal(answer.status, 502)
  t.equal(codeOf(answer), 'upstream-unreachable')
  const failure = gateway.lines.find((line) => line['msg'] === 'the upstream gave no answer')
  t.equal(failure?.['detail'], 'UND_ERR_CONNECT_TIMEOUT')
})

void test('an answer whose head does not come within its time is 504', async (t) => {
  const { base, alice, upstream } = await gated(t, () => {}, { config: { upstream: { timeouts: { headers: '1s' } } } })
  const answer = await call(`${base}/info`, { token: alice })
  t.equal(answer.status, 504)
  t.equal(codeOf(answer), 'upstream-timeout')
  t.equal(upstream.requests.length, 1)
})

void test('an answer that falls silent for longer than the configured time is broken off', async (t) => {
  const { base, alice } = await gated(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n'),
    { config: { upstream: { timeouts: { body: '1s' } } } },
  )
  await t.rejects(call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') }))
})
