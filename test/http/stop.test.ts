/**
 * A gateway that stops serves on for those who have not heard of it, and lets go of their connections; then it lets what runs come to its end, takes nothing new, and
 * ends what is left so that clients see it.
 */
import type { ServerResponse } from 'node:http'
import { test } from 'tap'
import { openRun, unchunked } from '../../testing/support/event-stream.ts'
import { gated } from '../../testing/support/gated.ts'
import { firstAnswer, head, openRaw } from '../../testing/support/raw.ts'
import { json } from '../../testing/support/upstream.ts'
import { deferred, until } from '../../testing/support/until.ts'

const HOUR = 3_600_000

function opening(type: string, first: string) {
  const started = deferred<ServerResponse>()
  return {
    started: started.promise,
    answering: (_request: unknown, response: ServerResponse): void => {
      response.writeHead(200, { 'content-type': type }).write(first)
      started.resolve(response)
    },
  }
}

void test('at the deadline an open stream ends with a RUN_ERROR event and a proper end', async (t) => {
  const { answering } = opening('text/event-stream', 'data: 1\n\n')
  const gate = await gated(t, answering)
  const connection = await openRun(gate)
  await connection.until('data: 1')
  await gate.gateway.stop(0)
  const body = unchunked(await connection.ended())
  const [first, last, rest] = body.split('\n\n')
  t.equal(first, 'data: 1')
  t.match(JSON.parse(last!.slice('data: '.length)), { type: 'RUN_ERROR', code: 'shutting-down', message: /shutting down/ })
  t.equal(rest, '')
  t.match(connection.text(), /\r\n0\r\n\r\n$/)
  await until(() => gate.upstream.requests[0]!.left())
})

void test('an event that was half sent is closed first', async (t) => {
  const { answering } = opening('text/event-stream', 'data: 1\n\ndata: {"half":')
  const gate = await gated(t, answering)
  const connection = await openRun(gate)
  await connection.until('half')
  await gate.gateway.stop(0)
  const events = unchunked(await connection.ended()).split('\n\n')
  t.equal(events[1], 'data: {"half":')
  t.match(events[2], /^data: \{"type":"RUN_ERROR"/)
})

void test('nothing is written into a binary stream', async (t) => {
  const { answering } = opening('application/vnd.ag-ui.event+proto', 'binary')
  const gate = await gated(t, answering)
  const connection = await openRun(gate)
  await connection.until('binary')
  await gate.gateway.stop(0)
  t.equal(unchunked(await connection.ended()), 'binary')
})

// A time-out of its own: where the rule is broken, nothing else ends the wait for an hour.
void test(
  'before the deadline a stream comes to its own end, and the gateway with the last of them',
  { timeout: 10_000 },
  async (t) => {
    const { started, answering } = opening('text/event-stream', 'data: 1\n\n')
    const gate = await gated(t, answering)
    const connection = await openRun(gate)
    await connection.until('data: 1')
    const stopped = gate.gateway.stop(HOUR)
    ;(await started).end('data: 2\n\n')
    await stopped
    t.equal(unchunked(await connection.ended()), 'data: 1\n\ndata: 2\n\n')
  },
)

void test('while it stops /readyz says so, no connection is taken, and a request on an old one is 503 after its credential', async (t) => {
  const { started, answering } = opening('text/event-stream', 'data: 1\n\n')
  const gate = await gated(t, answering)
  const connection = await openRun(gate)
  await connection.until('data: 1')
  const half = [gate.alice, 'nonsense'].map(async (token) => {
    const open = await openRaw(gate.gateway.url)
    // The first request makes the gateway know the connection; of the second only a part has come.
    open.write(head('GET /api/copilotkit/nowhere HTTP/1.1', 'Host: a', `Authorization: Bearer ${token}`))
    await open.until(/\r\n\r\n\{.*\}/)
    open.write(`GET /api/copilotkit/nowhere HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`)
    return open
  })
  const [known, unknown] = await Promise.all(half)
  const before = [known!.text().length, unknown!.text().length] as const
  // The halves have been read when a request behind them has been answered.
  await fetch(`${gate.base}/nowhere`).then((answer) => answer.text())
  const stopped = gate.gateway.stop(HOUR)
  t.ok(gate.gateway.readiness.pending().has('shutting-down'))
  const ready = await fetch(`${gate.gateway.healthUrl}/readyz`)
  t.equal(ready.status, 503)
  t.match(await ready.json(), { pending: { 'shutting-down': /shutting down/ } })
  await t.rejects(fetch(`${gate.base}/info`), 'no new connection')
  known!.write('\r\n')
  unknown!.write('\r\n')
  const late = firstAnswer((await known!.until(/\r\n\r\n\{[^]*\}[^]*\{.*\}/)).slice(before[0]))
  t.equal(late.status, 503)
  t.match(late.body, '"code":"shutting-down"')
  t.equal(late.headers.get('connection'), 'close')
  t.equal(firstAnswer((await unknown!.until(/\r\n\r\n\{[^]*\}[^]*\{.*\}/)).slice(before[1])).status, 401)
  ;(await started).end()
  for (const open of [connection, known!, unknown!]) open.destroy()
  await stopped
})

void test('a plain answer that is under way at the deadline is cut, and stop comes to its end', async (t) => {
  const gate = await gated(t, () => {})
  const connection = await openRun(gate)
  await gate.upstream.arrived(1)
  await gate.gateway.stop(0)
  t.notMatch(await connection.ended(), 'HTTP/1.1 200')
})

void test('an answer that comes before the deadline is given', async (t) => {
  const gate = await gated(t)
  const answer = deferred()
  gate.upstream.answer(async (request, response) => {
    await answer.promise
    void json({ late: true })(request, response)
  })
  const connection = await openRun(gate)
  await gate.upstream.arrived(1)
  const stopped = gate.gateway.stop(HOUR)
  answer.resolve()
  t.match(await connection.until('{"late":true}'), /^HTTP\/1\.1 200 /)
  connection.destroy()
  await stopped
})

void test('until everybody has heard of it, it serves on, and each answer is the last of its connection', async (t) => {
  const answers = [deferred(), deferred()]
  const gate = await gated(t, async (request, response) => {
    await answers[gate.upstream.requests.length - 1]?.promise
    void json({ late: true })(request, response)
  })
  const [early, latest] = await Promise.all([openRun(gate), openRaw(gate.gateway.url)])
  await gate.upstream.arrived(1)
  const ask = head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${gate.bob}`)
  const served = deferred()
  const stopped = gate.gateway.stop(HOUR, served.promise)
  t.equal((await fetch(`${gate.gateway.healthUrl}/readyz`)).status, 503)
  // An answer that was due before.
  answers[0]!.resolve()
  t.match(await early.ended(), /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n[^]*\{"late":true\}/i)
  // Requests that came behind each other are all served, and the connection ends with the last of them.
  latest.write(ask.repeat(2))
  await gate.upstream.arrived(2)
  answers[1]!.resolve()
  const both = await latest.ended()
  t.equal(both.match(/HTTP\/1\.1 200 /g)?.length, 2)
  t.equal(both.match(/\r\nconnection: close\r\n/gi)?.length, 1)
  t.ok(both.lastIndexOf('HTTP/1.1 200') < both.search(/\r\nconnection: close\r\n/i))
  // New ones are taken as before, refusals included.
  const fresh = await fetch(`${gate.base}/info`, { headers: { authorization: `Bearer ${gate.alice}` } })
  t.same([fresh.status, fresh.headers.get('connection')], [200, 'close'])
  const refused = await fetch(`${gate.base}/info`)
  t.same([refused.status, refused.headers.get('connection')], [401, 'close'])
  served.resolve()
  await stopped
  await t.rejects(fetch(`${gate.base}/info`), 'no new connection')
})

void test('a refusal waits for the body that still comes: a connection that was closed on it would take it along', async (t) => {
  const gate = await gated(t)
  const served = deferred()
  const stopped = gate.gateway.stop(HOUR, served.promise)
  const connection = await openRaw(gate.gateway.url)
  const body = 'x'.repeat(100_000)
  connection.write(
    head(
      'POST /api/copilotkit/agent/a/run HTTP/1.1',
      'Host: a',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ),
  )
  // The gateway has seen the head when it has answered a request that came later.
  await fetch(`${gate.base}/info`).then((answer) => answer.text())
  t.equal(connection.text(), '')
  connection.write(body)
  t.match(await connection.ended(), /^HTTP\/1\.1 401 [^]*"code":"credential-missing"/)
  served.resolve()
  await stopped
})

void test('nothing is begun for a request behind the last answer of a connection', async (t) => {
  const { started, answering } = opening('text/event-stream', 'data: 1\n\n')
  const gate = await gated(t, answering)
  const served = deferred()
  const stopped = gate.gateway.stop(HOUR, served.promise)
  const connection = await openRun(gate)
  await connection.until('data: 1')
  connection.write(head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${gate.alice}`))
  // It has been read when a request behind it has been answered.
  t.equal((await fetch(`${gate.base}/nowhere`)).status, 401)
  ;(await started).end('data: 2\n\n')
  t.equal(unchunked(await connection.ended()), 'data: 1\n\ndata: 2\n\n')
  t.equal(gate.upstream.requests.length, 1)
  served.resolve()
  await stopped
})
