/** One log line a request, whatever became of it, with who, what and why. What may never be in one: test/security/secrets-nowhere. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { openRun } from '../../testing/support/event-stream.ts'
import { gateBefore, gated, type Gated } from '../../testing/support/gated.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { events } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

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
      level: 'info',
      route: 'agent/run',
      agent: 'default',
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

void test('an answer that failed is a warning if the upstream failed, and an error if the store did', async (t) => {
  const gate = await gated(t, (_request, response) => void response.destroy())
  t.equal((await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t1') })).status, 502)
  for (const end of ['', '-wal', '-shm']) rmSync(join(gate.gateway.folder, `ownership.db${end}`), { force: true })
  t.equal((await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t2') })).status, 503)
  await until(() => requestsOf(gate).length === 2)
  t.match(requestsOf(gate), [
    { level: 'warn', status: 502, reason: 'upstream-broke-off' },
    { level: 'error', status: 503, reason: 'store-unavailable' },
  ])
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
