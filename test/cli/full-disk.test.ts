/** A full disk: behind stdout it takes the log, and not the gateway, which serves, and ends when it is told to. `init` leaves nothing. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { configFile, run } from '../../testing/support/program.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

for (const to of ['off', 'stdout']) {
  void test(`with the audit ${to}`, async (t) => {
    const port = await freePort()
    const { file } = configFile(t, { health: { host: '127.0.0.1', port }, audit: { to } })
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [PROGRAM, 'serve', '--config', file], { stdio: ['ignore', full, 'ignore'] })
    closeSync(full)
    const closed = once(child, 'close')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await closed
    })
    const answers = async (): Promise<boolean> =>
      (await fetch(`http://127.0.0.1:${port}/startupz`).catch(() => null))?.status === 200
    await until(answers)
    t.ok(await answers(), 'it goes on after the lines of the start were lost')
    child.kill('SIGTERM')
    t.same(await closed, [0, null])
  })
}

/** In a mount namespace of its own, `folder` has room for so many bytes. */
function inRoomOf(bytes: number, folder: string, ...command: readonly string[]) {
  const line = 'mount -t tmpfs -o size="$0" tmpfs "$1" && shift && exec "$@"'
  return spawnSync('unshare', ['--mount', 'sh', '-c', line, String(bytes), folder, ...command], { encoding: 'utf8' })
}

const skip = inRoomOf(4096, '/mnt', 'true').status === 0 ? false : 'only root may mount file systems'

void test('a configuration that does not fit is not written in part', { skip }, async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'threadwarden.yaml')
  const init = ['init', '--offline', '--upstream', 'http://127.0.0.1:1', '--issuer', 'https://login.example.com/', '--out']
  const { stdout } = await run(t, [...init, '-'])
  // There is room for the draft, and for less than the whole copy.
  const blocks = Math.ceil(Buffer.byteLength(stdout) / 4096)
  const command = ['sh', '-c', '"$@"; ls -A "$0"', folder, process.execPath, PROGRAM, ...init, file]
  const ended = inRoomOf((2 * blocks - 1) * 4096, folder, ...command)
  t.match(ended, { stdout: '', stderr: `error: ${file} cannot be written (ENOSPC)` })
})
