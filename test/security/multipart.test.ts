/**
 * A multipart type that two parsers read differently: Rack took the last of two boundaries where the proxy before it had
 * looked at the first (GHSA-vgpv-f759-9wx3), and a boundary may hold the name of another media type, which a runtime that only
 * searches the header for `application/json` would find (runtime-behaviour.md, "Single-route transport"). One type and one boundary pass, written anew; the
 * recording behind it goes through as it comes, bounded and untouched; to a single-route upstream, which takes no multipart, it
 * goes as JSON. Multipart is of the multi-route transport alone: where it streams, no other pair is to be looked at.
 */
import { test } from 'tap'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { ask, firstAnswer, openRaw, requestBytes } from '../../testing/support/raw.ts'
import { json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { BASE, BODY_TARGETS, codeIn } from './thread-routes.ts'

const RECORDING = Buffer.from(Array.from({ length: 1024 }, (_, at) => at % 256))

/** A form of the one part that is asked for. */
const formOf = (boundary: string): Buffer =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="audio"; filename="a.webm"\r\n`),
    Buffer.from('content-type: audio/webm\r\n\r\n'),
    RECORDING,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])

const BODY = formOf('b')

const TARGET = `${BASE}/transcribe`

/** Sends a recording of this type; the type is written a byte a character. */
async function send(base: string, token: string, type: string, body: Uint8Array = BODY) {
  const framing = [`Content-Type: ${type}`, `Content-Length: ${body.length}`]
  return ask(base, { target: TARGET, token, body, framing })
}

void testEachPair('bytes and length arrive as they were sent', async (t, pair) => {
  // As long as browsers make them: readers of forms may ask for that.
  const boundary = 'b'.repeat(30)
  const body = formOf(boundary)
  const { gateway, alice, upstream } = await gated(t, json({ text: 'hello' }), { pair })
  const answer = await send(gateway.url, alice, `multipart/form-data; boundary=${boundary}`, body)
  t.equal(answer.status, 200)
  t.match(answer.body, '{"text":"hello"}')
  if (pair.upstream === 'single-route') {
    t.same(upstream.requests[0]?.json, { audio: RECORDING.toString('base64'), mimeType: 'audio/webm', filename: 'a.webm' })
    return
  }
  t.ok(upstream.requests[0]?.body.equals(body))
  t.same(upstream.requests[0]?.headers.get('content-length'), [String(body.length)])
  t.notOk(upstream.requests[0]?.headers.has('transfer-encoding'))
})

void test('the content type is rebuilt of the boundary alone', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const [sent, arrived] of [
    ['multipart/form-data; boundary=b', 'multipart/form-data; boundary=b'],
    ['MULTIPART/Form-Data;BOUNDARY=b', 'multipart/form-data; boundary=b'],
    ['multipart/form-data   ;   boundary=b', 'multipart/form-data; boundary=b'],
    ['multipart/form-data; boundary="b"', 'multipart/form-data; boundary="b"'],
    ['multipart/form-data; boundary="a b:c"', 'multipart/form-data; boundary="a b:c"'],
    ['multipart/form-data; boundary=----WebKitFormBoundaryX', 'multipart/form-data; boundary=----WebKitFormBoundaryX'],
    [`multipart/form-data; boundary=${'b'.repeat(70)}`, `multipart/form-data; boundary=${'b'.repeat(70)}`],
  ] as const) {
    t.equal((await send(gateway.url, alice, sent)).status, 200, sent)
    t.same(upstream.requests.at(-1)?.headers.get('content-type'), [arrived], sent)
    t.ok(upstream.requests.at(-1)?.body.equals(BODY), sent)
  }
})

const OTHER_TYPES = [
  'multipart/form-data',
  'multipart/form-data;',
  'multipart/form-data; boundary',
  'multipart/form-data; boundary=',
  'multipart/form-data; boundary=""',
  'multipart/form-data; boundary="b',
  'multipart/form-data; boundary=b"',
  "multipart/form-data; boundary='b'; boundary=b",
  'multipart/form-data; boundary="b\\"c"',
  'multipart/form-data; boundary="b\\\\"',
  'multipart/form-data; boundary=a/b',
  'multipart/form-data; boundary=application/json',
  'multipart/form-data; boundary="application/json"',
  'multipart/form-data; boundary="a b "',
  'multipart/form-data; boundary=a b',
  'multipart/form-data; boundary = b',
  'multipart/form-data; boundary=b; boundary=c',
  'multipart/form-data; boundary=b; boundary=b',
  'multipart/form-data; boundary="b"; boundary=c',
  'multipart/form-data; boundary=b;boundary',
  'multipart/form-data; boundary=b;',
  'multipart/form-data; boundary=b; charset=utf-8',
  'multipart/form-data; charset=utf-8; boundary=b',
  'multipart/form-data; x="; boundary=c"; boundary=b',
  'multipart/form-data; xboundary=b',
  "multipart/form-data; boundary*=utf-8''b",
  'multipart/form-data; boundary*0=b; boundary*1=c',
  'multipart/form-data; boundary=b, application/json',
  'multipart/form-data, application/json; boundary=b',
  'application/json, multipart/form-data; boundary=b',
  'application/json; multipart/form-data; boundary=b',
  'multipart/form-data\t; boundary=b',
  'multipart/form-data; boundary=b\tx',
  'multipart/form-data; boundary=b\u00fc',
  'multipart/form-data boundary=b',
  'multipart/form-data: boundary=b',
  `multipart/form-data; boundary=${'b'.repeat(71)}`,
  `multipart/form-data; boundary="${'b'.repeat(71)}"`,
  'multipart/form-datax; boundary=b',
  'multipart/mixed; boundary=b',
  'multipart/related; boundary=b; type=application/json',
  'multipart/*; boundary=b',
  'application/x-www-form-urlencoded',
  'audio/webm',
  '',
]

void testEachPair('a content type with another reading is 415', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const type of OTHER_TYPES) {
    const answer = await send(gateway.url, alice, type)
    t.same([answer.status, codeIn(answer)], [415, 'media-type-unsupported'], type)
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('a coding, or a second type, does not come along', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const type = 'Content-Type: multipart/form-data; boundary=b'
  for (const [lines, status] of [
    [[type, 'Content-Encoding: gzip'], 415],
    [[type, 'Content-Encoding: br, identity'], 415],
    [[type, 'Content-Type: application/json'], 400],
    [['Content-Type: application/json', type], 400],
    [[type, type], 400],
  ] as const) {
    const framing = [...lines, `Content-Length: ${BODY.length}`]
    t.equal((await gateway.ask({ target: TARGET, token: alice, body: BODY, framing })).status, status, lines.join(' | '))
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('only transcribe takes one', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const targets = [...BODY_TARGETS.map(({ target }) => target), `${BASE}/agent/default/stop/t1`, `${BASE}/threads/t1/archive`]
  const form = '--b\r\ncontent-disposition: form-data; name="threadId"\r\n\r\nt1\r\n--b--\r\n'
  for (const target of targets) {
    for (const body of ['{"threadId":"t1"}', form]) {
      const framing = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${body.length}`]
      const answer = await gateway.ask({ target, token: alice, body, framing })
      t.same([answer.status, codeIn(answer)], [415, 'media-type-unsupported'], target)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('JSON goes to transcribe too, checked as JSON is, and without either there is nothing', async (t, pair) => {
  const { client } = pair
  const { base, call, alice, upstream } = await gated(t, undefined, { pair })
  t.equal(
    (await call(`${base}/transcribe`, { token: alice, body: { audio: 'AAAA', mimeType: 'audio/webm', threadId: 't2' } })).status,
    200,
  )
  t.same(upstream.requests[0]?.json, { audio: 'AAAA', mimeType: 'audio/webm' })
  const nothing = await call(`${base}/transcribe`, { method: 'POST', token: alice })
  t.equal(nothing.status, client === 'single-route' ? 400 : 415, 'an envelope has a type, and no body inside')
})

const REQUEST = (token: string, framing: string): Buffer =>
  requestBytes({
    target: TARGET,
    token,
    body: '',
    framing: ['Content-Type: multipart/form-data; boundary=b', framing],
    keepAlive: true,
  })

void test('beyond its bound it is 413, stated or not, and the upstream never sees a whole one', async (t) => {
  const { gateway, alice, upstream } = await gated(t, json({}), { config: { limits: { runBody: '1KiB' } } })
  const stated = await openRaw(gateway.url)
  stated.write(REQUEST(alice, 'Content-Length: 2000'))
  t.equal(firstAnswer(await stated.until(/\r\n\r\n\{.*\}/)).status, 413)
  stated.destroy()
  t.same(upstream.requests, [])

  const chunked = await openRaw(gateway.url)
  chunked.write(REQUEST(alice, 'Transfer-Encoding: chunked'))
  const part = `200\r\n${'x'.repeat(512)}\r\n`
  chunked.write(part)
  await until(() => upstream.beginnings() === 1)
  chunked.write(`${part.repeat(4)}0\r\n\r\n`)
  const answer = firstAnswer(await chunked.until(/\r\n\r\n\{.*\}/))
  t.equal(answer.status, 413)
  t.match(answer.body, '"code":"body-too-large"')
  chunked.destroy()
  await upstream.arrived(1)
  t.ok(upstream.requests[0]!.body.length <= 1024, 'no more than the bound arrived, on a connection that broke off')
})

void test('the bound is exact: its last byte passes, one more does not', async (t) => {
  const { gateway, alice, upstream } = await gated(t, json({}), { config: { limits: { runBody: '1KiB' } } })
  for (const [length, status] of [
    [1024, 200],
    [1025, 413],
  ] as const) {
    const body = Buffer.alloc(length, 'x')
    t.equal((await send(gateway.url, alice, 'multipart/form-data; boundary=b', body)).status, status)
    const chunked = Buffer.concat([Buffer.from(`${length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')])
    const framing = ['Content-Type: multipart/form-data; boundary=b', 'Transfer-Encoding: chunked']
    t.equal((await gateway.ask({ target: TARGET, token: alice, body: chunked, framing })).status, status)
  }
  const whole = upstream.requests.filter(({ body }) => body.length === 1024)
  t.equal(whole.length, 2)
})

void test('it is not held: the upstream has the first part before the second is sent', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const connection = await openRaw(gateway.url)
  connection.write(REQUEST(alice, 'Transfer-Encoding: chunked'))
  connection.write(`200\r\n${'x'.repeat(512)}\r\n`)
  await until(() => upstream.beginnings() === 1)
  connection.write('1\r\ny\r\n0\r\n\r\n')
  await upstream.arrived(1)
  t.equal(upstream.requests[0]?.body.length, 513)
  t.equal(firstAnswer(await connection.until('{}')).status, 200)
  connection.destroy()
})

void test('a length that was stated is stated upstream before the whole of it has come; none is made up', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const [framing, first, second, lengths, codings] of [
    ['Content-Length: 4', 'xx', 'yy', ['4'], undefined],
    ['Transfer-Encoding: chunked', '2\r\nxx\r\n', '2\r\nyy\r\n0\r\n\r\n', undefined, ['chunked']],
  ] as const) {
    const before = upstream.requests.length
    const connection = await openRaw(gateway.url)
    connection.write(REQUEST(alice, framing))
    connection.write(first)
    await until(() => upstream.beginnings() === before + 1)
    connection.write(second)
    t.equal(firstAnswer(await connection.until('{}')).status, 200)
    connection.destroy()
    const arrived = upstream.requests.at(-1)!
    t.equal(arrived.body.toString(), 'xxyy')
    t.same([arrived.headers.get('content-length'), arrived.headers.get('transfer-encoding')], [lengths, codings])
  }
})

void test('a caller who leaves in the middle breaks it off upstream', async (t) => {
  const { gateway, alice, upstream } = await gated(t, () => {})
  const connection = await openRaw(gateway.url)
  connection.write(REQUEST(alice, 'Content-Length: 2000'))
  connection.write('x'.repeat(500))
  await until(() => upstream.beginnings() === 1)
  connection.destroy()
  await upstream.arrived(1)
  t.equal(upstream.requests[0]?.body.length, 500)
})
