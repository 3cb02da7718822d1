/** The register of open streams by itself: which of them end, when, and what is left behind. */
import { createServer } from 'node:http'
import { PassThrough, Writable } from 'node:stream'
import { mock } from 'node:test'
import { test } from 'tap'
import { listen } from '../../examples/http.ts'
import type { StreamForm } from '../../src/core/wire/headers.ts'
import { ArrivingBody, streamedBody } from '../../src/http/upstream/answer-body.ts'
import { makeOpenAnswers, type AnswerRules } from '../../src/http/upstream/open-answers.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { callerOf } from '../../testing/support/stream-caller.ts'
import { until } from '../../testing/support/until.ts'

const NOW = 1_000_000_000_000
/** Rules by which no stream ends, and nothing is put in. */
const FOREVER: AnswerRules = { keepAlive: 0, tokenExpiry: 'ignore', grace: 0, sendTimeout: 0 }
/** Far more than the system keeps for a connection, and as much of it as makes the system take more. */
const LARGE = 64 * 2 ** 20
const PART = LARGE / 8
const ENDED = /"type":"RUN_ERROR".*"code":"credential-expired"/

/** Passes a stream of a credential with so many milliseconds left, at a clock that stands still; tells what came of it. */
function opened(rules: Partial<AnswerRules>, left: number | undefined, form: StreamForm = 'events') {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const response = new PassThrough()
  const body = new PassThrough()
  const credential = left === undefined ? null : { tokenId: 'j', issuedAt: 0, expiresAt: NOW + left }
  streams.pass(
    streamedBody(body),
    callerOf(response),
    form,
    { requestId: 'r-1', userId: 'corp:alice', credential },
    { ...FOREVER, ...rules },
  )
  const ended = response.writableEnded
  const text = String(response.read() ?? '')
  response.destroy()
  return { ended, text, body }
}

void test('a stream ends when its credential has, by the rule and not before', (t) => {
  for (const [rules, left, ends] of [
    [{ tokenExpiry: 'close' }, 0, true],
    [{ tokenExpiry: 'close' }, 1, false],
    [{ tokenExpiry: 'close' }, undefined, false],
    [{ tokenExpiry: 'grace', grace: 1000 }, -1000, true],
    [{ tokenExpiry: 'grace', grace: 1000 }, -999, false],
    [{ tokenExpiry: 'ignore' }, -1000, false],
    // Further away than a timer can wait.
    [{ tokenExpiry: 'close' }, 2 ** 31 * 2, false],
  ] as const) {
    const { ended, text, body } = opened(rules, left)
    t.equal(ended, ends, `${JSON.stringify(rules)} ${left}`)
    if (ends) t.match(text, ENDED)
    if (ends) t.ok(body.destroyed, 'the upstream is left')
  }
  t.end()
})

void test('of one whose credential has ended nothing is handed on, though all of it has come', (t) => {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const response = new PassThrough()
  const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
  body.push(Buffer.from('data: {"delta":"secret"}\n\n'))
  body.finish()
  const owner = { requestId: 'r-1', userId: 'corp:alice', credential: { tokenId: 'j', issuedAt: 0, expiresAt: NOW } }
  const lengths: (number | undefined)[] = []
  streams.pass(body, callerOf(response, lengths), 'events', owner, { ...FOREVER, tokenExpiry: 'close' })
  const text = String(response.read())
  t.match(text, ENDED)
  t.notMatch(text, 'secret')
  t.same(lengths, [undefined], 'what is said in its place is not as long as it')
  response.destroy()
  t.end()
})

void test('one that waits behind another answer and breaks off in the middle of a frame ends the connection', async (t) => {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const server = createServer((_request, response) => {
    const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
    const writeHead = (): void => void response.writeHead(200, { 'content-type': 'application/vnd.ag-ui.event+proto' })
    streams.pass(
      body,
      { ...callerOf(response), head: writeHead },
      'frames',
      { requestId: 'r-1', userId: 'corp:alice', credential: null },
      FOREVER,
    )
    body.push(Buffer.from([0, 0, 0]))
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  t.teardown(() => server.close())
  const caller = await openRaw(origin)
  caller.write(head('GET / HTTP/1.1', 'Host: a').repeat(2))
  await until(() => streams.count() === 2)
  streams.endOf(new Set(streams.owners().slice(1)))
  await caller.ended()
  await until(() => streams.count() === 0)
})

void test('who does not read is kept no comments beyond what there is room for, and gets them again when they do', async (t) => {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const response = new PassThrough({ highWaterMark: 64 })
  const owner = { requestId: 'r-1', userId: 'corp:alice', credential: null }
  streams.pass(streamedBody(new PassThrough()), callerOf(response), 'events', owner, { ...FOREVER, keepAlive: 1 })
  t.teardown(() => response.destroy())
  await until(() => response.writableNeedDrain)
  const kept = (): number => response.readableLength + response.writableLength
  const before = kept()
  for (let waited = 0; waited < 50; waited += 1) await new Promise((resolve) => setTimeout(resolve, 1))
  t.equal(kept(), before)
  response.resume()
  await until(() => !response.writableNeedDrain)
  response.pause()
  await until(() => kept() > 0)
})

void test('a reader of one large piece is cut when nothing of it was taken from one look to the next, and not before', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const queue = { bytesWritten: 1000, writeQueueSize: 900 }
  const response = Object.assign(new Writable({ write: () => {} }), { socket: { _handle: queue } })
  const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
  body.push(Buffer.alloc(1000))
  body.finish()
  const ended: string[] = []
  const caller = { ...callerOf(response), onEnded: (why: string) => void ended.push(why) }
  streams.pass(
    body,
    caller,
    'plain',
    { requestId: 'r-1', userId: 'corp:alice', credential: null },
    { ...FOREVER, sendTimeout: 1000 },
  )
  for (let look = 0; look < 8; look += 1) {
    queue.writeQueueSize -= 1
    mock.timers.tick(1000)
    t.same(ended, [], 'a byte was taken')
  }
  mock.timers.tick(999)
  t.same(ended, [])
  mock.timers.tick(1)
  t.same(ended, ['stalled'])
  t.ok(response.destroyed)
  t.end()
})

void test('so it is over a connection, whose system tells what it has taken of a piece', async (t) => {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const ended: string[] = []
  const server = createServer((_request, response) => {
    const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
    const caller = { ...callerOf(response), head: () => {}, onEnded: (why: string) => void ended.push(why) }
    streams.pass(
      body,
      caller,
      'plain',
      { requestId: 'r-1', userId: 'corp:alice', credential: null },
      { ...FOREVER, sendTimeout: 60_000 },
    )
    body.push(Buffer.alloc(LARGE))
    body.finish()
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  t.teardown(() => server.close())
  const reader = await openRaw(origin)
  t.teardown(() => reader.destroy())
  let read = 0
  reader.socket.removeAllListeners('data')
  reader.socket.pause()
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  reader.write(head('GET / HTTP/1.1', 'Host: a'))
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  while (streams.count() === 0) await turn()
  // The bytes that the caller has read are counted here, and the clock goes on when they have.
  reader.socket.on('data', (chunk: Buffer) => {
    read += chunk.length
    if (read % PART < chunk.length) reader.socket.pause()
  })
  for (let parts = 1; parts * PART < LARGE && streams.count() > 0; parts += 1) {
    reader.socket.resume()
    while (read < parts * PART && streams.count() > 0) await turn()
    reader.socket.pause()
    mock.timers.tick(60_000)
  }
  t.same(ended, [])
  reader.socket.resume()
  while (streams.count() > 0) await turn()
  t.same(ended, [])
})

void test('a stream that nobody here can read ends without a word', (t) => {
  const { ended, text } = opened({ tokenExpiry: 'close' }, 0, 'opaque')
  t.same([ended, text], [true, ''])
  t.end()
})

void test('one with a length that ends early ends its connection: another answer is not read as its rest', async (t) => {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  let endFirst = (): void => {}
  let asked = 0
  const server = createServer((request, response) => {
    asked += 1
    if (request.url === '/first') {
      endFirst = () => response.end('first')
      return
    }
    if (request.url === '/third') return void response.end('third')
    const body = new ArrivingBody({ pause() {}, resume() {}, abort() {} })
    // The second piece waits for the reader, who waits for the first answer.
    for (let piece = 0; piece < 2; piece += 1) body.push(Buffer.from(`data: ${'a'.repeat(70_000)}\n\n`))
    body.finish()
    const writeHead = (length = 0): void => void response.writeHead(200, { 'content-length': length })
    const owner = { requestId: 'r-1', userId: 'corp:alice', credential: null }
    streams.pass(body, { ...callerOf(response), head: writeHead }, 'events', owner, FOREVER)
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  t.teardown(() => server.close())
  const caller = await openRaw(origin)
  t.teardown(() => caller.destroy())
  caller.write(['/first', '/second', '/third'].map((path) => head(`GET ${path} HTTP/1.1`, 'Host: a')).join(''))
  await until(() => asked === 3 && streams.count() === 1)
  streams.endOf(new Set(streams.owners()))
  endFirst()
  await until(() => caller.isClosed())
  t.notMatch(caller.text(), /RUN_ERROR|third/)
})

void test('those that are revoked end, and no others; and one that is opens no more', (t) => {
  const revoked = new Set<string>()
  const streams = makeOpenAnswers(
    () => NOW,
    makeMetrics().streams,
    (userId) => revoked.has(userId),
  )
  const credential = { tokenId: 'j', issuedAt: 0, expiresAt: undefined }
  const responses: PassThrough[] = []
  const open = (userId: string): PassThrough => {
    const response = new PassThrough()
    responses.push(response)
    streams.pass(streamedBody(new PassThrough()), callerOf(response), 'events', { requestId: 'r-1', userId, credential }, FOREVER)
    return response
  }
  const [alices, bobs] = [open('corp:alice'), open('corp:bob')]
  streams.endRevoked()
  t.same([alices.writableEnded, bobs.writableEnded], [false, false])
  revoked.add('corp:alice')
  streams.endRevoked()
  t.same([alices.writableEnded, bobs.writableEnded], [true, false])
  t.match(String(alices.read()), /"code":"credential-invalid"/)
  // Its request was admitted before the revocation, and the upstream took its time.
  const late = open('corp:alice')
  t.equal(late.writableEnded, true)
  t.match(String(late.read()), /"code":"credential-invalid"/)
  for (const response of responses) response.destroy()
  t.end()
})

void test('a caller who does not read is cut a while after the end', async (t) => {
  const streams = makeOpenAnswers(() => NOW, makeMetrics().streams)
  const response = new PassThrough({ highWaterMark: 1 })
  const owner = { requestId: 'r-1', userId: 'corp:alice', credential: { tokenId: 'j', issuedAt: 0, expiresAt: NOW } }
  streams.pass(streamedBody(new PassThrough()), callerOf(response), 'events', owner, {
    ...FOREVER,
    tokenExpiry: 'close',
  })
  t.equal(response.writableEnded, true)
  await until(() => response.destroyed)
  t.equal(streams.count(), 0)
})
