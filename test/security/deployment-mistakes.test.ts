/**
 * Deployments in which no rule of the gateway's holds: an upstream that is reached past it or takes envelopes on any path,
 * one subject for everybody, a table that is lost with the pod (SECURITY.md, "Mistakes that void everything"; CWE-1327 is
 * the first of them, and behind exposed agent servers time and again). Each is said aloud by `validate` or at start.
 */
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { startRuntime } from '../../examples/runtime.ts'
import { openPastLoopback } from '../../src/http/upstream/exposure.ts'
import { lostWith } from '../../src/store/durability.ts'
import { accepted } from '../../testing/support/configuration.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { makeFolder, startTestGateway } from '../../testing/support/gateway.ts'
import { claims } from '../../testing/support/signing.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { json, startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** The port of a server that takes connections on this address. */
async function listening(t: Test, host: string): Promise<number> {
  const server = createServer((socket) => void socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

void test('an upstream beside the gateway that listens on every address is found at start', async (t) => {
  const open = await listening(t, '0.0.0.0')
  const closed = await listening(t, '127.0.0.1')
  // Every address of 127.0.0.0/8 is this machine: the second stands for one that others reach.
  const others = ['127.0.0.2', '127.0.0.3']
  t.same(
    await openPastLoopback(`http://127.0.0.1:${open}`, others),
    others.map((address) => `${address}:${open}`),
  )
  t.same(await openPastLoopback(`http://localhost:${open}`, ['127.0.0.2']), [`127.0.0.2:${open}`])
  t.same(await openPastLoopback(`http://127.0.0.1:${closed}`, others), [])
  t.same(await openPastLoopback(`http://runtime.internal:${open}`, others), [], 'another machine cannot be judged from here')
})

void test('start says both aloud, and serves all the same', async (t) => {
  const signer = makeSigner()
  const start = async (host: string, mounts: string) => {
    const upstream = await startUpstream(undefined, { host })
    const config = { authentication: signer.authentication, upstream: { url: upstream.url, transport: 'multi-route' } }
    const gateway = await startTestGateway(config, { machine: { mounts, addresses: ['127.0.0.2'] } })
    t.teardown(async () => {
      await gateway.close()
      await upstream.close()
    })
    const said = (about: RegExp) => gateway.lines.some((line) => line['level'] === 'warn' && about.test(String(line['msg'])))
    return { gateway, said }
  }
  const mistaken = await start('0.0.0.0', '21 1 0:50 / / rw - overlay overlay rw')
  await until(() => mistaken.said(/BYPASS THE GATEWAY/))
  t.ok(mistaken.said(/is in the container and will be lost/))
  const right = await start('127.0.0.1', '')
  t.notOk(right.said(/will be lost/))
  for (const { gateway } of [mistaken, right]) {
    const url = `${gateway.url}/api/copilotkit/info`
    t.equal((await call(url, { token: signer.sign('alice') })).status, 200)
  }
  t.notOk(right.said(/PAST THE GATEWAY/))
  signer.remove()
})

void test('an upstream on another machine draws a warning, unless it is shown a secret', (t) => {
  const warnings = (url: string, headers: object = {}) => accepted({ 'upstream.url': url, 'upstream.headers': headers }).warnings
  for (const url of [
    'http://runtime:4000',
    'http://10.0.0.5:4000',
    'https://runtime.example.com',
    'http://[fd00::1]:4000',
    'http://127.example.com',
  ]) {
    t.match(warnings(url), [{ path: 'upstream.url', message: /bypasses the gateway/, hint: /upstream\.headers/ }], url)
    t.same(warnings(url, { 'x-from': 'gateway' }), [], url)
  }
  for (const url of ['http://127.0.0.1:4000', 'http://localhost:4000', 'http://[::1]:4000', 'http://127.9.9.9'])
    t.same(warnings(url), [], url)
  t.end()
})

void test('an upstream that shows another transport than the one that is named is not forwarded to', async (t) => {
  for (const [mode, transport] of [
    ['single-route', 'multi-route'],
    ['multi-route', 'single-route'],
  ] as const) {
    const runtime = await startRuntime({ mode })
    t.teardown(() => runtime.close())
    const { base, gateway, alice } = await gateBefore(t, runtime.url, { config: { upstream: { transport } } })
    await until(() => gateway.readiness.pending().has('upstream'))
    t.equal(
      gateway.readiness.pending().get('upstream'),
      `upstream.transport says ${transport}, and the upstream is ${mode}: name that, or auto`,
    )
    const before = runtime.requests.length
    const envelope = { method: 'agent/run', params: { agentId: 'default' }, body: runInput('t1') }
    for (const path of ['/agent/default/run', '/threads/clear', '']) {
      t.equal(codeOf(await call(`${base}${path}`, { token: alice, body: envelope })), 'not-ready', `${transport} ${path}`)
    }
    t.equal((await call(`${gateway.healthUrl}/readyz`)).status, 503)
    // The gateway's own questions may go on; nothing else came.
    t.same(
      runtime.requests.slice(before).filter((request) => !/^\/api\/copilotkit(?:\/info)?$/.test(request.url)),
      [],
    )
  }
})

void test('a transport that is named, and contradicted by the upstream, is doubted in the log', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json({ error: 'no' }, 404))
  const { base, gateway, alice } = await gateBefore(t, upstream.url)
  await until(() => gateway.lines.some((line) => line['level'] === 'warn' && /says multi-route/.test(String(line['msg']))))
  t.equal((await call(`${base}/info`, { token: alice })).status, 200, 'it is believed all the same')
})

void test('one subject for all users: a claim that all share, or that is given to later users, draws a warning', (t) => {
  const warnings = (id: string, more: object = {}) => {
    const corp = { issuer: 'https://login.example.com/', audiences: ['chat'], algorithms: ['RS256'], claims: { id }, ...more }
    return accepted({ 'authentication.issuers.corp': corp }).warnings
  }
  const path = 'authentication.issuers.corp.claims.id'
  for (const id of ['/iss', '/aud', '/azp', '/client_id', '/tid', '/org_id', '/scope', '/appid']) {
    t.match(warnings(id), [{ path, message: /one value for all users of an application/ }], id)
  }
  t.match(warnings('/app', { audienceClaim: '/app' }), [{ path, message: /one value for all users of an application/ }])
  for (const id of ['/email', '/preferred_username', '/upn', '/name']) {
    t.match(warnings(id), [{ path, message: /reassigned to another person later/ }], id)
  }
  for (const id of ['/sub', '/oid', '/uid', '/user/id']) t.same(warnings(id), [], id)
  const off = accepted({ 'authentication.mode': 'off', 'authentication.issuers': undefined })
  t.match(off.warnings, [{ path: 'authentication.mode', message: /all callers are one user/ }])
  t.end()
})

void test('a token of a client, not of a person, is told', async (t) => {
  const clients: string[] = []
  const authenticate = rsaGate(t, {}, { clients })
  const token = (more: Record<string, unknown>) => `Bearer ${rsaToken(claims(more))}`
  t.match(await authenticate(token({})), { principal: { kind: 'user' } })
  t.match(await authenticate(token({ client_id: 'web' })), { principal: { kind: 'user' } })
  t.match(await authenticate(token({ client_id: ['alice'] })), { principal: { kind: 'user' } })
  t.same(clients, [])
  t.match(await authenticate(token({ client_id: 'alice' })), { principal: { kind: 'user', id: 'corp:alice' } })
  t.same(clients, ['corp:alice'])
  await authenticate(`${token({ client_id: 'alice' }).slice(0, -4)}AAAA`)
  t.equal(clients.length, 1, 'nothing is told of a token that is not good')
})

void test('a store that is lost with its container, pod or machine is found at start', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const mounts = (...lines: string[]) => ['21 1 254:0 / / rw - ext4 /dev/vda rw', ...lines, ''].join('\n')
  const at = (root: string, type: string, place = folder) => `30 21 0:30 ${root} ${place} rw shared:1 master:2 - ${type} none rw`
  t.equal(lostWith(file, mounts()), null)
  t.equal(lostWith(file, '21 1 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/a'), 'the container')
  t.equal(lostWith(file, mounts(at('/', 'tmpfs'))), 'the memory of the machine')
  const emptyDir = '/var/lib/kubelet/pods/1b2c/volumes/kubernetes.io~empty-dir/data'
  t.equal(lostWith(file, mounts(at(emptyDir, 'ext4'))), 'the pod')
  t.equal(lostWith(file, mounts(at(emptyDir, 'tmpfs'))), 'the pod')
  t.equal(lostWith(file, mounts(at('/var/lib/kubelet/pods/1b2c/volumes/kubernetes.io~csi/pvc/mount', 'ext4'))), null)
  const ofContainerd = '/var/lib/containerd/io.containerd.grpc.v1.cri/containers/1b2c/volumes/3d4e'
  const ofDocker = `/var/lib/docker/volumes/${'0123456789abcdef'.repeat(4)}/_data`
  for (const unnamed of [ofContainerd, ofDocker]) t.equal(lostWith(file, mounts(at(unnamed, 'ext4'))), 'the container', unnamed)
  t.equal(lostWith(file, mounts(at('/var/lib/docker/volumes/ownership/_data', 'ext4'))), null)
  t.equal(lostWith(file, mounts(at('/', 'overlay'), at('/', 'xfs'))), null, 'the later mount hides the earlier')
  t.equal(lostWith(file, mounts(at('/', 'tmpfs', `${folder}x`))), null, 'a neighbour of the same beginning')
  t.equal(lostWith(file, mounts(at('/', 'tmpfs', '/nowhere'))), null)
  t.equal(
    lostWith(file, mounts(at('/', 'tmpfs', folder.replace('threadwarden', '\\164hreadwarden')))),
    'the memory of the machine',
  )
  t.equal(lostWith(file, ''), null, 'where there is no such file')
  t.end()
})
