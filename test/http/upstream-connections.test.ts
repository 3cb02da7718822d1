/** Connections to the upstream: one request at a time on each, used again, and let go of. */
import { test, type Test } from 'tap'
import { connectionsTo, type Connections, openUpstream, type UpstreamAnswer } from '../../src/http/upstream/upstream.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { startUpstream, json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const REQUEST = { method: 'GET', path: '/', headers: { 'x-request-id': 'r' } } as const

async function connected(t: Test, answer = ANSWER, options = {}): Promise<{ connections: Connections; sockets: Set<unknown> }> {
  const sockets = new Set<unknown>()
  const upstream = await startRawUpstream((socket) => {
    sockets.add(socket)
    socket.write(answer)
    if (answer.includes('close')) socket.end()
  })
  const connections = connectionsTo(upstream.url, { pipelining: 1, ...options })
  t.teardown(async () => {
    await connections.destroy()
    await upstream.close()
  })
  return { connections, sockets }
}

/** A request on a connection of its own; it is given back when it is over. */
async function ask(connections: Connections): Promise<string> {
  const connection = connections.take()
  const { body } = await connection.request(REQUEST)
  const text = await body.text()
  connections.give(connection)
  return text
}

void test('one request after the other takes one connection, those at the same time take one each', async (t) => {
  const { connections, sockets } = await connected(t)
  for (let at = 0; at < 5; at += 1) t.equal(await ask(connections), 'ok')
  t.equal(sockets.size, 1)
  t.equal(connections.size, 1)
  await Promise.all(Array.from({ length: 8 }, () => ask(connections)))
  t.equal(connections.size, 8)
  t.equal(sockets.size, 8)
  for (let at = 0; at < 5; at += 1) await ask(connections)
  t.equal(sockets.size, 8, 'and they are used again')
})

void test('one that was silent for too long is let go of, with all that was held of it', async (t) => {
  const { connections, sockets } = await connected(t, ANSWER, { keepAliveTimeout: 20 })
  await Promise.all(Array.from({ length: 50 }, () => ask(connections)))
  t.equal(sockets.size, 50)
  await until(() => connections.size === 0)
  t.equal(await ask(connections), 'ok', 'and a new one is opened')
})

void test('one that the upstream closes behind its answer is let go of', async (t) => {
  const { connections } = await connected(t, ANSWER.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
  for (let at = 0; at < 3; at += 1) t.equal(await ask(connections), 'ok')
  await until(() => connections.size === 0)
})

void test('one on which something went wrong is not used again', async (t) => {
  const { connections } = await connected(t)
  const connection = connections.take()
  connections.drop(connection)
  t.equal(connections.size, 0)
  connections.give(connection)
  t.equal(connections.size, 0)
  t.not(connections.take(), connection)
})

void test('nothing new is sent once they close, and what is under way is waited for', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  let answerIt = (): void => {}
  upstream.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('begun')
    answerIt = () => response.end()
  })
  const way = openUpstream({ url: upstream.url, timeouts: { connect: 1000, headers: 0, body: 0 } })
  t.teardown(() => way.close())
  const { signal } = new AbortController()
  const request = { method: 'GET', target: '/', headers: { 'x-request-id': 'r' } }
  const answer = (await way.send(request, signal)) as UpstreamAnswer
  let isClosed = false
  const closing = way.retire().then(() => (isClosed = true))
  t.match(await way.send(request, signal), { outcome: 'failed', maybeSent: false })
  t.notOk(isClosed)
  const parts: string[] = []
  const whole = new Promise<void>((resolve) =>
    answer.body.read({
      data: (chunk) => parts.push(String(chunk)) > 0,
      end(last) {
        if (last !== undefined) parts.push(String(last))
        resolve()
      },
      broken: (error) => t.fail(error.message),
    }),
  )
  answerIt()
  await whole
  await closing
  t.equal(parts.join(''), 'begun')
})

void test('a caller who leaves has their connection closed, and nobody else’s', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answer((_request, response) => void response.writeHead(200).write('begun'))
  const way = openUpstream({ url: upstream.url, timeouts: { connect: 1000, headers: 0, body: 0 } })
  t.teardown(() => way.close())
  const left = new AbortController()
  const request = { method: 'GET', target: '/', headers: { 'x-request-id': 'r' } }
  const mine = (await way.send(request, left.signal)) as UpstreamAnswer
  const others = (await way.send(request, new AbortController().signal)) as UpstreamAnswer
  const broken = new Promise<void>((resolve) =>
    mine.body.read({ data: () => true, end: () => t.fail('it has not come whole'), broken: () => resolve() }),
  )
  let isBroken = false
  others.body.read({ data: () => true, end: () => {}, broken: () => (isBroken = true) })
  left.abort()
  await broken
  upstream.answer(json({ whole: true }))
  const next = await way.send(request, new AbortController().signal)
  t.match(next, { outcome: 'answered', status: 200 })
  t.notOk(isBroken)
})
