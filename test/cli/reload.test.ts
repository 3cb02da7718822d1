/** `threadwarden serve` puts changed files in force by itself, and when it is told: written over, renamed into place, swapped. */
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { test, type Test } from 'tap'
import { call } from '../../testing/support/client.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { configFile, serving, type Line } from '../../testing/support/program.ts'

const OPEN = 'version: 1\nrules:\n  - { routes: [info], allow: [signed-in] }\n'
const CLOSED = 'version: 1\nrules:\n  - { routes: [info], allow: [] }\n'

const changed = (cause: string) => (line: Line) => line['msg'] === 'the new configuration is active' && line['cause'] === cause
const refused = (line: Line) => String(line['msg']).startsWith('the new configuration is invalid')

function token(): string {
  const sign = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })
  return sign({ iss: 'corp', aud: 'chat', sub: 'alice', exp: Math.floor(Date.now() / 1000) + 3600 })
}

async function changes(t: Test, more: Record<string, unknown> = {}) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { file, folder } = configFile(t, {
    'upstream.url': upstream.url,
    'upstream.transport': 'multi-route',
    policy: './policy.yaml',
    ...more,
  })
  return { file, folder }
}

const info = async (listening: Line): Promise<number> =>
  (await call(`${String(listening['url'])}/api/copilotkit/info`, { token: token() })).status

void test('a policy that is written over, or renamed into place, is in force without a word', async (t) => {
  const { file, folder } = await changes(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, OPEN)
  const { listening, line, lines, end } = await serving(t, file)
  t.equal(await info(listening), 200)
  writeFileSync(policy, CLOSED)
  t.match(await line(changed('file')), { generation: 2, policy: /^[0-9a-f]{64}$/, enforcement: 'enforce' })
  t.equal(await info(listening), 403)
  writeFileSync(`${policy}.new`, OPEN)
  renameSync(`${policy}.new`, policy)
  await line((one) => changed('file')(one) && one['generation'] === 3)
  t.equal(await info(listening), 200)
  writeFileSync(policy, 'rules: [')
  t.match(await line(refused), { level: 'error', cause: 'file', faults: [/policy\.yaml:1/] })
  t.equal(await info(listening), 200)
  t.equal(lines.filter(refused).length, 1, 'a fault that stays is said once')
  t.same(await end('SIGTERM'), { code: 0, signal: null })
})

void test('a mounted ConfigMap: the link to its data is swapped, and everything in it changes at once', async (t) => {
  const { file, folder } = await changes(t, { policy: undefined })
  const mount = join(folder, 'mount')
  const content = JSON.parse(readFileSync(file, 'utf8')) as {
    ownership: { store: string }
    authentication: { issuers: { corp: { secretFile: string } } }
  }
  content.ownership.store = `sqlite:${join(folder, 'ownership.db')}`
  content.authentication.issuers.corp.secretFile = join(folder, 'secret')
  const version = (name: string, policy: string): void => {
    const data = join(mount, name)
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'threadwarden.yaml'), JSON.stringify({ ...content, policy: 'policy.yaml' }))
    writeFileSync(join(data, 'policy.yaml'), policy)
    symlinkSync(name, join(mount, '..data_tmp'))
    renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
  }
  // As the kubelet does it: files are links through ..data, which alone is replaced.
  version('..2026_01', OPEN)
  const mounted = join(mount, 'threadwarden.yaml')
  for (const name of ['threadwarden.yaml', 'policy.yaml']) symlinkSync(join('..data', name), join(dirname(mounted), name))
  const { listening, line, end } = await serving(t, mounted)
  t.equal(await info(listening), 200)
  version('..2026_02', CLOSED)
  await line(changed('file'))
  t.equal(await info(listening), 403)
  await end('SIGTERM')
})

void test('a secret that is rotated in its file is sent upstream from then on', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { file, folder } = configFile(t, {
    'upstream.url': upstream.url,
    'upstream.transport': 'multi-route',
    'upstream.headers': { 'x-key': '${file:key}' },
  })
  writeFileSync(join(folder, 'key'), 'first')
  const { listening, line, lines, end } = await serving(t, file)
  t.equal(await info(listening), 200)
  writeFileSync(join(folder, 'key'), 'second')
  await line(changed('file'))
  t.equal(await info(listening), 200)
  t.same(
    upstream.requests.map(({ headers }) => headers.get('x-key')),
    [['first'], ['second']],
  )
  t.notMatch(JSON.stringify(lines), /first|second/)
  await end('SIGTERM')
})

void test('SIGHUP reads the configuration anew at once, also where nothing has changed', async (t) => {
  const { file, folder } = await changes(t)
  writeFileSync(join(folder, 'policy.yaml'), OPEN)
  const { signal, line, end } = await serving(t, file)
  signal('SIGHUP')
  t.match(await line(({ msg }) => msg === 'the configuration has not changed'), { cause: 'SIGHUP', generation: 1 })
  t.same(await end('SIGTERM'), { code: 0, signal: null }, 'it ends nothing')
})
