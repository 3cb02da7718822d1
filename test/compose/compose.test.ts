/**
 * deploy/compose.yaml: docker-compose accepts it, it is locked down, and what it starts works together. processes.ts starts the same
 * programs without containers, which need root: scripts/compose-check.sh has them.
 */
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { test } from 'tap'
import { parse } from 'yaml'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'

interface Service {
  readonly image: string
  readonly ports?: readonly string[]
  readonly networks: Readonly<Record<string, unknown>>
  readonly volumes?: readonly string[]
  readonly [key: string]: unknown
}

interface Composition {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>
}

const NAMES = ['gateway', 'runtime', 'issuer', 'postgres', 'prometheus']

/** As docker-compose reads it, in a copy of the folder with the secret in it. */
function composed(folder: string): Composition {
  cpSync(`${ROOT}deploy`, folder, { recursive: true })
  mkdirSync(join(folder, 'compose/secrets'), { recursive: true })
  writeFileSync(join(folder, 'compose/secrets/postgres-password'), 'in-this-test-only\n')
  const { status, stdout, stderr } = spawnSync('docker-compose', ['-f', join(folder, 'compose.yaml'), 'config'], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return parse(stdout) as Composition
}

void test('docker-compose accepts it, and every service is locked down', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { services, networks } = composed(folder)
  t.same(Object.keys(services).toSorted(), NAMES.toSorted())
  for (const [name, service] of Object.entries(services)) {
    t.match(service, { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }, name)
    t.ok(service['healthcheck'], `${name} has a health check`)
    // podman splits the arguments of a health check at blanks.
    const { test: words } = service['healthcheck'] as { readonly test: readonly string[] }
    t.notOk(
      words.some((word) => word.includes(' ')),
      `${name}: no blank in an argument of its health check`,
    )
    t.notOk(service['privileged'] ?? service['cap_add'], name)
    t.match(service.image, /:v?\d+\.\d+\.\d+(?:-\w+)?$|postgres:17\.\d+-bookworm$/, `${name}: a pinned image`)
    for (const port of service.ports ?? []) t.match(port, /^127\.0\.0\.1:/, `${name}: a port of this machine only`)
    t.notMatch(JSON.stringify(service['environment'] ?? {}), 'in-this-test-only', `${name}: secrets are files`)
  }
  t.match(services['gateway']?.['healthcheck'], { test: ['CMD', 'node', '/app/dist/cli.js', 'health'] })
  for (const name of ['runtime', 'issuer', 'postgres']) {
    t.equal(services[name]?.ports, undefined, `${name} has no port outside`)
    const [network = '', ...others] = Object.keys(services[name]?.networks ?? {})
    t.same([networks[network]?.internal, others], [true, []], `${name} is on an internal network only`)
    const members = NAMES.filter((one) => network in (services[one]?.networks ?? {}))
    t.same(members, ['gateway', name], 'with the gateway alone')
  }
  const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { readonly version: string }
  t.match(services['gateway']?.image, `:${version}`)
  t.end()
})

void test('what it starts works together, with its files, names, ports and health checks', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { services } = composed(join(folder, 'deploy'))
  const hosts = ['127.0.0.1 localhost', ...NAMES.map((name, at) => `127.0.1.${at + 1} ${name}`)]
  writeFileSync(join(folder, 'hosts'), `${hosts.join('\n')}\n`)
  mkdirSync(join(folder, 'data'))
  mkdirSync(join(folder, 'etc'))
  cpSync(join(folder, 'deploy/compose/secrets'), join(folder, 'secrets'), { recursive: true })
  const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')))
  for (const [from = '', to = ''] of mounts) {
    if (!to.startsWith('/etc/')) continue
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(from, join(folder, to))
  }
  const inside = [
    `${ROOT}test/compose/namespace.sh`,
    folder,
    process.execPath,
    `${ROOT}test/compose/processes.ts`,
    join(folder, 'data'),
  ]
  const child = spawn('unshare', ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', ...inside])
  t.teardown(() => child.kill('SIGKILL'))
  const stderr = text(child.stderr)
  const seen = await json(child.stdout).catch(async () => t.fail(await stderr))
  t.same(seen, {
    run: 200,
    finished: true,
    alice: 200,
    bob: 403,
    nobody: 401,
    alerts: alertsOf('deploy/observability/threadwarden.rules.yml'),
  })
})

function alertsOf(file: string): number {
  return readFileSync(`${ROOT}${file}`, 'utf8').match(/^ +- alert: /gm)?.length ?? 0
}
