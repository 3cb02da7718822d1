/**
 * A list that the filter can't read and a client can: compressed, in another charset, cut, doubled, of another type or too large.
 * A proxy that passes on what it could not filter shows everybody's threads (CWE-636, failing open; RFC 9110 §8.4 lets an upstream
 * send a coding that nobody asked for). What is no list for certain is a 502 and shows nothing of it.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { codeOf } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { sendRaw } from '../../testing/support/raw.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { BASE, codeIn, run } from './thread-routes.ts'

const LIST = `${BASE}/threads`
const SECRET = '{"threads":[{"id":"foreign","name":"secret"}]}'

function plain(status: number, headers: Record<string, string>, body: string | Buffer): Answering {
  return (_request, response) => void response.writeHead(status, headers).end(body)
}

const JSON_TYPE = { 'content-type': 'application/json' }

const UNREADABLE: Record<string, Answering> = {
  'not JSON': plain(200, JSON_TYPE, `${SECRET},`),
  'a list behind a guard': plain(200, JSON_TYPE, `)]}'\n${SECRET}`),
  'two lists': plain(200, JSON_TYPE, `${SECRET}\n${SECRET}`),
  'a list in a string': json(SECRET),
  'a list in a call': plain(200, JSON_TYPE, `show(${SECRET})`),
  'UTF-16': plain(200, JSON_TYPE, Buffer.from(SECRET, 'utf16le')),
  'half of it': plain(200, JSON_TYPE, SECRET.slice(0, -2)),
  'nothing at all': plain(200, JSON_TYPE, ''),
  'JSON behind a byte order mark': plain(200, JSON_TYPE, `\ufeff${SECRET}`),
  'another type': plain(200, { 'content-type': 'text/plain' }, SECRET),
  'no type': plain(200, {}, SECRET),
  'another charset': plain(200, { 'content-type': 'application/json; charset=utf-16' }, SECRET),
  'two charsets': plain(200, { 'content-type': 'application/json; charset=utf-8; charset=utf-16' }, SECRET),
  'another parameter': plain(200, { 'content-type': 'application/json; profile=x' }, SECRET),
  'two types': plain(200, { 'content-type': 'application/json, text/html' }, SECRET),
  'JSON as a parameter of another type': plain(200, { 'content-type': 'text/plain; application/json' }, SECRET),
  'a type that begins like JSON': plain(200, { 'content-type': 'application/json-seq' }, SECRET),
  'a charset that begins like utf-8': plain(200, { 'content-type': 'application/json; charset=utf-8x' }, SECRET),
  'a type that ends like JSON': plain(200, { 'content-type': 'x-application/json' }, SECRET),
  'a type that is nearly JSON': plain(200, { 'content-type': 'application/vnd.api+json' }, SECRET),
  multipart: plain(200, { 'content-type': 'multipart/mixed; boundary=b' }, `--b\r\n\r\n${SECRET}\r\n--b--`),
  'JSON lines': plain(200, { 'content-type': 'application/x-ndjson' }, SECRET),
  compressed: plain(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync(SECRET)),
  'compressed, and no header tells': plain(200, JSON_TYPE, gzipSync(SECRET)),
  'compressed by another name': plain(200, { ...JSON_TYPE, 'content-encoding': 'X-GZIP' }, gzipSync(SECRET)),
  'compressed with brotli': plain(200, { ...JSON_TYPE, 'content-encoding': 'br' }, brotliCompressSync(SECRET)),
  'compressed by deflate': plain(200, { ...JSON_TYPE, 'content-encoding': 'deflate' }, deflateSync(SECRET)),
  'compressed twice': plain(200, { ...JSON_TYPE, 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync(SECRET))),
  'compressed and not': plain(200, { ...JSON_TYPE, 'content-encoding': 'identity, gzip' }, gzipSync(SECRET)),
  'an unknown coding': plain(200, { ...JSON_TYPE, 'content-encoding': 'none' }, SECRET),
  'said to be compressed': plain(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, SECRET),
  'a page of HTML': plain(200, { 'content-type': 'text/html' }, SECRET),
  'a stream of events': plain(200, { 'content-type': 'text/event-stream' }, `data: ${SECRET}\n\n`),
  'no content': plain(204, {}, ''),
  accepted: plain(202, JSON_TYPE, SECRET),
  created: plain(201, JSON_TYPE, SECRET),
  'from a cache that changed it': plain(203, JSON_TYPE, SECRET),
  'many statuses': plain(207, JSON_TYPE, SECRET),
  'not modified': plain(304, {}, ''),
  'a redirect for good': plain(308, { ...JSON_TYPE, location: '/x' }, SECRET),
  'partial content': plain(206, { ...JSON_TYPE, 'content-range': 'bytes 0-1/2' }, SECRET),
  'a redirect': plain(302, { ...JSON_TYPE, location: '/x' }, SECRET),
  'a list at the top': json([{ id: 'foreign' }]),
  'no threads': json({ items: [{ id: 'foreign' }] }),
  'threads that are no list': json({ threads: { id: 'foreign' } }),
  'an item without an id': json({ threads: [{ id: 'own' }, { name: 'secret' }] }),
  'an item with a number for an id': json({ threads: [{ id: 1 }] }),
  'an item whose id is a list': json({ threads: [{ id: ['own'] }] }),
  'an item whose id is null': json({ threads: [{ id: null, name: 'secret' }] }),
  'an item that is a list': json({ threads: [['own', 'secret']] }),
  'an item whose id is only inherited': plain(200, JSON_TYPE, '{"threads":[{"__proto__":{"id":"own"},"name":"secret"}]}'),
  'threads that are only inherited': plain(200, JSON_TYPE, '{"__proto__":{"threads":[{"id":"own","name":"secret"}]}}'),
  null: json(null),
  'an item that is none': json({ threads: ['own'] }),
  'a cursor that is no string': json({ threads: [{ id: 'own' }], nextCursor: 5 }),
}

void testEachPair('an answer that is no list is 502 upstream-unusable and shows nothing of it', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair })
  t.equal(await run(gateway, alice, 'own'), 200)
  for (const [name, answering] of Object.entries(UNREADABLE)) {
    upstream.answer(answering)
    const text = await sendRaw(gateway.url, gateway.bytes({ target: LIST, token: alice }))
    t.match(text, /^HTTP\/1\.1 502 [^]*"code":"upstream-unusable"/, name)
    t.notMatch(text, /secret|foreign|location|content-encoding|etag/i, name)
    t.same(upstream.requests.at(-1)?.headers.get('accept-encoding'), ['identity'], 'no coding was asked for')
  }
  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8']) {
    upstream.answer(plain(200, { 'content-type': type, 'content-encoding': 'identity' }, '{"threads":[{"id":"own"}]}'))
    t.equal((await gateway.ask({ target: LIST, token: alice })).body, '{"threads":[{"id":"own"}],"nextCursor":null}', type)
  }
})

void testEachPair('a caller’s wish for a coding, a range or a condition does not reach the upstream', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, json({ threads: [] }), { pair })
  const lines = [
    'Accept-Encoding: gzip, br',
    'Range: bytes=0-10',
    'If-None-Match: "x"',
    'If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT',
    'If-Range: "x"',
    'TE: gzip',
  ]
  t.equal((await gateway.ask({ target: LIST, token: alice, lines })).body, '{"threads":[],"nextCursor":null}')
  const { headers } = upstream.requests.at(-1)!
  t.same(headers.get('accept-encoding'), ['identity'])
  for (const name of ['range', 'if-none-match', 'if-modified-since', 'if-range', 'te']) t.notOk(headers.has(name), name)
})

void testEachPair('an answer that is no list is let go at once, and not read to its end', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const [status, headers] of [
    [202, JSON_TYPE],
    [200, { 'content-type': 'text/plain' }],
    [200, { ...JSON_TYPE, 'content-encoding': 'gzip' }],
  ] as const) {
    // The end of this answer never comes.
    upstream.answer((_request, response) => void response.writeHead(status, headers).write(SECRET))
    t.equal((await gateway.ask({ target: LIST, token: alice })).status, 502)
    await until(() => upstream.requests.at(-1)!.left())
  }
})

void testEachPair('a redirect in place of a list has its own reason', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const [status, reason] of [
    [299, 'upstream-list-unreadable'],
    [300, 'upstream-redirect'],
    [399, 'upstream-redirect'],
  ] as const) {
    upstream.answer(plain(status, JSON_TYPE, SECRET))
    const answer = await gateway.ask({ target: LIST, token: alice })
    t.same([answer.status, codeIn(answer)], [502, 'upstream-unusable'], String(status))
    const logged = () => gateway.lines.filter((line) => line['msg'] === 'request')
    await until(() => logged().at(-1)?.['requestId'] === answer.headers.get('x-request-id'))
    t.equal(logged().at(-1)?.['reason'], reason, String(status))
  }
})

void testEachPair('an answer that breaks off is no list, however much of it came', async (t, pair) => {
  for (const [name, bytes] of Object.entries({
    'short of its length': `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n${SECRET}`,
    'short of its last chunk': `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${SECRET.length.toString(16)}\r\n${SECRET}\r\n`,
    'in a coding that was not asked for': `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  })) {
    const upstream = await startRawUpstream((socket) => void socket.end(bytes), { pair })
    t.teardown(() => upstream.close())
    const { gateway, alice } = await gateBefore(t, upstream.url, { pair })
    const text = await sendRaw(gateway.url, gateway.bytes({ target: LIST, token: alice }))
    t.match(text, /^HTTP\/1\.1 502 /, name)
    t.notMatch(text, /secret|foreign/, name)
    const lists = upstream.requests.filter((request) => /^GET \S*\/threads /.test(request))
    t.equal(lists.length, 1, 'and nothing is sent twice')
  }
})

void testEachPair('a page that is too large is 502, however long it goes on', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(
    t,
    (_request, response) => {
      response.writeHead(200, JSON_TYPE).write('{"threads":[')
      const filler = ' '.repeat(1024 * 1024)
      const fill = (): void => {
        while (!response.destroyed && response.write(filler));
        if (!response.destroyed) response.once('drain', fill)
      }
      fill()
    },
    { pair },
  )
  const answer = await gateway.ask({ target: LIST, token: alice })
  t.same([answer.status, codeIn(answer)], [502, 'upstream-unusable'])
  t.equal(upstream.requests.length, 1)
})

void testEachPair('a second page that is unreadable spoils the list: half of it would look whole', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair })
  t.equal(await run(gateway, alice, 'own'), 200)
  for (const [name, answering] of Object.entries(UNREADABLE)) {
    upstream.answer((request, response) =>
      request.target.includes('cursor=')
        ? answering(request, response)
        : json({ threads: [{ id: 'own' }], nextCursor: 'two' })(request, response),
    )
    const answer = await gateway.ask({ target: LIST, token: alice })
    t.same([answer.status, codeIn(answer)], [502, 'upstream-unusable'], name)
    t.notMatch(answer.body, 'own')
  }
})

void testEachPair('a refusal of the upstream’s passes, an HTML one as our JSON', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const status of [401, 422, 500]) {
    upstream.answer(json({ error: 'no lists here' }, status))
    const answer = await gateway.ask({ target: LIST, token: alice })
    t.equal(answer.status, status)
    t.match(answer.body, '{"error":"no lists here"}')
  }
  upstream.answer(plain(404, { 'content-type': 'text/html' }, 'secret'))
  const answer = await gateway.ask({ target: LIST, token: alice })
  t.same([answer.status, codeIn(answer)], [404, 'upstream-unusable'])
})

void testEachPair('a list from an upstream that breaks off before its answer is 502 upstream-unreachable', async (t, pair) => {
  const { base, call, alice, upstream } = await gated(t, (_request, response) => void response.destroy(), { pair })
  const answer = await call(`${base}/threads`, { token: alice })
  t.equal(answer.status, 502)
  t.equal(codeOf(answer), 'upstream-unreachable')
  t.equal(upstream.requests.length, 1)
})
