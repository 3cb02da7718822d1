/** A stream goes through event by event, whole, and only as fast as its reader: nothing is held back and nothing is lost. */
import type { ServerResponse } from 'node:http'
import { createHash } from 'node:crypto'
import { test } from 'tap'
import { openRun, unchunked } from '../../testing/support/event-stream.ts'
import { gated } from '../../testing/support/gated.ts'
import { deferred, until } from '../../testing/support/until.ts'

const QUIET = { config: { streams: { keepAlive: '0s' } } }

void test('the head comes before the first event, and each event before the next is written', async (t) => {
  const started = deferred<ServerResponse>()
  const gate = await gated(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      started.resolve(response)
    },
    QUIET,
  )
  const connection = await openRun(gate)
  const response = await started.promise
  t.match(await connection.until('\r\n\r\n'), /^HTTP\/1\.1 200 /)
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3', '\n\n', 'event: x\ndata: ü\n\n']) {
    const before = unchunked(connection.text())
    response.write(event)
    await until(() => unchunked(connection.text()).length > before.length)
    t.equal(
      Buffer.from(unchunked(connection.text()), 'latin1').toString('utf8'),
      Buffer.from(before, 'latin1').toString('utf8') + event,
    )
  }
  response.end()
  t.match(await connection.until(/\r\n0\r\n\r\n$/), /\r\n0\r\n\r\n$/)
  t.notOk(connection.isClosed(), 'an end that is proper leaves the connection open')
  connection.destroy()
})

void test('a caller who leaves closes the request upstream, and nothing stays open', async (t) => {
  const gate = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  })
  const open = async (): Promise<string | undefined> => {
    const text = await (await fetch(`${gate.gateway.healthUrl}/metrics`)).text()
    return /^threadwarden_open_streams (\d+)$/m.exec(text)?.[1]
  }
  const connections = await Promise.all(['t1', 't2', 't3'].map((id) => openRun(gate, id)))
  await Promise.all(connections.map((connection) => connection.until('data: 1')))
  t.equal(await open(), '3')
  connections[0]!.destroy()
  connections[1]!.socket.end()
  connections[2]!.socket.resetAndDestroy()
  await until(() => gate.upstream.requests.every((request) => request.left()))
  await until(async () => (await open()) === '0')
})

void test('a caller who leaves a plain answer closes its request upstream too', async (t) => {
  const gate = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' }).write('{"a":')
  })
  const connection = await openRun(gate)
  await connection.until('{"a":')
  connection.destroy()
  await until(() => gate.upstream.requests[0]!.left())
})

void test('a slow reader gets all of a large stream, and the upstream waits for it meanwhile', async (t) => {
  const EVENT = Buffer.from(`data: ${'x'.repeat(64 * 1024)}\n\n`)
  const COUNT = 512
  let written = 0
  let waited = false
  const gate = await gated(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const fill = (): void => {
        while (written < COUNT) {
          written += 1
          if (!response.write(EVENT)) {
            waited = true
            response.once('drain', fill)
            return
          }
        }
        response.end()
      }
      fill()
    },
    QUIET,
  )
  const answer = await fetch(`${gate.base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gate.alice}`, 'content-type': 'application/json' },
    body: '{"threadId":"t1"}',
  })
  // The body is not read yet: the upstream comes to a halt when the buffers on the way are full.
  let last = -1
  await until(async () => {
    const still = written === last
    last = written
    await new Promise((resolve) => setTimeout(resolve, 50))
    return still && waited && written === last
  })
  t.ok(written < COUNT, `the upstream stopped at ${written} of ${COUNT} events`)
  const hash = createHash('sha256')
  let bytes = 0
  // The global types of fetch do not say that a body is iterable; Node's is.
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    hash.update(chunk)
    bytes += chunk.length
  }
  t.equal(bytes, EVENT.length * COUNT)
  const expected = createHash('sha256')
  for (let at = 0; at < COUNT; at += 1) expected.update(EVENT)
  t.equal(hash.digest('hex'), expected.digest('hex'))
})
