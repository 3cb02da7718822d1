/** Lines in a file: each is written once, whole and in order, over every rotation, or it is counted as lost and reported. */
import fs, {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { auditFileFault, openAuditFile } from '../../src/audit/file.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeOutage, type LineSink } from '../../src/audit/outage.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'

/** A file under test, with what is said and counted of it. */
interface Scene {
  readonly sink: LineSink
  readonly folder: string
  readonly said: readonly Record<string, unknown>[]
  readonly counts: { written: number; lost: number }
  readonly notes: readonly (string | null)[]
  readonly file: string
  readonly lines: () => readonly string[]
}

const linesOf = (file: string): readonly string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)

function opened(t: Test, more: { folder?: string } = {}): Scene {
  const made = makeFolder()
  t.teardown(made.remove)
  const folder = more.folder ?? join(made.folder, 'audit')
  const said: Record<string, unknown>[] = []
  const counts = { written: 0, lost: 0 }
  const notes: (string | null)[] = []
  const log = makeLog('info', { write: (line) => void said.push(JSON.parse(line) as Record<string, unknown>) })
  const onWritten = (lines: number) => void (counts.written += lines)
  const outage = makeOutage({
    log,
    metrics: { auditWritten: onWritten, auditLost: (lines) => void (counts.lost += lines) },
    note: (text) => void notes.push(text),
  })
  const file = join(folder, 'a.jsonl')
  const sink = openAuditFile(file, { outage, log, onWritten })
  t.teardown(() => sink.stop())
  return { sink, folder, file, said, counts, notes, lines: () => linesOf(file) }
}

const lineOf = (at: number): string => JSON.stringify({ at, pad: 'ü'.repeat(50) })

void test('lines are there when they count as written, in order, in a folder that is made', async (t) => {
  const { sink, counts, lines, said } = opened(t)
  for (let at = 0; at < 1000; at += 1) sink.write(`${lineOf(at)}\n`)
  await until(() => counts.written === 1000)
  t.strictSame(
    lines(),
    Array.from({ length: 1000 }, (_, at) => lineOf(at)),
  )
  t.strictSame([counts.lost, said], [0, []])
})

void test('what was handed over is in the file when it is stopped', async (t) => {
  const { sink, counts, lines } = opened(t)
  for (let at = 0; at < 5000; at += 1) sink.write(`${lineOf(at)}\n`)
  await sink.stop()
  t.equal(lines().length, 5000)
  t.equal(counts.written, 5000)
  sink.write('late\n')
  t.equal(counts.lost, 1, 'what comes later is counted')
})

void test('a file that was renamed keeps its lines, and further ones go to a new file, none split and none lost', async (t) => {
  const { sink, counts, said, folder, lines } = opened(t)
  let at = 0
  for (let turn = 1; turn <= 20; turn += 1) {
    for (let more = 0; more < 200; more += 1) sink.write(`${lineOf(at++)}\n`)
    renameSync(join(folder, 'a.jsonl'), join(folder, `a.jsonl.${turn}`))
    sink.reopen()
    for (let more = 0; more < 50; more += 1) sink.write(`${lineOf(at++)}\n`)
    // A file that is gone cannot be renamed again: it is opened when the write under way has ended.
    await until(() => existsSync(join(folder, 'a.jsonl')))
  }
  await until(() => counts.written === at)
  const rotated = Array.from({ length: 20 }, (_, turn) => linesOf(join(folder, `a.jsonl.${turn + 1}`)))
  t.strictSame(
    [...rotated.flat(), ...lines()],
    Array.from({ length: at }, (_, each) => lineOf(each)),
  )
  t.ok(lines().length > 0)
  t.equal(counts.lost, 0)
  t.strictSame(new Set(said.map(({ msg }) => msg)), new Set(['the audit file was reopened']))
  t.equal(said.length, 20)
})

void test('a file that cannot be opened again goes on, which is reported once, until it can be', async (t) => {
  const { sink, counts, said, folder, file } = opened(t)
  renameSync(file, join(folder, 'a.jsonl.1'))
  // In its place, a folder: opening that fails for every user.
  mkdirSync(file)
  sink.reopen()
  sink.write('{"at":1}\n')
  await until(() => counts.written === 1)
  t.match(said, [{ level: 'error', file, detail: 'EISDIR', msg: /cannot be reopened/ }])
  await sleep(1500)
  t.equal(said.length, 1, 'also while it is tried again')
  rmSync(file, { recursive: true })
  await until(() => said.length > 1)
  t.match(said[1], { level: 'info', msg: 'the audit file was reopened' })
  sink.write('{"at":2}\n')
  await until(() => counts.written === 2)
  t.strictSame([linesOf(join(folder, 'a.jsonl.1')), linesOf(file)], [['{"at":1}'], ['{"at":2}']])
})

void test('a file that nothing rotates is reported when it is large', async (t) => {
  const { sink, said, file } = opened(t)
  truncateSync(file, 2 ** 30 + 1)
  sink.write('{}\n')
  await until(() => said.length > 0)
  t.match(said, [{ level: 'warn', file, bytes: 2 ** 30 + 4, msg: /rotated/ }])
})

void test('lines go on behind what a process before has left, and behind half a line in one of their own', async (t) => {
  const first = opened(t)
  first.sink.write('{"whole":1}\n')
  await first.sink.stop()
  appendFileSync(join(first.folder, 'a.jsonl'), '{"cut')
  const second = opened(t, { folder: first.folder })
  second.sink.write('{"whole":2}\n')
  second.sink.write('{"whole":3}\n')
  await second.sink.stop()
  t.strictSame(second.lines(), ['{"whole":1}', '{"cut', '{"whole":2}', '{"whole":3}'])
  t.equal(second.counts.written, 2)
})

void test('others than the owner and the group read nothing', async (t) => {
  const { file } = opened(t)
  t.equal(statSync(file).mode & 0o007, 0)
})

/** From now on, writing fails as on a full disk, as often as the test wants. */
function fullDisk(t: Test): { over(): void } {
  const failing = mock.method(fs, 'write', ((...given: readonly unknown[]) => {
    const done = given.at(-1) as (error: Error) => void
    setImmediate(() =>
      done(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })),
    )
  }) as typeof fs.write)
  t.teardown(() => failing.mock.restore())
  return { over: () => failing.mock.restore() }
}

void test('on a full disk lines wait, which is said once, and are written when there is room', async (t) => {
  const { sink, counts, lines, said, notes } = opened(t)
  sink.write('{"at":0}\n')
  await until(() => counts.written === 1)
  const disk = fullDisk(t)
  for (let at = 1; at <= 10; at += 1) sink.write(`{"at":${at}}\n`)
  await until(() => said.length > 0)
  for (let at = 11; at <= 20; at += 1) sink.write(`{"at":${at}}\n`)
  disk.over()
  await until(() => notes.at(-1) === null)
  t.strictSame(
    lines(),
    Array.from({ length: 21 }, (_, at) => `{"at":${at}}`),
  )
  t.strictSame(counts, { written: 21, lost: 0 })
  t.match(said, [
    { level: 'error', detail: 'ENOSPC', msg: /cannot be written/ },
    { level: 'warn', lost: 0, msg: /written again/ },
  ])
  t.equal(said.length, 2)
  t.match(notes[0], /ENOSPC/)
})

void test('a process that dies of an error leaves no line behind', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const child = fork(new URL('dying-writer.ts', import.meta.url), [join(folder, 'a.jsonl')], { stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number]
  t.equal(code, 1)
  const lines = readFileSync(join(folder, 'a.jsonl'), 'utf8').split('\n').slice(0, -1)
  t.strictSame(
    [...new Set(lines)],
    Array.from({ length: 2000 }, (_, at) => `{"at":${at}}`),
  )
})

void test('beyond the bound lines are lost, and counted', async (t) => {
  const { sink, counts, notes, said } = opened(t)
  const disk = fullDisk(t)
  const large = `${JSON.stringify('x'.repeat(1024 * 1024))}\n`
  for (let at = 0; at < 10; at += 1) sink.write(large)
  await until(() => said.length > 0)
  t.equal(counts.lost, 3)
  disk.over()
  await until(() => notes.at(-1) === null)
  t.strictSame(counts, { written: 7, lost: 3 })
  t.match(said.at(-1), { lost: 3 })
})

void test('what can not be written when it is stopped is counted and said', async (t) => {
  const { sink, counts, said } = opened(t)
  fullDisk(t)
  sink.write('{"at":1}\n')
  sink.write('{"at":2}\n')
  await sink.stop()
  t.strictSame(counts, { written: 0, lost: 2 })
  t.match(said.at(-1), { level: 'error', lost: 2, msg: /the gateway stopped/ })
})

void test('lines of a write that ends only after the stop are counted once', async (t) => {
  const { sink, counts } = opened(t)
  const begun = Promise.withResolvers<() => void>()
  const slow = mock.method(fs, 'write', ((...given: readonly unknown[]) => {
    const done = given.at(-1) as (error: null, count: number) => void
    begun.resolve(() => done(null, (given[1] as Uint8Array).length))
  }) as typeof fs.write)
  t.teardown(() => slow.mock.restore())
  sink.write('{"at":1}\n')
  sink.write('{"at":2}\n')
  const end = await begun.promise
  await sink.stop()
  t.strictSame(counts, { written: 0, lost: 2 })
  end()
  await new Promise(setImmediate)
  t.strictSame(counts, { written: 0, lost: 2 })
})

void test('a file that somebody has removed is missed, and made anew', async (t) => {
  const { sink, counts, folder, lines, said, notes } = opened(t)
  sink.write('{"at":1}\n')
  await until(() => counts.written === 1)
  rmSync(folder, { recursive: true })
  sink.write('{"at":2}\n')
  await until(() => notes.includes(null))
  sink.write('{"at":3}\n')
  await until(() => existsSync(folder) && lines().includes('{"at":3}'))
  t.match(said[0], { detail: 'the file is gone' })
  t.ok(counts.lost >= 1, 'what may have gone with it counts as lost')
})

void test('a place that can not be written is refused, with the path and what to do', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  writeFileSync(join(folder, 'plain'), '')
  const file = join(folder, 'plain', 'deep', 'a.jsonl')
  t.throws(() => opened(t, { folder: join(folder, 'plain', 'deep') }), {
    message: /plain.deep.a\.jsonl cannot be opened \(.*audit\.file/,
  })
  t.match(auditFileFault(file), { message: /plain/, hint: /folder/ })
  t.equal(auditFileFault(join(folder, 'new', 'deep', 'a.jsonl')), null, 'folders are made')
  t.match(auditFileFault(folder), { message: /is a folder/ })
  t.equal(auditFileFault(join(folder, 'plain')), null, 'further lines go behind what a file has')
  if (process.getuid?.() === 0) return
  chmodSync(folder, 0o500)
  t.match(auditFileFault(join(folder, 'a.jsonl')), { message: /EACCES/ })
})
