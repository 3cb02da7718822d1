/**
 * The same bytes, with and without TLS: whatever framing, target or header a caller writes, a listener with TLS gives the same
 * answers, and the upstream sees the same requests. The attacks are those of the other tests here, a sample of each.
 */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { chunked, head, openRaw, requestBytes } from '../../testing/support/raw.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { makeSigner } from '../../testing/support/tokens.ts'

const BODY = JSON.stringify(runInput('t1', 'hello', { runId: 'r1', messages: [] }))
const LENGTH = `Content-Length: ${BODY.length}`
const CHUNKED = `${chunked([BODY])}0\r\n\r\n`
const LARGE = `X-Pad: ${'p'.repeat(20_000)}`

/** Requests of one connection, each of which ends it. */
function attempts(token: string): Readonly<Record<string, string | Buffer>> {
  const get = (path: string, ...lines: string[]): string =>
    head(`GET ${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${token}`, ...lines)
  const last = (path: string): string => get(path, 'Connection: close')
  const run = (...lines: string[]): string =>
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      ...lines,
    )
  const info = last('/api/copilotkit/info')
  return {
    'a good request': info,
    'a good run': run(LENGTH, 'Connection: close') + BODY,
    'a good run in chunks': run('Transfer-Encoding: chunked', 'Connection: close') + CHUNKED,
    'requests in a row': get('/api/copilotkit/info') + get('/api/copilotkit/nowhere') + info,
    'a request without a token behind one with':
      get('/api/copilotkit/info') + head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', 'Connection: close'),
    'length and chunked': run(LENGTH, 'Transfer-Encoding: chunked') + CHUNKED + info,
    'two lengths': run(LENGTH, 'Content-Length: 0') + BODY + info,
    'a length with a sign': run(`Content-Length: +${BODY.length}`) + BODY,
    'a coding before chunked': run('Transfer-Encoding: gzip, chunked') + CHUNKED + info,
    'a tab before the colon': run('Transfer-Encoding\t: chunked') + CHUNKED,
    'a bare line feed': `GET /api/copilotkit/info HTTP/1.1\nHost: a\nAuthorization: Bearer ${token}\n\n`,
    'a chunk size that is none': `${run('Transfer-Encoding: chunked')}0x5\r\nhello\r\n0\r\n\r\n`,
    'the body of a refused request':
      head('POST /api/copilotkit/nowhere HTTP/1.1', 'Host: a', `Content-Length: ${info.length}`) +
      info +
      last('/api/copilotkit/nowhere'),
    'no host': head('GET /api/copilotkit/info HTTP/1.1', `Authorization: Bearer ${token}`, 'Connection: close'),
    'two hosts': get('/api/copilotkit/info', 'Host: b', 'Connection: close'),
    'no version': `GET /api/copilotkit/info\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    'an absolute target': last('https://a/api/copilotkit/info'),
    CONNECT: head('CONNECT a:443 HTTP/1.1', 'Host: a', `Authorization: Bearer ${token}`),
    'a dot segment': last('/api/copilotkit/threads/t1/../t2/messages'),
    'an encoded slash': last('/api/copilotkit/threads/t1%2fmessages'),
    'a path in another case': last('/api/copilotkit/INFO'),
    'an upgrade': get('/api/copilotkit/info', 'Connection: Upgrade', 'Upgrade: websocket') + info,
    'an expectation': get('/api/copilotkit/info', 'Expect: nonsense', 'Connection: close'),
    'a forwarded scheme': get(
      '/api/copilotkit/info',
      'X-Forwarded-Proto: http',
      'X-Forwarded-For: 10.0.0.1',
      'Connection: close',
    ),
    'a head that is too large': get('/api/copilotkit/info', LARGE),
    'too many lines': get('/api/copilotkit/info', ...Array.from({ length: 300 }, () => 'a:')),
    'a preflight': head(
      'OPTIONS /api/copilotkit/info HTTP/1.1',
      'Host: a',
      'Origin: https://app.example',
      'Access-Control-Request-Method: GET',
      'Connection: close',
    ),
    'a GET with a body': get('/api/copilotkit/info', 'Content-Length: 2', 'Connection: close') + '{}',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a null byte': Buffer.from(`GET /api/copilotkit/info\0 HTTP/1.1\r\nHost: a\r\n\r\n`),
    'a second hello of TLS': Buffer.from('16030100010100', 'hex'),
  }
}

/** Everything that a connection answers and the upstream sees, without what differs each time. */
async function outcome({ gateway, upstream }: GatedUpstream, bytes: string | Buffer): Promise<unknown> {
  const before = upstream.requests.length
  const connection = await openRaw(gateway.url)
  connection.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  const text = await connection.ended()
  return {
    text: text.replace(/^(x-request-id|date): .*$/gim, '$1'),
    seen: upstream.requests.slice(before).map(({ method, target, headers, body }) => ({
      method,
      target,
      headers: [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'host'),
      body: body.toString(),
    })),
  }
}

void test('a listener with TLS answers as one without', async (t) => {
  const files = secureFiles(t)
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const common = { cors: { origins: ['https://app.example'] } }
  const plain = await gated(t, undefined, { signer, config: common })
  const secure = await gated(t, undefined, { signer, config: { ...common, ...files.listen() } })
  let answered = 0
  for (const [what, bytes] of Object.entries(attempts(signer.sign('alice')))) {
    const expected = (await outcome(plain, bytes)) as { readonly text: string }
    t.same(await outcome(secure, bytes), expected, what)
    if (expected.text.startsWith('HTTP/1.1 ')) answered += 1
  }
  t.ok(answered > 25, `${answered} were answered`)
  // A byte at a time, and all of it in one record.
  const body = requestBytes({ target: '/api/copilotkit/agent/default/run', token: secure.alice, body: BODY })
  const connection = await openRaw(secure.gateway.url)
  for (const byte of body) connection.write(Buffer.from([byte]))
  t.match(await connection.ended(), /^HTTP\/1\.1 200 /)
})
