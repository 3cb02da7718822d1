/** scripts/setup.mjs: two runs at once do not fail on the locks of apt-get. The programs of Debian are replaced by ones that record their calls. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'

const skip = process.getuid?.() !== 0 || !existsSync('/var/lib/apt/lists') ? 'needs root on Debian' : false

void test('two runs at once install one after the other', { skip }, async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const program = (name: string, lines: readonly string[]): void =>
    writeFileSync(join(folder, name), ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 })
  program('dpkg', ['exit 1'])
  // Like apt-get, it does not wait for the lock of another one.
  program('apt-get', [`mkdir ${folder}/lock || exit 100`, `echo "$@" >>${folder}/calls`, 'sleep 0.02', `rmdir ${folder}/lock`])
  const setUp = async (): Promise<{ code: number | null; stderr: string }> => {
    const child = spawn(process.execPath, [join(ROOT, 'scripts/setup.mjs'), '--only-containers'], {
      env: { ...process.env, PATH: `${folder}:${process.env['PATH']}` },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const closed = once(child, 'close') as Promise<[number | null]>
    const stderr = await text(child.stderr)
    return { code: (await closed)[0], stderr }
  }
  const succeeded = { code: 0, stderr: '' }
  t.same(await Promise.all([setUp(), setUp()]), [succeeded, succeeded])
  const calls = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')
  t.equal(calls.length, 4, 'an update and an installation in each run')
  t.same(
    calls.filter((call) => !/-o DPkg::Lock::Timeout=[1-9]/.test(call)),
    [],
    'it waits for the dpkg of another program',
  )
})
