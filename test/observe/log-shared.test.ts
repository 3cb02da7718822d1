/** Several processes write their log to one stdout. Each writes many lines at once where no other can write in between. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'

const LOG = new URL('../../src/observe/log.ts', import.meta.url).href
const COUNT = 4000
const PROCESSES = 4

/** Logs lines in several turns of its event loop, and says on stderr how many bytes each write to stdout had. */
const PROGRAM = `
  import fs from 'node:fs'
  import { makeLog, sharedStdout } from ${JSON.stringify(LOG)}
  const { write } = fs
  fs.write = (fd, data, ...more) => {
    if (fd === 1) process.stderr.write(Buffer.byteLength(data) + '\\n')
    return write(fd, data, ...more)
  }
  const log = makeLog('info', sharedStdout())
  for (let at = 0; at < ${COUNT}; at += 1) {
    log.info({ pid: process.pid, at, text: 'x'.repeat(at % 300) }, 'line')
    if (at % 100 === 0) await new Promise(setImmediate)
  }`

function start(stdout: number | 'pipe') {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], { stdio: ['ignore', stdout, 'pipe'] })
  const sizes = text(child.stderr as Readable).then((said) => said.trim().split('\n').map(Number))
  return { child, sizes, closed: once(child, 'close') }
}

async function intoFile(t: Test) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'log')
  const fd = openSync(file, 'w')
  const started = Array.from({ length: PROCESSES }, () => start(fd))
  closeSync(fd)
  const sizes = await Promise.all(started.map((one) => one.sizes))
  await Promise.all(started.map(({ closed }) => closed))
  return { text: readFileSync(file, 'utf8'), sizes: sizes.flat() }
}

void test('in a file every line is whole, though many are written at once', async (t) => {
  const { text: log, sizes } = await intoFile(t)
  const lines = log.trimEnd().split('\n')
  t.equal(lines.length, PROCESSES * COUNT)
  const places = lines.map((line) => JSON.parse(line) as { pid: number; at: number }).map(({ pid, at }) => `${pid} ${at}`)
  t.equal(new Set(places).size, PROCESSES * COUNT)
  t.ok(Math.max(...sizes) > 32 * 1024, `${Math.max(...sizes)} bytes`)
})

void test('in a pipe no write is longer than what a pipe takes whole', async (t) => {
  const { child, sizes } = start('pipe')
  t.equal((await text(child.stdout as Readable)).trimEnd().split('\n').length, COUNT)
  t.ok(Math.max(...(await sizes)) <= 4096)
})
