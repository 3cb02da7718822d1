/**
 * Framing that two servers read differently, so that one of them sees a request where the other sees a body (RFC 9112 §11.2). node's
 * parser had its own: a space before the colon (CVE-2021-22959), transfer codings that are not what they seem (CVE-2022-32213);
 * others take `+5` and `0x5` for lengths (CVE-2023-38697). Whatever has two readings is 400, the connection closes, and the
 * upstream sees no byte of it; what passes is framed anew.
 */
import { test, type Test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { ask, firstAnswer, head, openRaw, requestBytes } from '../../testing/support/raw.ts'

const BODY = JSON.stringify(runInput('t1'))
const CHUNKED = `${Buffer.byteLength(BODY).toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
const LENGTH = `Content-Length: ${Buffer.byteLength(BODY)}`
const SECOND = head('GET /api/copilotkit/info HTTP/1.1', 'Host: a')

/** The head of a run with these lines. */
function runHead(token: string, lines: readonly string[]): string {
  return head(
    'POST /api/copilotkit/agent/default/run HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    ...lines,
  )
}

/** Every attempt is answered 400 in our words, and nothing else is. */
async function refusedAll(t: Test, url: string, attempts: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, bytes] of Object.entries(attempts)) {
    const connection = await openRaw(url)
    connection.write(Buffer.from(bytes, 'latin1'))
    await connection.until(/^HTTP\/1\.1 \d+[^]*\r\n\r\n\{.*\}/)
    const answer = firstAnswer(connection.text())
    t.equal(answer.status, 400, name)
    t.match(answer.body, '"code":"header-malformed"', name)
    t.notMatch(connection.text(), 'HTTP/1.1 200', name)
    connection.destroy()
  }
}

void test('framing and headers with two readings are 400 and nothing arrives', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const run = (...lines: string[]): string => runHead(alice, lines)
  const attempts: Record<string, string> = {
    'length and chunked': run(LENGTH, 'Transfer-Encoding: chunked') + CHUNKED,
    'chunked and length': run('Transfer-Encoding: chunked', 'Content-Length: 0') + CHUNKED + SECOND,
    'chunked twice': run('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + CHUNKED,
    'chunked, chunked': run('Transfer-Encoding: chunked, chunked') + CHUNKED,
    'gzip, chunked': run('Transfer-Encoding: gzip, chunked') + CHUNKED,
    'chunked and another line of a coding': run('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + CHUNKED,
    'another line of a coding and chunked': run('Transfer-Encoding: identity', 'Transfer-Encoding: chunked') + CHUNKED,
    'chunked with a parameter': run('Transfer-Encoding: chunked;q=1') + CHUNKED,
    'chunked with a comma before it': run('Transfer-Encoding: ,chunked') + CHUNKED,
    'chunked with a comma behind it': run('Transfer-Encoding: chunked,') + CHUNKED,
    'chunked in two words': run('Transfer-Encoding: chun ked') + CHUNKED,
    'chunked behind a form feed': run('Transfer-Encoding: \u000cchunked') + CHUNKED,
    'chunked before a null byte': run('Transfer-Encoding: chunked\u0000') + CHUNKED,
    'chunked with a long s': run('Transfer-Encoding: chun\u212aed') + CHUNKED,
    'a tab before the colon': run('Transfer-Encoding\t: chunked') + CHUNKED,
    'a space before the name': run('X-A: 1', ' Transfer-Encoding: chunked', LENGTH) + BODY,
    'x, chunked': run('Transfer-Encoding: x, chunked') + CHUNKED,
    'chunked, identity': run('Transfer-Encoding: chunked, identity') + CHUNKED,
    identity: run('Transfer-Encoding: identity', LENGTH) + BODY,
    'a vertical tab before chunked': run('Transfer-Encoding: \u000bchunked') + CHUNKED,
    'a space before the colon': run('Transfer-Encoding : chunked') + CHUNKED,
    'a folded line': run('Transfer-Encoding:\r\n chunked') + CHUNKED,
    'a folded header': run('X-A: 1\r\n Transfer-Encoding: chunked', LENGTH) + BODY,
    'two lengths': run(LENGTH, 'Content-Length: 0') + BODY,
    'the same length twice': run(LENGTH, LENGTH) + BODY,
    'a list of lengths': run(`${LENGTH}, 0`) + BODY,
    'a list of equal lengths': run(`${LENGTH}, ${LENGTH.slice(16)}`) + BODY,
    'a length with a comma': run(`${LENGTH},`) + BODY,
    'a length with a fraction': run(`${LENGTH}.0`) + BODY,
    'a length with an exponent': run('Content-Length: 1e2') + BODY,
    'a length in two parts': run('Content-Length: 1 2') + BODY,
    'a length with an underscore': run('Content-Length: 1_0') + BODY,
    'a length in quotes': run('Content-Length: "5"') + BODY,
    'a length beyond all numbers': run('Content-Length: 18446744073709551616') + BODY,
    'a length that wraps around': run('Content-Length: 18446744073709551621') + BODY,
    'a length in other digits': run('Content-Length: \u00b2') + BODY,
    'a length with a space before its colon': run(`Content-Length : ${BODY.length}`) + BODY,
    'a length on the next line': run(`Content-Length:\r\n ${BODY.length}`) + BODY,
    'a length behind a vertical tab': run(`Content-Length: \u000b${BODY.length}`) + BODY,
    'length and a coding of another name': run(LENGTH, 'Transfer-Encoding: xchunked') + BODY,
    'length and an empty coding': run(LENGTH, 'Transfer-Encoding:') + BODY,
    'length and identity': run(LENGTH, 'Transfer-Encoding: identity') + BODY,
    'a signed length': run('Content-Length: +5') + BODY,
    'a negative length': run('Content-Length: -5') + BODY,
    'a hexadecimal length': run('Content-Length: 0x5') + BODY,
    'a length of nothing': run('Content-Length:') + BODY,
    'two hosts': run('Host: b', LENGTH) + BODY,
    'bare line feeds': run(LENGTH).replaceAll('\r\n', '\n') + BODY,
    'a bare line feed within': run(LENGTH).replace('Host: a\r\n', 'Host: a\nX-A: 1\r\n') + BODY,
    'a bare carriage return': run('X-A: 1\rTransfer-Encoding: chunked', LENGTH) + BODY,
    'a null byte': run('X-A: 1\u0000', LENGTH) + BODY,
    'a line without a colon': run('nonsense', LENGTH) + BODY,
    'a space in the target': run(LENGTH).replace('/run HTTP', '/run x HTTP') + BODY,
    'an unknown version': run(LENGTH).replace('HTTP/1.1', 'HTTP/1.9') + BODY,
    'a head in bare carriage returns': run(LENGTH).replaceAll('\r\n', '\r') + BODY,
    'a space before the first header': run(LENGTH).replace('Host: a', ' Host: a') + BODY,
    'two lines of a request': `GET /api/copilotkit/info HTTP/1.1\r\n${run(LENGTH)}${BODY}`,
    'a TLS hello': '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\r\n\r\n',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  }
  await refusedAll(t, gateway.url, attempts)
  t.equal(upstream.beginnings(), 0)
})

void test('a body that breaks in its middle is answered as well, though its head was good', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const run = (...lines: string[]): string => runHead(alice, lines)
  await refusedAll(t, gateway.url, {
    'a chunk size that is none': run('Transfer-Encoding: chunked') + 'zz\r\n' + BODY,
    'a chunk size beyond all numbers': run('Transfer-Encoding: chunked') + 'fffffffffffffffff\r\n' + BODY,
    'bare line feeds between chunks': run('Transfer-Encoding: chunked') + CHUNKED.replaceAll('\r\n', '\n'),
    'a chunk size with a sign': run('Transfer-Encoding: chunked') + `+${CHUNKED}`,
    'a chunk size with 0x': run('Transfer-Encoding: chunked') + `0x${CHUNKED}`,
    'a chunk size with an underscore': run('Transfer-Encoding: chunked') + `0_${CHUNKED}`,
    'a chunk size behind a space': run('Transfer-Encoding: chunked') + ` ${CHUNKED}`,
    'a chunk size of nothing': run('Transfer-Encoding: chunked') + `\r\n${CHUNKED}`,
    'a chunk longer than its size': run('Transfer-Encoding: chunked') + `1\r\n${BODY}\r\n0\r\n\r\n`,
    'a bare line feed behind a chunk size': run('Transfer-Encoding: chunked') + CHUNKED.replace('\r\n', '\n'),
    'a bare carriage return behind a chunk size': run('Transfer-Encoding: chunked') + CHUNKED.replace('\r\n', '\rX'),
    'a bare line feed in a chunk extension': run('Transfer-Encoding: chunked') + CHUNKED.replace('\r\n', ';\nx\r\n'),
    'a bare line feed in a trailer': run('Transfer-Encoding: chunked') + CHUNKED.replace(/0\r\n\r\n$/, '0\r\nX-A: 1\n\r\n'),
    'a length in a trailer': run('Transfer-Encoding: chunked') + CHUNKED.replace(/0\r\n\r\n$/, '0\r\nContent-Length: 5\r\n\r\n'),
    gzip: run('Transfer-Encoding: gzip') + BODY,
    'quoted chunked': run('Transfer-Encoding: "chunked"') + CHUNKED,
  })
  t.equal(upstream.beginnings(), 0)
})

void test('what the parser refuses ends the connection: nothing behind it is read', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const second = head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${alice}`)
  const connection = await openRaw(gateway.url)
  connection.write(head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', 'nonsense') + second)
  const answer = firstAnswer(await connection.ended())
  t.equal(answer.status, 400)
  t.equal(answer.headers.get('content-type'), 'application/json')
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.equal(answer.headers.get('connection'), 'close')
  t.equal(connection.text().split('HTTP/1.1').length, 2, 'one answer')
  t.equal(upstream.beginnings(), 0)
})

void test('a refused coding ends the connection too: nothing behind it is read', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const second = requestBytes({ target: '/api/copilotkit/info', token: alice }).toString()
  for (const lines of [
    ['Transfer-Encoding: gzip, chunked'],
    ['Transfer-Encoding: chunked', 'Host: b'],
    ['Transfer-Encoding: chunked', 'Content-Type: text/plain'],
    ['Transfer-Encoding: chunked', `Authorization: Bearer ${alice}`],
  ]) {
    const connection = await openRaw(gateway.url)
    connection.write(runHead(alice, lines) + CHUNKED + second)
    const text = await connection.ended()
    t.match(firstAnswer(text), { status: 400, body: '"code":"header-malformed"' }, lines.join(' '))
    t.equal(text.split('HTTP/1.1').length, 2, 'one answer')
  }
  t.equal(upstream.beginnings(), 0)
})

void test('chunks in HTTP/1.0, which has none, are no body of another request', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const old = runHead(alice, ['Transfer-Encoding: chunked', 'Connection: keep-alive']).replace('HTTP/1.1', 'HTTP/1.0')
  const connection = await openRaw(gateway.url)
  connection.write(old + CHUNKED + requestBytes({ target: '/api/copilotkit/info' }).toString())
  await connection.ended()
  t.ok(upstream.beginnings() <= 1, 'zero or one request')
  for (const { target, json } of upstream.requests) {
    t.equal(target, '/api/copilotkit/agent/default/run')
    t.same(json, JSON.parse(BODY))
  }
})

void test('the body of a refused request is not read as the next request', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const inner = requestBytes({ target: '/api/copilotkit/info', token: alice, keepAlive: true }).toString()
  const framed: readonly (readonly [framing: string, body: string])[] = [
    [`Content-Length: ${inner.length}`, inner],
    ['Transfer-Encoding: chunked', `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`],
    // A trailer is no second head.
    ['Transfer-Encoding: chunked', `0\r\nAuthorization: Bearer ${alice}\r\n\r\n`],
  ]
  for (const [framing, body] of framed) {
    for (const [method, path, status] of [
      ['POST', 'agent/default/run', '401'],
      ['POST', 'nowhere', '401'],
      ['GET', 'info', '401'],
      ['DELETE', 'threads/t1', '401'],
    ] as const) {
      const connection = await openRaw(gateway.url)
      connection.write(head(`${method} /api/copilotkit/${path} HTTP/1.1`, 'Host: a', framing) + body)
      connection.write(requestBytes({ target: '/api/copilotkit/nowhere' }))
      const statuses = [...(await connection.ended()).matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])
      t.same(statuses, [status, '401'], `${method} ${path}, ${framing}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void test('a GET with a body is refused, in any framing, and its body is nobody’s request', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const inner = requestBytes({ method: 'POST', target: '/api/copilotkit/threads/clear', token: alice }).toString()
  for (const [framing, body] of [
    [`Content-Length: ${inner.length}`, inner],
    ['Transfer-Encoding: chunked', `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`],
  ] as const) {
    const answer = await ask(gateway.url, {
      method: 'GET',
      target: '/api/copilotkit/info',
      token: alice,
      framing: [framing],
      body,
    })
    t.match(answer, { status: 400, body: '"code":"body-malformed"' }, framing)
  }
  t.equal(upstream.beginnings(), 0)
})

void test('trailers and chunk extensions go nowhere', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const size = Buffer.byteLength(BODY).toString(16)
  for (const chunks of [
    `${size};x=1;y="z"\r\n${BODY}\r\n0\r\n\r\n`,
    `000000${size}\r\n${BODY}\r\n000\r\n\r\n`,
    `${size.toUpperCase()}\r\n${BODY}\r\n0;last\r\nX-Cpki-User-Id: bob\r\nHost: b\r\n\r\n`,
  ]) {
    const connection = await openRaw(gateway.url)
    connection.write(runHead(alice, ['Transfer-Encoding: chunked', 'Trailer: X-Cpki-User-Id', 'Connection: close']) + chunks)
    t.equal(firstAnswer(await connection.ended()).status, 200)
    const request = upstream.requests.at(-1)
    t.same(request?.json, JSON.parse(BODY))
    t.same(request?.headers.get('content-length'), [String(request?.body.length)])
    for (const name of ['trailer', 'transfer-encoding', 'x-cpki-user-id']) t.notOk(request?.headers.has(name), name)
  }
})

void test('a body that is chunked arrives as one of a stated length', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const connection = await openRaw(gateway.url)
  connection.write(
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'Content-Type: application/json',
      'Transfer-Encoding: Chunked',
      'Connection: close',
    ) + CHUNKED,
  )
  t.equal(firstAnswer(await connection.ended()).status, 200)
  const [request] = upstream.requests
  t.same(request?.json, JSON.parse(BODY))
  t.same(request?.headers.get('content-length'), [String(request?.body.length)])
  t.notOk(request?.headers.has('transfer-encoding'))
})

void test('a second answer is never written into one that is under way', async (t) => {
  const { gateway, alice, upstream } = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n')
  })
  const request = (path: string): string =>
    head(`GET /api/copilotkit/${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${alice}`)
  for (const [before, answers] of [
    ['', 1],
    // The stream is the second answer: the end of the first one changes nothing.
    [request('nowhere'), 2],
    [request('nowhere') + request('nowhere'), 3],
  ] as const) {
    const connection = await openRaw(gateway.url)
    connection.write(before + request('info'))
    await connection.until('data: {}')
    connection.write('nonsense\r\n\r\n')
    const text = await connection.ended()
    t.equal(text.split('HTTP/1.1').length - 1, answers, 'the connection closes and says nothing more')
  }
  t.equal(upstream.requests.length, 3)
})

void test('nor in place of the answer to a request that is being worked on', async (t) => {
  const { gateway, alice, upstream } = await gated(t, () => {})
  const connection = await openRaw(gateway.url)
  connection.write(head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${alice}`))
  await upstream.arrived(1)
  connection.write('nonsense\r\n\r\n')
  t.equal(await connection.ended(), '', 'a 400 would be taken for the answer to the first')
})
