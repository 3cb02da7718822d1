/** A gateway that can't start says why on stderr and ends with exit code 1, or 78 for its configuration: it never stays up half. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { run } from './in-process.ts'
import { configFile, run as runProcess } from '../../testing/support/program.ts'

void test('an invalid configuration is not served: every fault is told', async (t) => {
  const { file } = configFile(t, { 'listen.prot': 1, 'ownership.unknownThread': undefined })
  const { code, stdout, stderr } = await runProcess(t, ['serve', '--config', file])
  t.same({ code, stdout }, { code: 78, stdout: '' })
  t.match(stderr, /^error: .*: ownership\.unknownThread: .*\nerror: .*: listen\.prot: is not a known key .*\n$/)
})

void test('a file that is no YAML at all is told without a stack trace', async (t) => {
  const { file } = configFile(t)
  for (const text of ['listen: *anywhere\n', 'listen: [\n', '']) {
    writeFileSync(file, text)
    const { code, stdout, stderr } = await run(t, ['serve', '--config', file])
    t.same({ code, stdout }, { code: 78, stdout: '' }, JSON.stringify(text))
    t.match(stderr, new RegExp(`^error: ${file}`))
    t.notMatch(stderr, /\n\s+at /)
  }
})

for (const [listener, workers] of [
  ['listen', 1],
  ['health', 1],
  ['listen', 2],
] as const) {
  void test(`a port of ${listener} that is in use is told, with ${workers} workers`, async (t) => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    t.teardown(() => void other.close())
    const { port } = other.address() as AddressInfo
    const { file } = configFile(t, { [`${listener}.port`]: port, workers })
    const { code, stdout, stderr } = await runProcess(t, ['serve', '--config', file])
    t.equal(code, 1)
    t.match(
      stderr,
      new RegExp(
        `^error: ${listener}\\.port: another process listens on 127\\.0\\.0\\.1:${port} \\(stop it, or write another port\\)\n$`,
      ),
    )
    t.notMatch(stdout, /listening/)
  })
}

void test('a store that cannot be written is told by its path', async (t) => {
  const { file, folder } = configFile(t, { 'ownership.store': 'sqlite:./taken/ownership.db' })
  mkdirSync(join(folder, 'taken', 'ownership.db'), { recursive: true })
  const { code, stdout, stderr } = await runProcess(t, ['serve', '--config', file])
  t.same({ code, stdout }, { code: 1, stdout: '' })
  t.ok(stderr.startsWith(`error: the ownership store ${join(folder, 'taken', 'ownership.db')} cannot be opened for writing: `))
  t.match(stderr, /check ownership\.store and the permissions of its folder\n$/)
})
