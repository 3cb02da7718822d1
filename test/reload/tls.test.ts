/** New certificates while the gateway runs: for new connections only, as a whole, and not at all where they cannot be used. */
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { test, type Test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { dial } from '../../testing/support/dial.ts'
import { encrypted, inDays, makeAuthority, type Issued } from '../../testing/support/issuing.ts'
import { firstAnswer, openRaw, requestBytes } from '../../testing/support/raw.ts'
import { presentedAt, secureFiles } from '../../testing/support/secure.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

const USAGE = { usage: 'server' } as const

async function start(t: Test, mutual = false) {
  const files = secureFiles(t)
  const scene = await startScene(t, files.listen(mutual ? files.mutual : files.tls))
  const presented = (options = {}) => presentedAt(scene.gateway.url, files.authority, options)
  return { files, scene, presented, reload: () => scene.gateway.reload('test') }
}

void test('an open stream goes on with the old certificate, and new connections get the new one', async (t) => {
  const { files, scene, presented, reload } = await start(t)
  let finish = (): void => {}
  scene.upstream.answer((request, response) => {
    if (!request.target.endsWith('/run')) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"n":1}\n\n')
    finish = () => response.end('data: {"n":2}\n\n')
  })
  const stream = await openRaw(scene.gateway.url)
  const body = JSON.stringify(runInput('t1'))
  const run = { target: '/api/copilotkit/agent/default/run', token: scene.token('alice'), body, keepAlive: true }
  stream.write(requestBytes(run))
  await stream.until('"n":1')
  t.equal(await presented(), 'first')
  files.write(files.authority.issue({ name: 'second', ...USAGE, until: inDays(30) }))
  t.match(await reload(), { outcome: 'reloaded', generation: 2 })
  t.equal(await presented(), 'second')
  t.notOk(stream.isClosed())
  finish()
  await stream.until('"n":2')
  // Its connection serves the next request as well.
  stream.write(requestBytes({ target: '/api/copilotkit/nowhere', token: scene.token('alice'), keepAlive: true }))
  await stream.until('"code":"not-found"')
  stream.destroy()
  t.match(
    (await scene.health('/metrics')).text,
    new RegExp(
      `certificate_expiry_timestamp_seconds\\{certificate="listen\\.tls"\\} ${String(Math.floor(inDays(30).getTime() / 1000)).slice(0, 6)}`,
    ),
  )
})

void test('a pair that cannot be used keeps the old one, and ends no connection', async (t) => {
  const { files, scene, presented, reload } = await start(t)
  const { authority, path } = files
  const pair = authority.issue({ name: 'second', ...USAGE })
  const weak: Issued = { cert: 'nothing', key: pair.key }
  const cases: readonly (readonly [Issued, RegExp])[] = [
    [{ cert: pair.cert, key: files.server.key }, /keyFile: .* is not the key of the certificate/],
    [{ cert: pair.cert, key: encrypted(pair.key) }, /keyFile: .*is encrypted/],
    [weak, /certificateFile: .*holds no certificate/],
  ]
  for (const [bad, says] of cases) {
    files.write(bad)
    const refused = await reload()
    t.match(refused, { outcome: 'refused', generation: 1 })
    t.match(refused.faults.join('\n'), says)
    t.equal(await presented(), 'first')
  }
  t.match((await scene.health('/metrics')).text, /threadwarden_config_last_reload_successful 0\n/)
  t.match(JSON.parse((await scene.health('/readyz')).text), {
    status: 'ready',
    notes: { reload: /listen\.tls\.certificateFile/ },
  })
  // Replaced one after the other, as a person does it: the first of the two is a pair that does not match.
  writeFileSync(path('tls.crt.new'), pair.cert)
  renameSync(path('tls.crt.new'), path('tls.crt'))
  writeFileSync(path('tls.key'), files.server.key)
  t.match(await reload(), { outcome: 'refused' })
  t.equal(await presented(), 'first')
  writeFileSync(path('tls.key.new'), pair.key)
  renameSync(path('tls.key.new'), path('tls.key'))
  t.match(await reload(), { outcome: 'reloaded', generation: 2 })
  t.equal(await presented(), 'second')
})

void test('an expired certificate does not stop a change of the policy', async (t) => {
  const { files, scene, presented, reload } = await start(t)
  files.write(files.authority.issue({ name: 'old', ...USAGE, from: inDays(-30), until: inDays(-1) }))
  scene.writePolicy('version: 1\nrules:\n  - { routes: [info], allow: [] }\n')
  t.match(await reload(), { outcome: 'reloaded' })
  t.match(scene.lines.filter(({ level, msg }) => level === 'warn' && msg === 'configuration').slice(1), [
    { path: 'listen.tls.certificateFile', message: /expired at/ },
  ])
  await t.rejects(presented(), { code: 'CERT_HAS_EXPIRED' })
})

void test('the oldest version and the CA of clients change for new connections', async (t) => {
  const { files, scene, reload } = await start(t, true)
  const client = files.clients.issue({ usage: 'client' })
  const answered = async (options: object): Promise<string> => {
    try {
      const connection = await openRaw(scene.gateway.url, options)
      connection.write(requestBytes({ target: '/api/copilotkit/nowhere', token: scene.token('alice') }))
      return String(firstAnswer(await connection.ended()).status)
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  t.equal(await answered({ ...client, maxVersion: 'TLSv1.2' }), '404')
  scene.write(files.listen({ ...files.mutual, minVersion: 'TLSv1.3' }))
  t.match(await reload(), { outcome: 'reloaded' })
  t.equal(await answered({ ...client, maxVersion: 'TLSv1.2' }), 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
  t.equal(await answered(client), '404')
  const others = makeAuthority('other clients')
  writeFileSync(files.path('clients.crt'), others.cert)
  t.match(await reload(), { outcome: 'reloaded' })
  t.equal(await answered(client), 'NaN', 'no answer')
  t.equal(await answered(others.issue({ usage: 'client' })), '404')
})

void test('TLS and client certificates cannot appear or disappear', async (t) => {
  const plain = await startScene(t)
  const secure = secureFiles(t)
  plain.write(secure.listen())
  t.match(await plain.gateway.reload('test'), { outcome: 'refused', faults: [/^listen\.tls cannot change at runtime/] })
  const { files, scene, reload, presented } = await start(t)
  scene.write(files.listen(files.mutual))
  t.match(await reload(), { outcome: 'refused', faults: [/^listen\.tls\.clientCertificates cannot change/] })
  scene.write({ listen: { host: '127.0.0.1', port: 0 } })
  const refused = await reload()
  t.match(refused, { outcome: 'refused', faults: [/^listen\.tls cannot change/] })
  t.equal(await presented(), 'first')
  const mutual = await start(t, true)
  mutual.scene.write(mutual.files.listen())
  t.match(await mutual.reload(), { outcome: 'refused', faults: [/^listen\.tls\.clientCertificates cannot change/] })
})

void test('files at another path are taken', async (t) => {
  const { files, scene, reload, presented } = await start(t)
  const { cert, key } = files.authority.issue({ name: 'elsewhere', ...USAGE })
  writeFileSync(files.path('b.crt'), cert)
  writeFileSync(files.path('b.key'), key)
  scene.write(files.listen({ certificateFile: files.path('b.crt'), keyFile: files.path('b.key') }))
  t.match(await reload(), { outcome: 'reloaded' })
  t.equal(await presented(), 'elsewhere')
})

void test('a handshake that began before the change ends with the old certificate', async (t) => {
  const { files, scene, reload } = await start(t)
  // The first flight of a client is withheld, so that the change comes between connection and handshake.
  const raw = connect(Number(new URL(scene.gateway.url).port), '127.0.0.1')
  await once(raw, 'connect')
  // Another connection shows that the first was accepted.
  ;(await dial(scene.gateway.url)).destroy()
  files.write(files.authority.issue({ name: 'second', ...USAGE }))
  t.match(await reload(), { outcome: 'reloaded' })
  const socket = connectSecurely({ socket: raw, ca: files.authority.cert, host: '127.0.0.1' })
  await once(socket, 'secureConnect')
  t.equal(socket.getPeerCertificate().subject.CN, 'first')
  socket.destroy()
  await until(() => socket.destroyed)
})
