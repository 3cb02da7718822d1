/** `threadwarden doctor`: findings for a person or a program, exit codes, and wrong usage. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { doctorOn } from '../../src/cli/doctor.ts'
import { hush } from '../doctor/examination.ts'
import { QUIET } from '../doctor/machine.ts'
import { startScene, type Scene } from '../doctor/gateway-scene.ts'
import { ended, run } from './in-process.ts'
import type { ConfigTree } from '../../testing/support/gateway.ts'
import type { Ended } from '../../testing/support/decided.ts'
import { configFile } from '../../testing/support/program.ts'

/** Runs the doctor on a machine whose disk keeps what is written. */
function runElsewhere(t: Test, args: readonly string[]): Promise<Ended> {
  return ended(t, ['doctor', ...args], (_, terminal) => doctorOn(() => QUIET).run(args, terminal))
}

/** A gateway before a runtime, both as they should be, and the configuration by which the doctor finds them. */
async function startHealthy(t: Test, config: ConfigTree = {}) {
  hush(t)
  clearThreads()
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  const scene = await startScene(t, runtime.url, config)
  await scene.gateway.ready()
  const { folder } = configFile(t)
  writeFileSync(join(folder, 'token'), `${scene.signer.sign('alice')}\n`)
  return { ...scene, runtime, file: withPorts(scene), tokenFile: join(folder, 'token') }
}

/** The configuration of the gateway, with the ports that it got. @returns a file beside its own, which has the same store */
function withPorts({ gateway: { file, url, healthUrl } }: Scene): string {
  const tree = JSON.parse(readFileSync(file, 'utf8')) as Record<string, object>
  const at = (address: string): object => ({ host: '127.0.0.1', port: Number(new URL(address).port) })
  writeFileSync(`${file}.ports`, JSON.stringify({ ...tree, listen: at(url), health: at(healthUrl) }))
  return `${file}.ports`
}

interface Data {
  readonly healthy: boolean
  readonly counts: Readonly<Record<string, number>>
  readonly findings: readonly {
    readonly check: string
    readonly level: string
    readonly message: string
    readonly remedy?: string
  }[]
}

void test('where nothing is wrong the exit code is 0, and nothing is on stderr', async (t) => {
  const { file, tokenFile } = await startHealthy(t)
  const { code, stdout, stderr } = await runElsewhere(t, ['--config', file, '--token-file', tokenFile])
  t.same({ code, stderr }, { code: 0, stderr: '' }, stdout)
  for (const part of ['configuration', 'store', 'issuers', 'upstream', 'gateway']) t.match(stdout, new RegExp(`^${part}$`, 'm'))
  t.match(stdout, /^ {2}ok {7}runtime: a multi-route runtime/m)
  t.match(stdout, /^ {2}unknown {2}run: not checked: .*\n {11}→ pass --run AGENT/m)
  t.match(stdout, /\n\n0 problems, 0 warnings, \d+ unknown, \d+ ok\.\n$/)
})

void test('--json says the same to a program', async (t) => {
  const { file, runtime } = await startHealthy(t)
  const fine = await runElsewhere(t, ['--config', file, '--json'])
  const data = JSON.parse(fine.stdout) as Data
  t.match(fine, { code: 0, stderr: '' })
  t.match(data, { healthy: true, counts: { problem: 0, warning: 0 } })
  t.equal(
    Object.values(data.counts).reduce((sum, count) => sum + count),
    data.findings.length,
  )
  for (const { check, level, message, ...rest } of data.findings) {
    t.match(check, /^(?:configuration|(?:store|issuers|upstream|gateway)\.[a-z]+)$/)
    t.match(level, /^(?:ok|warning|problem|unknown)$/)
    t.ok(message.length > 0)
    t.same(Object.keys(rest), 'remedy' in rest ? ['remedy'] : [])
  }
  await runtime.close()
  const broken = await runElsewhere(t, ['--config', file, '--json'])
  t.equal(broken.code, 1)
  t.match(JSON.parse(broken.stdout), { healthy: false })
})

void test('a problem is exit code 1, with its remedy below it', async (t) => {
  const { file } = configFile(t)
  const { code, stdout } = await runElsewhere(t, ['--config', file])
  t.equal(code, 1)
  t.match(stdout, /^ {2}PROBLEM {2}reachable: nothing listens on http:\/\/127\.0\.0\.1:1\n {11}→ start the runtime/m)
  t.match(stdout, /\n1 problem, 0 warnings, /)
})

void test('a warning alone is exit code 1, too, and warnings of the configuration are among the findings', async (t) => {
  const { file } = await startHealthy(t, { upstream: { headers: { 'x-api-key': 'hunter2hunter2' } } })
  const { code, stdout, stderr } = await runElsewhere(t, ['--config', file])
  t.equal(code, 1)
  t.match(stdout, /^ {2}WARNING {2}.*upstream\.headers\.x-api-key: looks like a secret in plain text\n {11}→ write/m)
  t.match(stdout, /\n0 problems, 1 warning, /)
  t.notOk(stdout.includes('hunter2') || stderr.includes('hunter2'))
})

void test('an invalid configuration is exit code 1, every fault of it told and nothing asked', async (t) => {
  const { file } = configFile(t, { 'listen.prot': 1, 'ownership.unknownThread': undefined })
  const { code, stdout } = await run(t, ['doctor', '--config', file, '--json'])
  t.equal(code, 1)
  t.match((JSON.parse(stdout) as Data).findings, [
    { check: 'configuration', level: 'problem', message: /ownership\.unknownThread/ },
    { check: 'configuration', level: 'problem', message: /listen\.prot: is not a known key/, remedy: /validate/ },
    { check: 'everything else', level: 'unknown', message: 'not checked: the configuration is invalid' },
  ])
})

void test('--run, --message and --url go to the gateway that is named', async (t) => {
  const { file, tokenFile, base, runtime } = await startHealthy(t)
  const asked = ['--config', file, '--token-file', tokenFile, '--url', `${base}/`, '--timeout', '10s']
  const { stdout } = await runElsewhere(t, [...asked, '--run', 'default', '--message', 'hello', '--quiet', '1s'])
  t.match(stdout, /quiet: a stream without events stays open for 1 s/)
  t.match(stdout, /run: the run ended after \d+ ms: too fast to see/)
  t.equal(runtime.requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/run')).length, 1)
})

void test('the program itself has the command', async (t) => {
  const { file } = configFile(t)
  const { code, stdout, stderr } = await run(t, ['doctor', '--config', file, '--timeout', '500ms'])
  t.same({ code, stderr }, { code: 1, stderr: '' })
  t.match(stdout, /^configuration\n {2}ok {7}.* is valid\n/)
})

void test('doctor --help tells of its options and exit codes', async (t) => {
  const { code, stdout, stderr } = await run(t, ['doctor', '--help'])
  t.same({ code, stderr }, { code: 0, stderr: '' })
  for (const word of [
    '--config FILE',
    '--timeout',
    '--token-file FILE',
    '--url URL',
    '--run AGENT',
    '--message',
    '--quiet TIME',
    '--json',
    'Exit codes:\n  0  no problem',
  ])
    t.ok(stdout.includes(word), word)
})

const noFile = '/nowhere/threadwarden.yaml'
for (const [args, message] of [
  [[], /--config FILE is missing/],
  [['--bogus'], /Unknown option '--bogus'/],
  [['--config', noFile, '--timeout', '5'], /--timeout 5 is not a duration/],
  [['--config', noFile, '--timeout', '0s'], /--timeout 0s is not a duration/],
  [['--config', noFile, '--token-file', '/nowhere/token'], /--token-file \/nowhere\/token does not exist/],
  [['--config', noFile, '--token-file', fileURLToPath(import.meta.url)], /contains no token: write the token alone/],
  [['--config', noFile, '--url', 'chat.example.com'], /--url must be an address such as/],
  [['--config', noFile, '--url', 'https://user:hunter2@chat.example.com/'], /--url contains a password/],
  [['--config', noFile, '--url', 'https://chat.example.com/?token=hunter2'], /--url has a query/],
  [['--config', noFile, '--message', 'hello'], /--message can only be combined with --run/],
  [['--config', noFile, '--run', ''], /--run must name an agent/],
  [['--config', noFile, '--quiet', '5'], /--quiet 5 is not a time in whole seconds/],
  [['--config', noFile, '--quiet', '1500ms'], /--quiet 1500ms is not a time in whole seconds/],
  [['--config', noFile, '--quiet', '301s'], /--quiet 301s is not a time in whole seconds, of at most 300 s/],
] as const) {
  void test(`doctor ${args.join(' ').replace(/\/.*\/(?=\w)/, '')} is wrong usage`, async (t) => {
    const { code, stdout, stderr } = await run(t, ['doctor', ...args])
    t.same({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, message)
    t.match(stderr, /See threadwarden doctor --help\.\n$/)
    t.notMatch(stderr, /hunter2/)
  })
}
