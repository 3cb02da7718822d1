/** Requests as the public listener takes them: what waits of a body is held in few pieces, and comes whole and in order. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { CallerMessage } from '../../src/http/pipeline/request-body.ts'
import { chunked } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'

/** A server that keeps each request as it comes, and reads nothing of it by itself. */
async function listening(t: Test) {
  const messages: CallerMessage[] = []
  const server = createServer({ IncomingMessage: CallerMessage }, (message, response) => {
    messages.push(message)
    message.once('end', () => response.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    next: async (): Promise<CallerMessage> => {
      await until(() => messages.length > 0)
      return messages.shift()!
    },
  }
}

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'

void test('a body in chunks of a byte waits in few pieces, and no more of it is read than of others', async (t) => {
  const { port, next } = await listening(t)
  const sent = 'each byte of it is a chunk '.repeat(20_000)
  const socket = connect(port, '127.0.0.1')
  socket.write(HEAD + chunked([...sent]))
  const message = await next()
  await until(() => message.readableLength >= message.readableHighWaterMark)
  const most = message.readableLength
  // Once read, what waited comes in the pieces that it waited in.
  const pieces: number[] = []
  let came = ''
  message.on('data', (piece: Buffer) => {
    pieces.push(piece.length)
    came += piece.toString()
  })
  t.ok(most < 2 * message.readableHighWaterMark, `${most} bytes waited`)
  socket.write('0\r\n\r\n')
  await once(message, 'end')
  t.equal(came, sent)
  t.ok(pieces.length < sent.length / 500, `${pieces.length} pieces`)
  socket.destroy()
})

void test('what was sent comes, also where nothing comes behind it', async (t) => {
  const { port, next } = await listening(t)
  const socket = connect(port, '127.0.0.1')
  let came = ''
  socket.write(HEAD)
  const message = await next()
  message.setEncoding('latin1').on('data', (piece: string) => (came += piece))
  for (const pieces of [['a'], ['b', 'c'], ['d'.repeat(2000)], ['e', 'f'.repeat(5000), 'g']]) {
    socket.write(chunked(pieces))
    const all = came + pieces.join('')
    await until(() => came === all)
  }
  socket.write('0\r\n\r\n')
  await once(message, 'end')
  t.ok(message.complete)
  socket.destroy()
})

void test('bodies of every cut come whole, one after the other on a connection', async (t) => {
  const { port, next } = await listening(t)
  const bodies = [
    [],
    ['a'],
    ['a', 'b'.repeat(1023)],
    ['c'.repeat(1024)],
    ['d', 'e'.repeat(70_000), 'f'],
    Array<string>(3000).fill('gh'),
  ]
  const socket = connect(port, '127.0.0.1')
  socket.write(bodies.map((pieces) => `${HEAD}${chunked(pieces)}0\r\n\r\n`).join(''))
  for (const pieces of bodies) t.equal(await text(await next()), pieces.join(''))
  socket.destroy()
})

void test('a body of a known length is no different', async (t) => {
  const { port, next } = await listening(t)
  for (const length of [1, 1000, 1024, 200_000]) {
    const asked = request({ port, method: 'POST', headers: { 'content-length': length } })
    asked.on('error', () => {}).end('x'.repeat(length))
    t.equal((await text(await next())).length, length)
    await once(asked, 'response')
    asked.destroy()
  }
})

void test('a caller who leaves in the middle of it breaks it off', async (t) => {
  const { port, next } = await listening(t)
  const socket = connect(port, '127.0.0.1')
  socket.write(HEAD + chunked(['a', 'b']))
  const message = await next()
  const read = text(message)
  socket.destroy()
  await t.rejects(read, { code: 'ECONNRESET' })
})
