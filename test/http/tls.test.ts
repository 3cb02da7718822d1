/** TLS at the public listener: which handshakes succeed, what is counted of the others, and that HTTP is read as without TLS. */
import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { test, type Test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { dial } from '../../testing/support/dial.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { inDays, makeAuthority, type Issued } from '../../testing/support/issuing.ts'
import { firstAnswer, head, openRaw, requestBytes } from '../../testing/support/raw.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { until } from '../../testing/support/until.ts'

/** Needed for a client to offer versions that OpenSSL would not even try. */
const OLD: ConnectionOptions = { minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }

type Ended = { readonly code: string; readonly text: string }

/** Asks for /info, and tells how the connection ended: with an answer, or the code of an error. */
async function asked(gate: GatedUpstream, options: ConnectionOptions): Promise<Ended> {
  const failed = (error: Error & { readonly code?: string }): Ended => ({ code: error.code ?? error.message, text: '' })
  let socket: TLSSocket
  try {
    socket = (await dial(gate.gateway.url, options)) as TLSSocket
  } catch (error) {
    return failed(error as Error)
  }
  let text = ''
  let code = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', (error: Error) => (code = failed(error).code))
  socket.write(requestBytes({ target: '/api/copilotkit/info', token: gate.alice }))
  await once(socket, 'close').catch(() => {})
  return { code, text }
}

async function figures(gate: GatedUpstream, name: string): Promise<readonly string[]> {
  const text = await (await fetch(`${gate.gateway.healthUrl}/metrics`)).text()
  return text.split('\n').filter((line) => line.startsWith(`threadwarden_${name}`))
}

async function answers(t: Test, gate: GatedUpstream, options: ConnectionOptions, what: string): Promise<void> {
  t.match((await asked(gate, options)).text, /^HTTP\/1\.1 200 /, what)
}

void test('a client that verifies the certificate is served, and the line and the metrics say https', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(t, undefined, { config: files.listen() })
  t.match(gate.gateway.url, /^https:/)
  const verified = { ca: files.authority.cert, rejectUnauthorized: true }
  await answers(t, gate, verified, 'a client of the authority')
  t.equal((await asked(gate, { ...verified, ca: makeAuthority().cert })).code, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')
  const [line] = await figures(gate, 'certificate_expiry_timestamp_seconds')
  const seconds = Number(/^\S+\{certificate="listen\.tls"\} (\d+)$/.exec(line ?? '')?.[1])
  t.ok(Math.abs(seconds * 1000 - inDays(90).getTime()) < 3_600_000, String(line))
})

void test('versions: 1.2 from the start, 1.3 alone if configured', async (t) => {
  const files = secureFiles(t)
  const usual = await gated(t, undefined, { config: files.listen() })
  await answers(t, usual, { maxVersion: 'TLSv1.2' }, '1.2')
  await answers(t, usual, { minVersion: 'TLSv1.3' }, '1.3')
  t.equal((await asked(usual, { ...OLD, maxVersion: 'TLSv1.1' })).code, 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
  t.equal((await asked(usual, { ...OLD, maxVersion: 'TLSv1' })).code, 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
  const strict = await gated(t, undefined, { config: files.listen({ ...files.tls, minVersion: 'TLSv1.3' }) })
  await answers(t, strict, {}, '1.3 where it is required')
  t.equal((await asked(strict, { maxVersion: 'TLSv1.2' })).code, 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
})

void test('HTTP/2 is refused: in the handshake, and by its preface', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(t, undefined, { config: files.listen() })
  t.equal((await asked(gate, { ALPNProtocols: ['h2'] })).code, 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')
  const both = (await dial(gate.gateway.url, { ALPNProtocols: ['h2', 'http/1.1'] })) as TLSSocket
  t.equal(both.alpnProtocol, 'http/1.1')
  both.destroy()
  const plain = await gated(t)
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
  for (const { gateway, upstream } of [gate, plain]) {
    const connection = await openRaw(gateway.url)
    connection.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings]))
    t.match(firstAnswer(await connection.ended()), { status: 400, body: '"code":"header-malformed"' })
    t.same(upstream.requests, [])
  }
  // RFC 9110 §7.8: a server may ignore an upgrade; the answer is that of HTTP/1.1, and the last of the connection.
  const upgrade = await openRaw(gate.gateway.url)
  const lines = ['Host: a', `Authorization: Bearer ${gate.alice}`, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c']
  upgrade.write(head('GET /api/copilotkit/info HTTP/1.1', ...lines, 'HTTP2-Settings: AAMAAABk'))
  t.notMatch(await upgrade.ended(), 'HTTP/1.1 101')
})

void test('what is no TLS gets no answer, and counts as no request', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(t, undefined, { config: files.listen() })
  for (const bytes of ['GET /api/copilotkit/info HTTP/1.1\r\nHost: a\r\n\r\n', '\0'.repeat(64), '\x16\x03\x01\x02\x00']) {
    const socket = connectPlain(Number(new URL(gate.gateway.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).on('error', () => {})
    socket.write(Buffer.from(bytes, 'latin1'))
    // A record that is not complete is waited for.
    if (bytes.startsWith('\x16')) socket.end()
    await once(socket, 'close')
    t.notMatch(text, 'HTTP/', JSON.stringify(bytes.slice(0, 10)))
  }
  await until(async () => (await figures(gate, 'tls_handshake_failures_total')).length === 2)
  t.same(await figures(gate, 'tls_handshake_failures_total'), [
    'threadwarden_tls_handshake_failures_total{reason="protocol"} 2',
    'threadwarden_tls_handshake_failures_total{reason="closed"} 1',
  ])
  t.same(await figures(gate, 'decisions_total'), [])
  const failures = gate.gateway.lines.filter(({ msg }) => msg === 'a TLS handshake failed')
  t.match(failures, [
    { level: 'info', client: '127.0.0.1', reason: 'protocol', detail: 'ERR_SSL_HTTP_REQUEST' },
    { level: 'info', client: '127.0.0.1', reason: 'protocol' },
    { level: 'debug', client: '127.0.0.1', detail: 'ECONNRESET' },
  ])
})

const CLIENTS: Readonly<Record<string, (clients: ReturnType<typeof makeAuthority>) => Partial<Issued>>> = {
  'no certificate': () => ({}),
  'a certificate of another CA': () => makeAuthority('clients').issue({ usage: 'client' }),
  'an expired certificate': (clients) => clients.issue({ usage: 'client', from: inDays(-30), until: inDays(-1) }),
  'a certificate that is not valid yet': (clients) => clients.issue({ usage: 'client', from: inDays(1), until: inDays(30) }),
  'a certificate for servers': (clients) => clients.issue({ usage: 'server' }),
}

void test('required client certificates: only those of the CA, and no request of others is read', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(t, undefined, { config: files.listen(files.mutual) })
  const good = files.clients.issue({ usage: 'client' })
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    await answers(t, gate, { ...good, maxVersion }, `a client of the CA, ${maxVersion}`)
    const below = files.clients.intermediate('below')
    const indirect = below.issue({ usage: 'client' })
    await answers(t, gate, { ...indirect, cert: indirect.cert + below.cert, maxVersion }, 'one of an intermediate that it sends')
    for (const [what, make] of Object.entries(CLIENTS)) {
      const { text } = await asked(gate, { ...make(files.clients), maxVersion })
      t.equal(text, '', `${what}, ${maxVersion}`)
    }
  }
  t.equal(gate.upstream.requests.length, 4)
  // The server's own authority issues no clients.
  t.equal((await asked(gate, files.authority.issue({ usage: 'client' }))).text, '')
  await until(() => gate.gateway.lines.filter(({ reason }) => reason === 'client-certificate').length === 11)
  t.same(await figures(gate, 'tls_handshake_failures_total'), [
    'threadwarden_tls_handshake_failures_total{reason="client-certificate"} 11',
  ])
  t.match(
    gate.gateway.lines.filter(({ detail }) => detail === 'CERT_HAS_EXPIRED'),
    [{ client: '127.0.0.1' }, {}],
  )
  // A certificate is no token.
  const connection = await openRaw(gate.gateway.url, good)
  connection.write(requestBytes({ target: '/api/copilotkit/info' }))
  t.match(firstAnswer(await connection.ended()), { status: 401, body: '"code":"credential-missing"' })
})

/** True if a second connection resumes the session of the first. */
async function resumes(url: string, options: ConnectionOptions): Promise<boolean> {
  const first = (await dial(url, options)) as TLSSocket
  let session: Buffer | undefined = first.getSession()
  first.on('session', (one: Buffer) => (session = one))
  // Tickets of TLS 1.3 come before the answer.
  first.write('nonsense\r\n\r\n')
  first.resume()
  await once(first, 'close')
  const second = (await dial(url, { ...options, ...(session === undefined ? {} : { session }) })) as TLSSocket
  const reused = second.isSessionReused()
  second.destroy()
  return reused
}

void test('no session is resumed where clients have certificates: it would outlive them', async (t) => {
  const files = secureFiles(t)
  const mutual = await gated(t, undefined, { config: files.listen(files.mutual) })
  const plain = await gated(t, undefined, { config: files.listen() })
  const client = files.clients.issue({ usage: 'client' })
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    t.equal(await resumes(plain.gateway.url, { maxVersion }), true, `without, ${maxVersion}`)
    t.equal(await resumes(mutual.gateway.url, { ...client, maxVersion }), false, `with, ${maxVersion}`)
  }
})

void test('a client cannot renegotiate', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(t, undefined, { config: files.listen() })
  const socket = (await dial(gate.gateway.url, { maxVersion: 'TLSv1.2' })) as TLSSocket
  socket.on('error', () => {})
  const error = await new Promise<Error | null>((resolve) => {
    socket.renegotiate({}, resolve)
    socket.once('close', () => resolve(new Error('closed')))
    socket.once('error', resolve)
  })
  t.ok(error instanceof Error, String(error))
  socket.destroy()
})

void test('a body that is asked for, a stream and a slow head are as without TLS', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(
    t,
    (request, response) => {
      if (request.target.endsWith('/run')) response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n')
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    },
    { config: files.listen() },
  )
  const body = JSON.stringify(runInput('t1'))
  const connection = await openRaw(gate.gateway.url)
  const lines = ['Host: a', `Authorization: Bearer ${gate.alice}`, 'Content-Type: application/json']
  const request = head(
    'POST /api/copilotkit/agent/default/run HTTP/1.1',
    ...lines,
    `Content-Length: ${body.length}`,
    'Expect: 100-continue',
  )
  for (const byte of request) connection.write(byte)
  t.match(await connection.until('\r\n\r\n'), /^HTTP\/1\.1 100 /)
  connection.write(body)
  t.match(await connection.until('data: {}'), 'HTTP/1.1 200')
  t.notOk(connection.isClosed(), 'the stream stays open')
  connection.destroy()
})

void test('a stop cuts a connection whose handshake never ends', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(t, undefined, { config: files.listen() })
  const socket = connectPlain(Number(new URL(gate.gateway.url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  // One more connection shows that the first one was accepted.
  ;(await dial(gate.gateway.url)).destroy()
  const before = performance.now()
  await gate.gateway.stop(0)
  await closed
  t.ok(performance.now() - before < 9000, 'before the limit of a handshake')
})
