/** A recording goes through as it comes: bounded, its bytes untouched, its content type written anew. */
import { test } from 'tap'
import { call, codeOf } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { firstAnswer, head, openRaw } from '../support/raw.ts'
import { json } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const BODY = Buffer.concat([
  Buffer.from('--b\r\ncontent-disposition: form-data; name="audio"; filename="a.webm"\r\ncontent-type: audio/webm\r\n\r\n'),
  Buffer.from(Array.from({ length: 1024 }, (_, at) => at % 256)),
  Buffer.from('\r\n--b--\r\n'),
])

async function send(base: string, token: string, type: string, body: Uint8Array = BODY) {
  const answer = await fetch(`${base}/transcribe`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': type },
    body: Buffer.from(body),
  })
  return { status: answer.status, json: (await answer.json()) as { code?: string } }
}

void test('bytes and length arrive as they were sent', async (t) => {
  const { base, alice, upstream } = await gated(t, json({ text: 'hello' }))
  const answer = await send(base, alice, 'multipart/form-data; boundary=b')
  t.equal(answer.status, 200)
  t.same(answer.json, { text: 'hello' })
  t.ok(upstream.requests[0]?.body.equals(BODY))
  t.same(upstream.requests[0]?.headers.get('content-length'), [String(BODY.length)])
  t.notOk(upstream.requests[0]?.headers.has('transfer-encoding'))
})

void test('the content type is rebuilt of the boundary alone', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const [sent, arrived] of [
    ['multipart/form-data; boundary=b', 'multipart/form-data; boundary=b'],
    ['MULTIPART/Form-Data;boundary=b', 'multipart/form-data; boundary=b'],
    ['multipart/form-data; boundary="b"', 'multipart/form-data; boundary="b"'],
    ['multipart/form-data; boundary="a b:c"', 'multipart/form-data; boundary="a b:c"'],
    ['multipart/form-data; boundary=----WebKitFormBoundaryX', 'multipart/form-data; boundary=----WebKitFormBoundaryX'],
  ] as const) {
    t.equal((await send(base, alice, sent)).status, 200, sent)
    t.same(upstream.requests.at(-1)?.headers.get('content-type'), [arrived])
  }
})

void test('a content type with another reading is 415', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const type of [
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary=a/b',
    'multipart/form-data; boundary="application/json"',
    'multipart/form-data; boundary="a b "',
    'multipart/form-data; boundary=b; boundary=c',
    'multipart/form-data; boundary=b; charset=utf-8',
    'multipart/form-data; charset=utf-8; boundary=b',
    `multipart/form-data; boundary=${'b'.repeat(71)}`,
    'multipart/mixed; boundary=b',
    'multipart/form-data, application/json; boundary=b',
    'audio/webm',
  ]) {
    const answer = await send(base, alice, type)
    t.equal(answer.status, 415, type)
    t.equal(answer.json.code, 'media-type-unsupported')
  }
  t.same(upstream.requests, [])
})

void test('only transcribe takes one', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const path of ['agent/default/run', 'annotate', 'agent/default/stop/t1']) {
    const answer = await call(`${base}/${path}`, {
      token: alice,
      body: {},
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })
    t.equal(codeOf(answer), 'media-type-unsupported', path)
  }
  t.same(upstream.requests, [])
})

void test('JSON goes to transcribe too, checked as JSON is, and without either there is nothing', async (t) => {
  const { base, alice, upstream } = await gated(t)
  t.equal(
    (await call(`${base}/transcribe`, { token: alice, body: { audio: 'AAAA', mimeType: 'audio/webm', threadId: 't2' } })).status,
    200,
  )
  t.same(upstream.requests[0]?.json, { audio: 'AAAA', mimeType: 'audio/webm' })
  t.equal((await call(`${base}/transcribe`, { method: 'POST', token: alice })).status, 415)
})

const REQUEST = (token: string, framing: string): string =>
  head(
    'POST /api/copilotkit/transcribe HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${token}`,
    'Content-Type: multipart/form-data; boundary=b',
    framing,
  )

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

void test('a caller who leaves in the middle breaks it off upstream', async (t) => {
  const { gateway, alice, upstream } = await gated(t, () => {})
  const connection = await openRaw(gateway.url)
  connection.write(REQUEST(alice, 'Content-Length: 2000') + 'x'.repeat(500))
  await until(() => upstream.beginnings() === 1)
  connection.destroy()
  await upstream.arrived(1)
  t.equal(upstream.requests[0]?.body.length, 500)
})
