/** A full disk behind stdout takes the log, and not the gateway: it serves, and ends when it is told to. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { configFile } from '../../testing/support/program.ts'

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
