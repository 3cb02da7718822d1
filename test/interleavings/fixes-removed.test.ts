/** Each fix that the histories are about is removed in turn, and they find what it prevents. */
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { test } from 'tap'
import { FIXES } from './fixes.ts'

/** What the command prints with one fix removed, and its exit code. */
function interleavings(without: string, args: readonly string[]): Promise<{ readonly code: unknown; readonly output: string }> {
  const root = resolve(import.meta.dirname, '../..')
  const preload = ['--import', resolve(import.meta.dirname, 'fixes.ts')]
  const env = { ...process.env, THREADWARDEN_WITHOUT: without }
  return new Promise((done) => {
    execFile(process.execPath, [...preload, 'scripts/interleavings.ts', ...args], { cwd: root, env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : error.code, output: stdout + stderr })
    })
  })
}

for (const [name, { scenarios, store, found }] of Object.entries(FIXES)) {
  void test(`found without the fix: ${name}`, async (t) => {
    const { code, output } = await interleavings(name, ['--store', store, '--only', scenarios, '--most', '400'])
    t.equal(code, 1)
    t.match(output, /FOUND: /)
    t.match(output, found)
  })
}
