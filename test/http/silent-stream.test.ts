/**
 * A stream that is silent for longer than every default of a library goes on. Days pass for undici, whose clock can be turned;
 * of Node's sockets and servers, whose clock can't, the values are looked at, and a server runs whose times are milliseconds.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo, Socket } from 'node:net'
import fastify from 'fastify'
import { test, type Test } from 'tap'
import { publicListener } from '../../src/http/listeners/listening.ts'
import { openRun, unchunked } from '../../testing/support/event-stream.ts'
import { gated } from '../../testing/support/gated.ts'
import type { ConfigTree } from '../../testing/support/gateway.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { deferred, until } from '../../testing/support/until.ts'

const DAY = 24 * 60 * 60 * 1000

/** The clock that undici counts time-outs by. */
const clock = createRequire(import.meta.url)('undici/lib/util/timers.js') as { readonly tick: (milliseconds: number) => void }

/** Turns it: what was set since the last look begins to count at the first turn, and is due at the second. */
function daysPass(): void {
  for (let turn = 0; turn < 3; turn += 1) clock.tick(DAY)
}

const quiet = (timeouts: object): ConfigTree => ({ streams: { keepAlive: '0s', tokenExpiry: 'ignore' }, upstream: { timeouts } })

/** The sockets of a channel, as they are told of. */
function socketsOf(t: Test, channel: string): Socket[] {
  const sockets: Socket[] = []
  const hear = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket)
  subscribe(channel, hear)
  t.teardown(() => unsubscribe(channel, hear))
  return sockets
}

void test('the upstream may be silent for days: within an answer, and before it where that is configured', async (t) => {
  const started = deferred<ServerResponse>()
  const config = quiet({ headers: '0s' })
  const gate = await gated(t, (_request, response) => started.resolve(response), { config })
  const connection = await openRun(gate)
  const response = await started.promise
  daysPass()
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  await connection.until('\r\n\r\n')
  daysPass()
  response.write('data: 1\n\n')
  await connection.until('data: 1')
  daysPass()
  response.end('data: 2\n\n')
  t.equal(unchunked(await connection.until(/\r\n0\r\n\r\n$|^$/)), 'data: 1\n\ndata: 2\n\n')
  t.notOk(connection.isClosed())
  connection.destroy()
})

void test('what is configured cuts it, by the same clock', async (t) => {
  const started = deferred<ServerResponse>()
  const gate = await gated(t, (_request, response) => started.resolve(response), {
    config: quiet({ headers: '1h', body: '1h' }),
  })
  const first = await openRun(gate)
  const response = await started.promise
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  await first.until('data: 1')
  daysPass()
  t.notMatch(await first.ended(), /\r\n0\r\n\r\n$/, 'a broken answer, and not a short one')
  const second = await openRun(gate, 't2')
  await gate.upstream.arrived(2)
  // The clock starts when undici has written the request, which its peer may have read before.
  await until(() => {
    daysPass()
    return second.text() !== ''
  })
  t.match(second.text(), /^HTTP\/1\.1 504 /)
  second.destroy()
})

void test('no socket of an open stream has a time-out of its own', async (t) => {
  const callers = socketsOf(t, 'http.server.request.start')
  const upstreams = socketsOf(t, 'undici:client:connected')
  const gate = await gated(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
    { config: quiet({}) },
  )
  const connection = await openRun(gate)
  await connection.until('data: 1')
  const { port } = new URL(gate.gateway.url)
  const ours = callers.filter(({ localPort }) => localPort === Number(port))
  t.equal(ours.length, 1)
  t.ok(upstreams.length > 0)
  for (const { timeout } of [...ours, ...upstreams]) t.ok(timeout === undefined || timeout === 0, String(timeout))
  connection.destroy()
})

void test('the times that a request has say nothing of its answer', async (t) => {
  const given = publicListener(16_384)
  const http = { ...given.http, headersTimeout: 10, connectionsCheckingInterval: 5 }
  const app = fastify({ ...given, requestTimeout: 20, keepAliveTimeout: 1, http })
  const open = deferred<ServerResponse>()
  app.get('/', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    open.resolve(reply.raw)
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const asked = async (): Promise<RawConnection> => {
    const connection = await openRaw(base)
    connection.write(head('GET / HTTP/1.1', 'Host: a'))
    const answer = await connection.until('\r\n\r\n')
    // A process that waits for the processor is late even with this head, and it is cut as well.
    return answer.startsWith('HTTP/1.1 200 ') ? connection : asked()
  }
  const connection = await asked()
  // Each of these is cut by one of the times, one after the other, and the stream had to be silent for as long as all of them.
  for (const beginning of [
    'GET / HTTP/1.1\r\n',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n',
    'GET /none HTTP/1.1\r\nHost: a\r\n\r\n',
  ]) {
    const slow = await openRaw(base)
    slow.write(beginning)
    await slow.ended()
  }
  const response = await open.promise
  response.end('data: 1\n\n')
  t.match(await connection.until('data: 1'), 'data: 1')
  connection.destroy()
})
