/** One log line a request, whatever became of it, with who, what and why; never a token, a cookie, a secret or words of a chat. */
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { openRun } from '../support/event-stream.ts'
import { gateBefore, gated, type Gated } from '../support/gated.ts'
import { startRawUpstream } from '../support/raw-upstream.ts'
import { events, json } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const requestsOf = ({ gateway }: Gated) => gateway.lines.filter((line) => line['msg'] === 'request')

void test('a line says who asked for what, what came of it and why', async (t) => {
  const gate = await gated(t, events())
  const { base, alice, bob } = gate
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  await call(`${base}/threads/t1/state`, { token: bob })
  await call(`${base}/info`)
  await call(`${base}/nowhere`, { token: bob })
  await until(() => requestsOf(gate).length === 4)
  t.match(requestsOf(gate), [
    {
      method: 'POST',
      route: 'agent/run',
      thread: 't1',
      principal: 'corp:alice',
      status: 200,
      reason: 'permitted',
      complete: true,
      client: '127.0.0.1',
    },
    { method: 'GET', route: 'threads/state', thread: 't1', principal: 'corp:bob', status: 404, reason: 'thread-foreign' },
    { method: 'GET', route: 'none', status: 401, reason: 'credential-missing' },
    { method: 'GET', route: 'none', principal: 'corp:bob', status: 404, reason: 'route-unknown' },
  ])
  t.notOk('principal' in requestsOf(gate)[2]!, 'nobody is nobody')
})

void test('a stream that its caller left has its line too, as one that did not end properly', async (t) => {
  const gate = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  })
  const connection = await openRun(gate)
  await connection.until('data: 1')
  connection.destroy()
  await until(() => gate.upstream.requests[0]!.left())
  // A request behind it has its line: the one that was left had all the time it needs.
  await call(`${gate.base}/nowhere`, { token: gate.alice })
  await until(() => requestsOf(gate).some((line) => line['reason'] === 'route-unknown'))
  t.match(
    requestsOf(gate).find((line) => line['route'] === 'agent/run'),
    { principal: 'corp:alice', thread: 't1', complete: false },
  )
})

void test('a stream that the upstream broke off has its line too', async (t) => {
  let breakOff = (): void => {}
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n7\r\ndata: 1\r\n')
    breakOff = () => socket.resetAndDestroy()
  })
  t.teardown(() => upstream.close())
  const gate = await gateBefore(t, upstream.url)
  const connection = await openRun(gate)
  await connection.until('data: 1')
  breakOff()
  await connection.ended()
  await call(`${gate.base}/nowhere`, { token: gate.alice })
  await until(() => requestsOf(gate).some((line) => line['reason'] === 'route-unknown'))
  t.match(
    requestsOf(gate).find((line) => line['route'] === 'agent/run'),
    { principal: 'corp:alice', thread: 't1', complete: false },
  )
})

void test('no line holds a token, a cookie, a secret, a query, or what was said', async (t) => {
  const gate = await gated(t, json({ secret: 'their-words' }, 500), {
    config: { upstream: { headers: { 'x-service-token': 'service-secret' } }, forwardHeaders: ['x-tenant'] },
  })
  const { base, alice, gateway, signer, upstream } = gate
  const headers = {
    cookie: 'cookie-secret',
    'x-api-key': 'key-secret',
    'x-tenant': 'tenant-secret',
    'x-forwarded-for': 'address-secret',
  }
  const bad = `${alice.slice(0, -4)}AAAA`
  const expired = signer.sign('alice', { exp: 1000 })
  for (const token of [alice, bad, expired, 'short-secret']) {
    await call(`${base}/agent/default/run`, {
      token,
      headers,
      body: runInput('t1', 'my-words', { state: { a: 'state-secret' } }),
    })
    await call(`${base}/info?token=query-secret`, { token, headers })
    await call(`${base}/path-secret`, { token, headers })
  }
  await call(`${base}/info`, { headers: { authorization: 'Basic basic-secret' } })
  await call(`${base}/info`, { headers: { authorization: `bearer ${alice}` } })
  upstream.answer((_request, response) => void response.destroy())
  await call(`${base}/info`, { token: alice, headers })
  await until(() => requestsOf(gate).length === 15)
  const log = JSON.stringify(gateway.lines)
  for (const secret of [alice, bad, expired, alice.split('.')[1]!, 'secret', 'my-words', 'their-words']) t.notMatch(log, secret)
})

void test('X-Forwarded-For names the caller in the log only where a trusted proxy sent it', async (t) => {
  for (const [trustedProxies, client] of [
    [[], '127.0.0.1'],
    [['10.0.0.0/8'], '127.0.0.1'],
    [['127.0.0.0/8'], '203.0.113.7'],
    [['127.0.0.0/8', '203.0.113.0/24'], '198.51.100.1'],
  ] as const) {
    const gate = await gated(t, undefined, { config: { listen: { host: '127.0.0.1', port: 0, trustedProxies } } })
    await call(`${gate.base}/info`, { token: gate.alice, headers: { 'x-forwarded-for': '198.51.100.1, 203.0.113.7' } })
    await until(() => requestsOf(gate).length === 1)
    t.equal(requestsOf(gate)[0]?.['client'], client)
  }
})
