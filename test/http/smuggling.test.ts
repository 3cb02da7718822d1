/** What two servers could read differently is refused before it is read at all: the upstream sees no byte of it. */
import { test, type Test } from 'tap'
import { runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { firstAnswer, head, openRaw } from '../support/raw.ts'

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
    'chunked, identity': run('Transfer-Encoding: chunked, identity') + CHUNKED,
    identity: run('Transfer-Encoding: identity', LENGTH) + BODY,
    'a vertical tab before chunked': run('Transfer-Encoding: \u000bchunked') + CHUNKED,
    'a space before the colon': run('Transfer-Encoding : chunked') + CHUNKED,
    'a folded line': run('Transfer-Encoding:\r\n chunked') + CHUNKED,
    'a folded header': run('X-A: 1\r\n Transfer-Encoding: chunked', LENGTH) + BODY,
    'two lengths': run(LENGTH, 'Content-Length: 0') + BODY,
    'the same length twice': run(LENGTH, LENGTH) + BODY,
    'a list of lengths': run(`${LENGTH}, 0`) + BODY,
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
    'a TLS hello': '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\r\n\r\n',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  }
  await refusedAll(t, gateway.url, attempts)
  t.same(upstream.requests, [])
})

void test('a body that breaks in its middle is answered as well, though its head was good', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const run = (...lines: string[]): string => runHead(alice, lines)
  await refusedAll(t, gateway.url, {
    'a chunk size that is none': run('Transfer-Encoding: chunked') + 'zz\r\n' + BODY,
    'a chunk size beyond all numbers': run('Transfer-Encoding: chunked') + 'fffffffffffffffff\r\n' + BODY,
    'bare line feeds between chunks': run('Transfer-Encoding: chunked') + CHUNKED.replaceAll('\r\n', '\n'),
    gzip: run('Transfer-Encoding: gzip') + BODY,
    'quoted chunked': run('Transfer-Encoding: "chunked"') + CHUNKED,
  })
  t.same(upstream.requests, [])
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
  t.same(upstream.requests, [])
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
