/** Files that options name: what is larger than the limit is refused, also where its size is not known before it is read. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { readInput } from '../../src/cli/input-files.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

const TOO_LARGE = { name: 'UsageError', message: /^--body .+ is larger than 64KiB$/ }

void test('a file within the limit is read, and a larger one is refused', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'body')
  writeFileSync(file, 'x'.repeat(65_536))
  t.equal(readInput('--body', file, 65_536).length, 65_536)
  writeFileSync(file, 'x'.repeat(65_537))
  t.throws(() => readInput('--body', file, 65_536), TOO_LARGE)
  t.end()
})

void test('a pipe reports no size, and the same limit applies to what it contains', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const pipe = join(folder, 'pipe')
  t.equal(spawnSync('mkfifo', [pipe]).status, 0)
  for (const [bytes, isRead] of [
    [65_536, true],
    [65_537, false],
  ] as const) {
    const writer = spawn('sh', ['-c', `head -c ${bytes} /dev/zero > "$0"`, pipe])
    const closed = once(writer, 'close')
    if (isRead) t.equal(readInput('--body', pipe, 65_536).length, bytes)
    else t.throws(() => readInput('--body', pipe, 65_536), TOO_LARGE)
    await closed
  }
})
