/** Lines in files: each is written once, whole and in order, over every change of file, or it is counted as lost and said. */
import fs, {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { openAuditFile } from '../../src/audit/file.ts'
import { auditFileFault } from '../../src/audit/path.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeOutage, type LineSink } from '../../src/audit/outage.ts'
import { makeFolder } from '../support/gateway.ts'
import { until } from '../support/until.ts'

/** A file under test, with what is said and counted of it. */
interface Scene {
  readonly sink: LineSink
  readonly folder: string
  readonly said: readonly Record<string, unknown>[]
  readonly counts: { written: number; lost: number }
  readonly notes: readonly (string | null)[]
  /** All lines of all files, by the number of the file. */
  readonly lines: () => readonly string[]
  readonly files: () => readonly string[]
}

const numberOf = (name: string): number => Number(/(\d+)\.jsonl$/.exec(name)?.[1])

async function opened(t: Test, more: { maxSize?: number; keep?: number; folder?: string } = {}): Promise<Scene> {
  const made = makeFolder()
  t.teardown(made.remove)
  const folder = more.folder ?? join(made.folder, 'audit')
  const said: Record<string, unknown>[] = []
  const counts = { written: 0, lost: 0 }
  const notes: (string | null)[] = []
  const outage = makeOutage({
    log: makeLog('info', { write: (line) => void said.push(JSON.parse(line) as Record<string, unknown>) }),
    metrics: { auditWritten: (lines) => (counts.written += lines), auditLost: (lines) => (counts.lost += lines) },
    note: (text) => void notes.push(text),
  })
  const { maxSize = 1024 * 1024, keep = 3 } = more
  const sink = await openAuditFile({ file: join(folder, 'a.jsonl'), maxSize, keep }, outage, (lines) => (counts.written += lines))
  t.teardown(() => sink.stop())
  const files = (): readonly string[] =>
    readdirSync(folder)
      .filter((name) => /^a\.\d+\.jsonl$/.test(name))
      .sort((one, other) => numberOf(one) - numberOf(other))
  return {
    sink,
    folder,
    said,
    counts,
    notes,
    files,
    lines: () => files().flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1)),
  }
}

const lineOf = (at: number): string => JSON.stringify({ at, pad: 'ü'.repeat(50) })

void test('lines are there when they count as written, in order, in a folder that is made', async (t) => {
  const { sink, counts, lines, said, files } = await opened(t)
  for (let at = 0; at < 1000; at += 1) sink.write(`${lineOf(at)}\n`)
  await until(() => counts.written === 1000)
  t.strictSame(
    lines(),
    Array.from({ length: 1000 }, (_, at) => lineOf(at)),
  )
  t.strictSame(files(), ['a.1.jsonl'])
  t.strictSame([counts.lost, said], [0, []])
})

void test('what was handed over is in the file when it is stopped', async (t) => {
  const { sink, counts, lines } = await opened(t)
  for (let at = 0; at < 5000; at += 1) sink.write(`${lineOf(at)}\n`)
  await sink.stop()
  t.equal(lines().length, 5000)
  t.equal(counts.written, 5000)
  sink.write('late\n')
  t.equal(counts.lost, 1, 'what comes later is counted')
})

void test('a file that has grown is put aside, and old ones go', async (t) => {
  const { sink, counts, lines, files, folder } = await opened(t, { maxSize: 2000, keep: 3 })
  writeFileSync(join(folder, 'other.jsonl'), 'mine')
  for (let at = 0; at < 200; at += 1) {
    sink.write(`${lineOf(at)}\n`)
    await until(() => counts.written === at + 1)
  }
  await until(() => files().length <= 4)
  t.ok(numberOf(files().at(-1)!) > 5, 'there were many')
  t.equal(readFileSync(join(folder, 'other.jsonl'), 'utf8'), 'mine')
  const kept = lines()
  t.strictSame(
    kept,
    Array.from({ length: kept.length }, (_, at) => lineOf(200 - kept.length + at)),
    'the newest, without a gap',
  )
  t.ok(kept.length > 30)
  t.equal(counts.lost, 0)
})

void test('files of the process before count among those that are kept', async (t) => {
  const first = await opened(t, { maxSize: 500, keep: 2 })
  for (let at = 0; at < 20; at += 1) {
    first.sink.write(`${lineOf(at)}\n`)
    await until(() => first.counts.written === at + 1)
  }
  await first.sink.stop()
  const before = numberOf(first.files().at(-1)!)
  const second = await opened(t, { maxSize: 500, keep: 2, folder: first.folder })
  for (let at = 20; at < 40; at += 1) {
    second.sink.write(`${lineOf(at)}\n`)
    await until(() => second.counts.written === at - 19)
  }
  await until(() => second.files().length <= 3)
  t.ok(numberOf(second.files()[0]!) > before, 'and have gone')
})

void test('lines go on behind what a process before has left, and behind half a line in one of their own', async (t) => {
  const first = await opened(t)
  first.sink.write('{"whole":1}\n')
  await first.sink.stop()
  appendFileSync(join(first.folder, 'a.1.jsonl'), '{"cut')
  const second = await opened(t, { folder: first.folder })
  second.sink.write('{"whole":2}\n')
  second.sink.write('{"whole":3}\n')
  await second.sink.stop()
  t.strictSame(second.lines(), ['{"whole":1}', '{"cut', '{"whole":2}', '{"whole":3}'])
  t.equal(second.counts.written, 2)
})

void test('others than the owner and the group read nothing', async (t) => {
  const { folder, files } = await opened(t)
  t.equal(statSync(join(folder, files()[0]!)).mode & 0o007, 0)
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
  const { sink, counts, lines, said, notes } = await opened(t)
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
  const lines = readFileSync(join(folder, 'a.1.jsonl'), 'utf8').split('\n').slice(0, -1)
  t.strictSame(
    [...new Set(lines)],
    Array.from({ length: 2000 }, (_, at) => `{"at":${at}}`),
  )
})

void test('beyond the bound lines are lost, and counted', async (t) => {
  const { sink, counts, notes, said } = await opened(t)
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
  const { sink, counts, said } = await opened(t)
  fullDisk(t)
  sink.write('{"at":1}\n')
  sink.write('{"at":2}\n')
  await sink.stop()
  t.strictSame(counts, { written: 0, lost: 2 })
  t.match(said.at(-1), { level: 'error', lost: 2, msg: /the gateway stopped/ })
})

void test('a file that somebody has removed is missed, and made anew', async (t) => {
  const { sink, counts, folder, lines, said, notes } = await opened(t)
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

void test('a next file that can not be made is tried again, and no line is lost', async (t) => {
  const { sink, counts, folder, said, notes, lines } = await opened(t, { maxSize: 200 })
  // In the place of the next one, a folder: that fails for whoever asks.
  mkdirSync(join(folder, 'a.2.jsonl'))
  for (let at = 0; at < 10; at += 1) sink.write(`${lineOf(at)}\n`)
  await until(() => said.length > 0)
  t.match(said[0], { detail: 'EISDIR' })
  rmSync(join(folder, 'a.2.jsonl'), { recursive: true })
  for (let at = 10; at < 20; at += 1) sink.write(`${lineOf(at)}\n`)
  await until(() => notes.at(-1) === null && counts.written >= 20)
  t.strictSame(
    lines(),
    Array.from({ length: 20 }, (_, at) => lineOf(at)),
  )
  t.equal(counts.lost, 0)
})

void test('a place that can not be written is refused, with the path and what to do', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  writeFileSync(join(folder, 'plain'), '')
  const file = join(folder, 'plain', 'deep', 'a.jsonl')
  await t.rejects(opened(t, { folder: join(folder, 'plain', 'deep') }), {
    message: /plain.deep.a\.jsonl cannot be opened \(.*audit\.file/,
  })
  t.match(auditFileFault(file), { message: /plain/, hint: /folder/ })
  t.equal(auditFileFault(join(folder, 'new', 'deep', 'a.jsonl')), null, 'folders are made')
  t.match(auditFileFault(join(folder, 'a:b.jsonl')), { message: /no audit file may have/ })
  if (process.getuid?.() === 0) return
  chmodSync(folder, 0o500)
  t.match(auditFileFault(join(folder, 'a.jsonl')), { message: /EACCES/ })
})
