/** What of the upstream's answer headers reaches the caller: nothing hop-by-hop, nothing of CORS, nothing that a cache may use. */
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { json } from '../../testing/support/upstream.ts'

const TELLING = {
  'access-control-allow-origin': '*',
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'x-y',
  location: '/elsewhere',
  refresh: '0; url=/elsewhere',
  etag: '"a"',
  age: '10',
  expires: 'Thu, 01 Jan 2099 00:00:00 GMT',
  'last-modified': 'Thu, 01 Jan 2020 00:00:00 GMT',
  'cache-control': 'public, max-age=3600',
  'x-request-id': 'theirs',
  'proxy-authenticate': 'Basic',
  trailer: 'x-t',
}

void test('a plain answer loses what is not for the caller and is private', async (t) => {
  const { base, alice } = await gated(
    t,
    json({ a: 1 }, 200, {
      ...TELLING,
      connection: 'keep-alive, x-hop',
      'x-hop': '1',
      'x-agent': 'kept',
      'set-cookie': ['a=1', 'b=2'],
    }),
  )
  const answer = await call(`${base}/info`, { token: alice })
  t.equal(answer.status, 200)
  t.same(answer.json, { a: 1 })
  for (const name of Object.keys(TELLING).filter((one) => !['cache-control', 'x-request-id'].includes(one))) {
    t.notOk(answer.headers.has(name), name)
  }
  t.notOk(answer.headers.has('x-hop'), 'a header named in Connection')
  t.equal(answer.headers.get('cache-control'), 'private, no-store')
  t.not(answer.headers.get('x-request-id'), 'theirs')
  t.equal(answer.headers.get('x-agent'), 'kept')
  t.same(answer.headers.getSetCookie(), ['a=1', 'b=2'])
})

void test('a stream is not cached, not transformed and not buffered', async (t) => {
  for (const type of ['text/event-stream', 'text/event-stream; charset=utf-8', 'application/vnd.ag-ui.event+proto']) {
    const { base, alice } = await gated(t, (_request, response) => {
      response.writeHead(200, { ...TELLING, 'content-type': type, 'x-accel-buffering': 'yes' }).end('data: {}\n\n')
    })
    const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
    t.equal(answer.headers.get('content-type'), type)
    t.equal(answer.headers.get('cache-control'), 'no-cache, no-transform')
    t.equal(answer.headers.get('x-accel-buffering'), 'no')
    for (const name of ['etag', 'expires', 'age', 'access-control-allow-origin', 'location', 'trailer']) {
      t.notOk(answer.headers.has(name), `${type}: ${name}`)
    }
  }
})

void test('a stream of a stated length has none here, because keep-alive comments make it longer', async (t) => {
  const rest = Promise.withResolvers<null>()
  const { base, alice } = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': '20' }).write('data: {}\n\n')
    void rest.promise.then(() => response.end('data: {}\n\n'))
  })
  const answer = await fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput('t1')),
  })
  t.notOk(answer.headers.has('content-length'))
  rest.resolve(null)
  t.equal(await answer.text(), 'data: {}\n\ndata: {}\n\n')
})

void test('a stream that has come whole says how long it is, however its upstream framed it', async (t) => {
  const events = 'data: {"a":"\u00fc\u20ac"}\n\n'
  const length = Buffer.byteLength(events)
  const type = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a=1\r\nset-cookie: b=2'
  const framings = [
    `${type}\r\ncontent-length: ${length}\r\n\r\n${events}`,
    `${type}\r\ntransfer-encoding: chunked\r\n\r\n${length.toString(16)}\r\n${events}\r\n0\r\n\r\n`,
  ]
  const upstream = await startRawUpstream((socket, _request, before) => void socket.write(framings[before]!))
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  for (const framing of framings) {
    const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
    t.equal(answer.headers.get('content-length'), String(length), framing)
    t.notOk(answer.headers.has('transfer-encoding'))
    t.equal(answer.headers.get('cache-control'), 'no-cache, no-transform')
    t.same(answer.headers.getSetCookie(), ['a=1', 'b=2'])
    t.equal(answer.text, events)
  }
})

void test('a stream without content has no length', async (t) => {
  const upstream = await startRawUpstream(
    (socket) => void socket.write('HTTP/1.1 204 None\r\ncontent-type: text/event-stream\r\n\r\n'),
  )
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.equal(answer.status, 204)
  t.notOk(answer.headers.has('content-length'))
})

void test('Vary of the upstream and of the gateway are one list', async (t) => {
  const { base, alice } = await gated(t, json({}, 200, { vary: 'Accept' }), {
    config: { cors: { origins: ['https://a.example'] } },
  })
  const answer = await call(`${base}/info`, { token: alice, headers: { origin: 'https://a.example' } })
  t.equal(answer.headers.get('vary'), 'Accept, Origin')
  const ours = await gated(t, json({}), { config: { cors: { origins: ['https://a.example'] } } })
  const listed = await call(`${ours.base}/info`, { token: ours.alice, headers: { origin: 'https://a.example' } })
  t.equal(listed.headers.get('vary'), 'Origin')
  const plain = await gated(t, json({}, 200, { vary: 'Accept' }))
  t.equal((await call(`${plain.base}/info`, { token: plain.alice })).headers.get('vary'), 'Accept', 'without CORS it is theirs')
})

void test('answers of the gateway itself are JSON in one form, stored by nobody', async (t) => {
  const { base, alice } = await gated(t)
  for (const [path, status] of [
    ['/nowhere', 404],
    ['/threads/foreign/messages', 403],
    ['/threads/foreign/state', 404],
    ['/info/', 400],
  ] as const) {
    const answer = await call(`${base}${path}`, { token: alice })
    const { error, message, code } = answer.json as Record<string, unknown>
    t.equal(answer.status, status)
    t.equal(answer.headers.get('content-type'), 'application/json')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.match(answer.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
    t.equal(error, message)
    t.same(Object.keys(answer.json as object), ['error', 'message', 'code'])
    t.match(code, /^[a-z-]+$/)
  }
})
