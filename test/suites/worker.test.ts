/** A process of test files fails with the error that nobody caught in one of them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { ROOT } from './suites.ts'
import type { FileResult } from './run-files.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

/** What the process says of a file, which is its only one, and how it ends. */
async function run(t: Test, file: string): Promise<{ result: FileResult; code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [WORKER], { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const closed = once(child, 'close') as Promise<[number | null]>
  const stderr = text(child.stderr as NodeJS.ReadableStream)
  const channel = child.stdio[3] as Socket
  channel.write(`test/suites/faulty/${file}\n`)
  const [line] = (await once(createInterface({ input: channel }), 'line')) as [string]
  channel.end()
  const [code] = await closed
  return { result: JSON.parse(line) as FileResult, code, stderr: await stderr }
}

for (const [file, name, message] of [
  ['throws.ts', 'where nobody catches it', 'thrown late'],
  ['rejects.ts', 'it rejects', 'rejected'],
] as const) {
  void test(`a file that ${name}`, async (t) => {
    const { result } = await run(t, file)
    t.equal(result.passed, false)
    const said = result.said.join('\n')
    t.match(said, `not ok 1 - ${message}`)
    t.match(said, new RegExp(`not ok \\d - ${name}`))
  })
}

void test('a file that throws when it is over', async (t) => {
  const { result, code, stderr } = await run(t, 'throws-when-over.ts')
  t.equal(result.passed, true)
  t.equal(code, 1)
  t.match(stderr, 'thrown later')
})

void test('no package follows each promise and socket', async (t) => {
  const { result } = await run(t, 'domain.ts')
  t.equal(result.passed, true, result.said.join('\n'))
})
