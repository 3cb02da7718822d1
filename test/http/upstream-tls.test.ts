/** TLS to the upstream: whose certificate is accepted, which one the gateway presents, and that both change while it runs. */
import { writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { test, type Test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { inDays, makeAuthority, type Issued } from '../../testing/support/issuing.ts'
import { openRaw, requestBytes } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from '../reload/scene.ts'

interface SecureUpstream {
  readonly url: string
  readonly server: Server
  /** The names in the client certificates of requests of callers; null for none. */
  readonly clients: (string | null)[]
  readonly end: () => void
}

/** Answers /info, and opens a stream for a run. */
async function startSecure(t: Test, options: ServerOptions): Promise<SecureUpstream> {
  const clients: (string | null)[] = []
  let end = (): void => {}
  const server = createServer(options, (request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    if (request.headers['x-request-id'] !== undefined) {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate() as { subject?: { CN: string } }
      clients.push(subject?.CN ?? null)
    }
    if (!request.url?.endsWith('/run'))
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"agents":{}}')
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"n":1}\n\n')
    end = () => response.end('data: {"n":2}\n\n')
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, server, clients, end: () => end() }
}

interface Parts {
  readonly upstream?: ServerOptions
  readonly tls?: object
  readonly hosts?: readonly string[]
  readonly more?: Readonly<Record<string, unknown>>
}

async function start(t: Test, { upstream: options = {}, tls = { ca: 'ca.crt' }, hosts, more = {} }: Parts = {}) {
  const authority = makeAuthority()
  const pair = authority.issue({ usage: 'server', ...(hosts === undefined ? {} : { hosts }) })
  const secure = await startSecure(t, { ...pair, ...options })
  const scene = await startScene(t)
  const write = (name: string, text: string): void => writeFileSync(join(scene.folder, name), text)
  const writeClient = ({ cert, key }: Issued): void => {
    write('client.crt', cert)
    write('client.key', key)
  }
  write('ca.crt', authority.cert)
  const changes = { 'upstream.url': secure.url, 'upstream.transport': 'multi-route', 'upstream.tls': tls, ...more }
  const apply = async (changed: object = {}) => {
    scene.write({ ...changes, ...changed })
    return scene.gateway.reload('test')
  }
  const info = async (): Promise<number> => (await call(`${scene.base}/info`, { token: scene.token('alice') })).status
  return { authority, secure, scene, write, writeClient, apply, info }
}

const CLIENT = { ca: 'ca.crt', certificateFile: 'client.crt', keyFile: 'client.key' }

void test('the certificate of the upstream is verified: authority, name and time', async (t) => {
  const { apply, info, write, authority, secure } = await start(t)
  t.match(await apply(), { outcome: 'reloaded' })
  t.equal(await info(), 200)
  write('ca.crt', makeAuthority().cert)
  await apply()
  t.equal(await info(), 502, 'another authority')
  write('ca.crt', authority.cert)
  await apply()
  secure.server.setSecureContext(authority.issue({ hosts: ['127.0.0.2', 'other.example'] }))
  secure.server.closeAllConnections()
  t.equal(await info(), 502, 'another host')
  await apply({ 'upstream.tls': { ca: 'ca.crt', serverName: 'other.example' } })
  t.equal(await info(), 200, 'the name that is configured')
  secure.server.setSecureContext(authority.issue({ from: inDays(-9), until: inDays(-1), hosts: ['other.example'] }))
  secure.server.closeAllConnections()
  t.equal(await info(), 502, 'expired')
  t.same(secure.clients, [null, null])
})

void test('the older key ca is the same as tls.ca, and no environment switches verification off', async (t) => {
  const { apply, info } = await start(t)
  t.match(await apply({ 'upstream.tls': undefined, 'upstream.ca': 'ca.crt' }), { outcome: 'reloaded' })
  t.equal(await info(), 200)
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.match(await apply({ 'upstream.tls': undefined }), { outcome: 'reloaded' })
  t.equal(await info(), 502)
})

void test('the oldest version that is accepted', async (t) => {
  const { apply, info } = await start(t, { upstream: { maxVersion: 'TLSv1.2' } })
  await apply()
  t.equal(await info(), 200)
  await apply({ 'upstream.tls': { ca: 'ca.crt', minVersion: 'TLSv1.3' } })
  t.equal(await info(), 502)
})

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  void test(`a client certificate, and another one while a stream is open: ${maxVersion}`, async (t) => {
    const clients = makeAuthority('clients')
    const upstream = { requestCert: true, ca: clients.cert, maxVersion }
    const { apply, info, writeClient, secure, scene } = await start(t, { upstream })
    await apply()
    t.equal(await info(), 502, 'none')
    t.match((await scene.health('/metrics')).text, /upstream_errors_total\{reason="upstream-(?:unreachable|broke-off)"\} 1\n/)
    writeClient(makeAuthority().issue({ usage: 'client' }))
    await apply({ 'upstream.tls': CLIENT })
    t.equal(await info(), 502, 'of another authority')
    writeClient(clients.issue({ name: 'gateway 1', usage: 'client' }))
    await apply({ 'upstream.tls': CLIENT })
    t.equal(await info(), 200)
    const stream = await openRaw(scene.gateway.url)
    const body = JSON.stringify(runInput('t1'))
    stream.write(requestBytes({ target: '/api/copilotkit/agent/default/run', token: scene.token('alice'), body }))
    await stream.until('"n":1')
    writeClient(clients.issue({ name: 'gateway 2', usage: 'client', until: inDays(20) }))
    t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
    t.equal(await info(), 200)
    secure.end()
    t.match(await stream.ended(), '"n":2', 'the stream goes on with the certificate that it began with')
    t.same(secure.clients, ['gateway 1', 'gateway 1', 'gateway 2'])
    const { text } = await scene.health('/metrics')
    t.match(text, /certificate_expiry_timestamp_seconds\{certificate="upstream\.tls"\} \d+/)
    // A pair that does not match changes nothing.
    writeClient({ cert: clients.issue().cert, key: clients.issue().key })
    t.match(await scene.gateway.reload('test'), { outcome: 'refused', faults: [/upstream\.tls\.keyFile: /] })
    t.equal(await info(), 200)
    t.equal(secure.clients.at(-1), 'gateway 2')
  })
}

void test('an agent has settings of its own', async (t) => {
  const clients = makeAuthority('clients')
  const { apply, scene, write, writeClient, secure } = await start(t, { upstream: { requestCert: true, ca: clients.cert } })
  writeClient(clients.issue({ name: 'gateway', usage: 'client' }))
  write('policy.yaml', 'version: 1\nrules:\n  - { routes: [agent/run], allow: [signed-in], threads: [own, unknown] }\n')
  const agent = { url: secure.url, path: '/run', tls: CLIENT }
  t.match(await apply({ 'upstream.url': scene.upstream.url, 'upstream.tls': undefined, 'agents.research': agent }), {
    outcome: 'reloaded',
  })
  const stream = await openRaw(scene.gateway.url)
  stream.write(requestBytes({ target: '/agents/research', token: scene.token('alice'), body: JSON.stringify(runInput('t1')) }))
  await stream.until('"n":1')
  secure.end()
  t.match(await stream.ended(), 'HTTP/1.1 200')
  await until(() => secure.clients.length === 1)
  t.same(secure.clients, ['gateway'])
})
