/**
 * The shipped units, run by systemd itself as process 1 of namespaces of their own (boot.sh), with the built program. Needs root,
 * and Linux with systemd.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, globSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { ANSWERS } from '../replicas/callers.ts'
import { ROOT } from '../suites/suites.ts'

const UNIT = 'threadwarden.service'

/** A process without a cgroup of its own would leave systemd's in the machine's root. */
function makeCgroup(t: Test): string {
  const [root] = globSync('/sys/fs/cgroup{/unified,}/cgroup.procs')
  if (root === undefined) throw new Error('this machine has no cgroup2 hierarchy below /sys/fs/cgroup')
  const cgroup = join(root, '..', `threadwarden-test-${process.pid}`)
  mkdirSync(cgroup)
  t.teardown(async () => {
    const folders = readdirSync(cgroup, { recursive: true, withFileTypes: true }).filter((one) => one.isDirectory())
    const deepestFirst = [...folders.map(({ parentPath, name }) => join(parentPath, name)), cgroup].toSorted(
      (one, other) => other.length - one.length,
    )
    // The kernel empties it a moment after its last process.
    for (const folder of deepestFirst) await until(() => removed(folder))
  })
  return cgroup
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EBUSY') return false
    throw error
  }
}

async function boot(t: Test, configuration: object, socket: string) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const corp = signer.authentication.issuers['corp'] as { readonly publicKeyFile: string }
  mkdirSync(join(folder, 'etc/secrets'), { recursive: true })
  chmodSync(folder, 0o755)
  chmodSync(join(folder, 'etc/secrets'), 0o700)
  copyFileSync(corp.publicKeyFile, join(folder, 'etc/secrets/corp.pem'))
  const write = (changes: object): void =>
    writeFileSync(
      join(folder, 'etc/threadwarden.yaml'),
      JSON.stringify({
        version: 1,
        listen: { host: '127.0.0.1', port: 0 },
        health: { host: '127.0.0.1', port: 0 },
        authentication: { issuers: { corp: { ...corp, publicKeyFile: `/run/credentials/${UNIT}/secrets_corp.pem` } } },
        ownership: { store: 'sqlite:/var/lib/threadwarden/ownership.db', unknownThread: 'claim' },
        shutdown: { delay: '0s' },
        ...configuration,
        ...changes,
      }),
    )
  write({})
  const dropIn = (name: string, text: string): void => {
    mkdirSync(join(folder, 'drop-ins', `${name}.d`), { recursive: true })
    writeFileSync(join(folder, 'drop-ins', `${name}.d/test.conf`), text)
  }
  // There is no journal, and a test does not wait for a minute.
  dropIn(UNIT, '[Service]\nStandardOutput=append:/run/log\nStandardError=append:/run/log\nWatchdogSec=6\n')
  dropIn('threadwarden.socket', `[Socket]\nListenStream=\nListenStream=${socket}\n`)

  const cgroup = makeCgroup(t)
  const script =
    'echo $$ >"$0/cgroup.procs" && exec unshare --mount --pid --fork --kill-child --mount-proc --cgroup --uts --ipc "$@"'
  const args = [`${ROOT}test/systemd/boot.sh`, folder, ROOT.replace(/\/$/, ''), process.execPath]
  const child = spawn('/bin/sh', ['-c', script, cgroup, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => void (stderr += piece))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const children = (): string => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  const inside = (command: string, ...rest: readonly string[]) =>
    spawnSync('nsenter', ['-t', children(), '-a', command, ...rest], { encoding: 'utf8' })
  await until(() => {
    if (child.exitCode !== null) throw new Error(`systemd did not start: ${stderr}`)
    return children() !== '' && inside('systemctl', 'is-active', 'scene.target').stdout === 'active\n'
  })
  const show = (property: string, unit = UNIT): string => inside('systemctl', 'show', '-P', property, unit).stdout.trim()
  return {
    inside,
    show,
    write,
    sign: (subject: string) => signer.sign(subject),
    systemctl(t: Test, ...args: readonly string[]) {
      const { status, stderr: said } = inside('systemctl', ...args)
      if (status !== 0) t.comment(said, inside('systemctl', 'status', UNIT).stdout, inside('cat', '/run/log').stdout)
      t.equal(status, 0, args.join(' '))
    },
    url: (): string => /http:\/\/[\d.:]+/.exec(show('StatusText'))?.[0] ?? '',
  }
}

void test('systemd runs the shipped service: ready, hardened, reloaded, watched, stopped', async (t) => {
  const upstream = await startUpstream(ANSWERS)
  t.teardown(() => upstream.close())
  const configuration = { upstream: { url: upstream.url, basePath: '/api/copilotkit', transport: 'multi-route' } }
  const systemd = await boot(t, configuration, '127.0.0.1:1')
  const { show, inside } = systemd

  const verified = inside('systemd-analyze', 'verify', UNIT, 'threadwarden.socket')
  t.same([verified.status, verified.stderr], [0, ''])
  const security = ['security', '--offline=true', '--no-pager', '--threshold=20', `/etc/systemd/system/${UNIT}`]
  const { status, stdout } = inside('systemd-analyze', ...security)
  t.equal(status, 0, 'the exposure level is at most 2.0; OK ends at 5.0')
  t.match(stdout, /Overall exposure level for threadwarden\.service: [01]\.\d OK/)

  systemd.write({ version: 2 })
  t.not(inside('systemctl', 'start', UNIT).status, 0)
  t.same([show('ActiveState'), show('ExecMainStatus'), show('NRestarts')], ['failed', '78', '0'], 'it is not started again')
  systemd.write({})

  systemd.systemctl(t, 'start', UNIT)
  t.equal(show('ActiveState'), 'active')
  t.match(show('StatusText'), /^listening on http:\/\/127\.0\.0\.1:\d+, configuration generation 1$/)
  const main = show('MainPID')
  const process = inside('cat', `/proc/${main}/status`).stdout
  t.match(process, /^Uid:\s+([1-9]\d*)\s+\1\s+\1\s+\1$/m, 'it is no root')
  t.match(process, /^CapEff:\s+0+$/m)
  t.match(process, /^NoNewPrivs:\s+1$/m)
  t.match(process, /^Seccomp:\s+2$/m)
  t.match(inside('cat', `/proc/${main}/limits`).stdout, /^Max core file size\s+0\s+0/m)
  t.equal(inside('stat', '-c', '%U %a', '/var/lib/threadwarden').stdout, 'threadwarden 700\n')

  const run = async (user: string): Promise<number> =>
    (await call(`${systemd.url()}/api/copilotkit/agent/default/run`, { token: systemd.sign(user), body: runInput('t-1') })).status
  t.equal(await run('alice'), 200, 'the key came by LoadCredential, and the thread is in the state directory')
  t.equal(await run('bob'), 403)

  systemd.write({ log: { level: 'debug' } })
  systemd.systemctl(t, 'reload', UNIT)
  await until(() => show('StatusText').endsWith('configuration generation 2'))
  await until(() => show('ActiveState') === 'active')
  systemd.write({ version: 2 })
  systemd.systemctl(t, 'reload', UNIT)
  await until(() => show('StatusText').endsWith('generation 2; the last change was refused, the log has the errors'))
  t.equal(await run('alice'), 200)
  systemd.write({})

  t.equal(show('NRestarts'), '0', 'it resets its watchdog')
  inside('kill', '-STOP', main)
  await until(() => show('NRestarts') === '1' && show('ActiveState') === 'active')
  t.not(show('MainPID'), main, 'the watchdog restarted a process whose event loop did not run')
  t.equal(await run('bob'), 403, 'the table is that of before')

  systemd.systemctl(t, 'stop', UNIT)
  t.same([show('ActiveState'), show('Result'), show('ExecMainStatus')], ['inactive', 'success', '0'])
  t.match(inside('cat', '/run/log').stdout, /"msg":"stopped"/)

  systemd.write({ workers: 2 })
  systemd.systemctl(t, 'start', UNIT)
  const tasks = inside('pgrep', '-f', '^threadwarden worker').stdout.trim().split('\n')
  t.equal(tasks.length, 2)
  inside('kill', '-STOP', tasks[1]!)
  await until(() => show('NRestarts') === '1' && show('ActiveState') === 'active')
  t.notOk(inside('pgrep', '-f', '^threadwarden worker').stdout.split('\n').includes(tasks[1]!), 'one worker that hangs is enough')
})

void test('systemd passes the public port by the shipped socket, and keeps it open during a restart', async (t) => {
  const upstream = await startUpstream(ANSWERS)
  t.teardown(() => upstream.close())
  const port = await freePort()
  const configuration = {
    listen: { fd: 3 },
    upstream: { url: upstream.url, basePath: '/api/copilotkit', transport: 'multi-route' },
  }
  const systemd = await boot(t, configuration, `127.0.0.1:${port}`)
  const { show } = systemd
  const ask = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/api/copilotkit/info`)).status

  systemd.systemctl(t, 'start', 'threadwarden.socket')
  t.equal(show('ActiveState'), 'inactive')
  t.equal(await ask(), 401, 'the first connection starts the gateway')
  t.equal(systemd.url(), `http://127.0.0.1:${port}`)
  systemd.systemctl(t, 'stop', UNIT)
  systemd.systemctl(t, 'start', UNIT)
  t.equal(await ask(), 401)

  const before = show('MainPID')
  systemd.systemctl(t, 'restart', '--no-block', UNIT)
  let answers = 0
  while (show('MainPID') === before || show('ActiveState') !== 'active') {
    t.equal(await ask(), 401, 'no connection is refused meanwhile')
    answers += 1
  }
  t.ok(answers > 0)
})
