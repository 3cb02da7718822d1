/**
 * A gateway under systemd: what it reports, its watchdog, and the socket that it gets. A script takes the place of systemd-notify;
 * test/systemd/service.test.ts runs the shipped units with systemd itself.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { connectServiceManager, keepWatchdog, passedSocketFault, socketKindFault } from '../../src/gateway/service-manager.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startKeyServer, type Answer } from '../../testing/support/key-server.ts'
import { configFile, serving, type Line } from '../../testing/support/program.ts'
import { jwkOf, PAIRS } from '../../testing/support/signing.ts'
import { deferred, until } from '../../testing/support/until.ts'

/** A `systemd-notify` that appends what it is told to a file, which has the place of the socket. */
function stubNotify(folder: string) {
  const bin = join(folder, 'bin')
  const file = join(folder, 'notified')
  mkdirSync(bin)
  writeFileSync(file, '')
  writeFileSync(join(bin, 'systemd-notify'), `#!/bin/sh\nprintf '%s\\n' "$2" >>"$NOTIFY_SOCKET"\n`)
  chmodSync(join(bin, 'systemd-notify'), 0o755)
  const read = (): readonly string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return {
    environment: {
      NOTIFY_SOCKET: file,
      PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    },
    read,
    /** Waits until it has been told this, `times` times. */
    told: (what: string, times = 1) => until(() => read().filter((one) => one === what).length >= times),
  }
}

/** The keys of its issuer are fetched. */
function remoteIssuer(jwksUri: string) {
  return {
    'authentication.issuers.corp': { issuer: 'https://far.example/', audiences: ['chat'], algorithms: ['RS256'], jwksUri },
  }
}

void test('it is ready also without its upstream and an issuer, then reports each reload, its watchdog and its end', async (t) => {
  const { file, folder } = configFile(t, remoteIssuer('http://127.0.0.1:1/jwks'))
  const systemd = stubNotify(folder)
  const gateway = await serving(t, file, {
    environment: { ...systemd.environment, WATCHDOG_USEC: '40000' },
  })
  const listening = `STATUS=listening on ${String(gateway.listening['url'])}, configuration generation`
  await systemd.told('READY=1')
  await systemd.told('WATCHDOG=1', 3)

  gateway.signal('SIGHUP')
  await systemd.told('READY=1', 2)
  const good = readFileSync(file, 'utf8')
  writeFileSync(file, 'version: 2')
  await systemd.told('READY=1', 3)
  writeFileSync(file, good.replace('"version": 1', '"log": { "level": "debug" }, "version": 1'))
  await systemd.told('READY=1', 4)

  t.match(await gateway.end('SIGTERM'), { code: 0 })
  await systemd.told('STOPPING=1')
  t.same(
    systemd.read().filter((one) => one !== 'WATCHDOG=1'),
    [
      [`${listening} 1`, 'READY=1'],
      ['RELOADING=1', `${listening} 1`, 'READY=1'],
      ['RELOADING=1', `${listening} 1; the last change was refused, the log has the errors`, 'READY=1'],
      ['RELOADING=1', `${listening} 2`, 'READY=1'],
      ['STATUS=draining', 'STOPPING=1'],
    ].flat(),
  )
})

/** A gateway that waits for keys, until they are given. */
async function waitingForKeys(t: Test, workers: number) {
  const keys = await startKeyServer(t)
  const answer = deferred<Answer>()
  keys.answers.set('/jwks', () => answer.promise)
  const { file, folder } = configFile(t, { ...remoteIssuer(`${keys.url}/jwks`), workers })
  const systemd = stubNotify(folder)
  const gateway = await serving(t, file, { environment: systemd.environment })
  const give = (): void => answer.resolve({ body: { keys: [jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' })] } })
  return { systemd, gateway, give }
}

void test('it is ready when each worker has the keys of its issuers', async (t) => {
  const { systemd, gateway, give } = await waitingForKeys(t, 2)
  gateway.signal('SIGHUP')
  await systemd.told('RELOADING=1')
  t.match(systemd.read().slice(0, 2), [/^STATUS=listening/, 'RELOADING=1'])
  // The first one is that of the reload.
  await systemd.told('READY=1')
  give()
  await systemd.told('READY=1', 2)
  t.match(await gateway.end('SIGTERM'), { code: 0 })
})

void test('it stops while it waits for keys, and is never ready', async (t) => {
  const { systemd, gateway, give } = await waitingForKeys(t, 1)
  const ended = gateway.end('SIGTERM')
  await systemd.told('STOPPING=1')
  t.match(systemd.read(), [/^STATUS=listening/, 'STATUS=draining', 'STOPPING=1'])
  give()
  t.match(await ended, { code: 0 })
})

void test('a sender that ends is started again', async (t) => {
  const { folder } = configFile(t)
  const systemd = stubNotify(folder)
  const lines: string[] = []
  const manager = connectServiceManager(systemd.environment, makeLog('error', { write: (line) => void lines.push(line) }))
  manager?.notify('READY=1')
  await systemd.told('READY=1')

  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
  const sender = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('systemd-notify'))
  process.kill(Number(sender), 'SIGKILL')
  await until(() => lines.length > 0)
  t.match(lines, [/systemd cannot be notified.*SIGKILL|SIGKILL.*systemd cannot be notified/])
  manager?.notify('STOPPING=1')
  await systemd.told('STOPPING=1')
})

void test('without systemd there is nothing to notify', (t) => {
  const log = makeLog('silent')
  t.equal(connectServiceManager({}, log), null)
  t.equal(connectServiceManager({ NOTIFY_SOCKET: '' }, log), null)
  t.equal(connectServiceManager({ NOTIFY_SOCKET: '/n' }, log)?.watchdog, null)
  const watched = { NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '60000000' }
  t.equal(connectServiceManager(watched, log)?.watchdog, 30_000)
  t.equal(connectServiceManager({ ...watched, WATCHDOG_PID: String(process.pid) }, log)?.watchdog, 30_000)
  t.equal(connectServiceManager({ ...watched, WATCHDOG_PID: '1' }, log)?.watchdog, null, 'it is that of another process')
  t.end()
})

void test('the watchdog is reset by answers only', async (t) => {
  const reported: string[] = []
  const over = new AbortController()
  const answers: readonly (() => Promise<boolean>)[] = [async () => true, async () => false, async () => true, () => hung.promise]
  const hung = deferred<boolean>()
  let asked = 0
  const kept = keepWatchdog(
    { notify: (what) => void reported.push(what), watchdog: 2 },
    () => {
      reported.push('asked')
      return answers[asked++]!()
    },
    over.signal,
  )
  await until(() => asked === answers.length)
  t.same(reported, ['asked', 'WATCHDOG=1', 'asked', 'asked', 'WATCHDOG=1', 'asked'])
  over.abort()
  hung.resolve(true)
  await kept
  t.equal(asked, answers.length, 'nothing is asked after the end')
})

const PID = '4711'
const FAULTS: readonly (readonly [string, NodeJS.ProcessEnv, number, RegExp | null])[] = [
  ['the first socket', { LISTEN_PID: PID, LISTEN_FDS: '1' }, 3, null],
  ['the last of two', { LISTEN_PID: PID, LISTEN_FDS: '2' }, 4, null],
  ['beyond the last', { LISTEN_PID: PID, LISTEN_FDS: '2' }, 5, /the sockets 3 to 4 only/],
  ['those of another process', { LISTEN_PID: '471', LISTEN_FDS: '1' }, 3, /to process 471, not to this one, 4711/],
  ['a number that only begins with ours', { LISTEN_PID: `${PID}1`, LISTEN_FDS: '1' }, 3, /to process 47111/],
  ['ours with a space', { LISTEN_PID: ` ${PID}`, LISTEN_FDS: '1' }, 3, /not to this one/],
  ['none', {}, 3, /has passed no socket/],
  ['no process', { LISTEN_FDS: '1' }, 3, /has passed no socket/],
  ['no count', { LISTEN_PID: PID }, 3, /has passed no socket/],
  ['a count of 0', { LISTEN_PID: PID, LISTEN_FDS: '0' }, 3, /no socket \(LISTEN_FDS=0\)/],
  ['a count that is no number', { LISTEN_PID: PID, LISTEN_FDS: '1x' }, 3, /no socket \(LISTEN_FDS=1x\)/],
]

for (const [what, environment, fd, fault] of FAULTS) {
  void test(`sockets of systemd: ${what}`, (t) => {
    const found = passedSocketFault(fd, environment, Number(PID))
    if (fault === null) t.equal(found, null)
    else t.match(found, fault)
    t.end()
  })
}

void test('what a descriptor is, also where the system tells only a part, or nothing', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  mkdirSync(join(folder, 'fd'))
  mkdirSync(join(folder, 'net'))
  const line = (state: string, inode: number): string =>
    `   0: 0100007F:1F90 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100 0\n`
  const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
  writeFileSync(join(folder, 'net', 'tcp'), head + line('0A', 11) + line('01', 12))
  symlinkSync('socket:[11]', join(folder, 'fd', '3'))
  symlinkSync('socket:[12]', join(folder, 'fd', '4'))
  symlinkSync('/dev/null', join(folder, 'fd', '5'))
  t.equal(socketKindFault(3, folder), null, 'without IPv6, the system has one table')
  for (const fd of [4, 5]) t.match(socketKindFault(fd, folder), `descriptor ${fd} is not a TCP socket that listens (write `)
  t.match(socketKindFault(6, folder), /^descriptor 6 is not open: .* \(start the gateway itself in ExecStart=\)$/)
  rmSync(join(folder, 'net', 'tcp'))
  t.match(socketKindFault(3, folder), `${folder}/net/tcp cannot be read, which tells what descriptor 3 is (let `)
  writeFileSync(join(folder, 'net', 'tcp6'), head + line('0A', 11))
  t.equal(socketKindFault(3, folder), null)
  t.match(socketKindFault(3, join(folder, 'none')), 'none/fd cannot be read, which tells what descriptor 3 is (let ')
  t.end()
})

/** More connections than Node lets wait unless it is told: while the process accepts none, the system has to queue them. */
async function queues(child: ChildProcess, port: number): Promise<void> {
  child.kill('SIGSTOP')
  const waiting = Array.from({ length: 1000 }, () => connect(port, '127.0.0.1'))
  try {
    await Promise.all(waiting.map(async (socket) => once(socket, 'connect')))
  } finally {
    for (const socket of waiting) socket.destroy()
    child.kill('SIGCONT')
  }
}

const PROGRAM = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

void test('it serves on a socket that was passed to it, and refuses one that was not', async (t) => {
  const { file, folder } = configFile(t, { listen: { fd: 3 } })
  const socket = createServer()
  const start = async (path: string, pid: string) => {
    socket.listen(path === '' ? { host: '127.0.0.1', port: 0 } : { path })
    await once(socket, 'listening')
    const line = `LISTEN_FDS=1 LISTEN_PID=${pid} exec "$0" "$@"`
    // Node has no public way to pass a listening socket to another program.
    const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle
    const child = spawn('/bin/sh', ['-c', line, process.execPath, PROGRAM, 'serve', '--config', file], {
      stdio: ['ignore', 'pipe', 'pipe', fd],
    })
    const ended = once(child, 'close')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await ended
    })
    return { child, ended, stderr: text(child.stderr!) }
  }
  const served = await start('', '$$')
  const { port } = socket.address() as AddressInfo
  // The gateway's own: this process accepts nothing on it.
  socket.close()
  for await (const line of createInterface({ input: served.child.stdout! })) {
    const { msg, url } = JSON.parse(line) as Line
    if (msg !== 'listening') continue
    t.equal(url, `http://127.0.0.1:${port}`)
    break
  }
  t.equal((await fetch(`http://127.0.0.1:${port}/api/copilotkit/info`)).status, 401)
  await queues(served.child, port)
  served.child.kill('SIGTERM')
  t.match(await served.ended, [0])

  const foreign = await start('', '1')
  socket.close()
  t.match(await foreign.stderr, /^error: listen\.fd: systemd has passed its sockets to process 1, not to this one/)
  t.match(await foreign.ended, [1])

  const unix = await start(join(folder, 'socket'), '$$')
  socket.close()
  t.match(await unix.stderr, /^error: listen\.fd: descriptor 3 is not a TCP socket that listens/)
  t.match(await unix.ended, [1])
})
