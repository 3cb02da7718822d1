/** `threadwarden threads import`: what it says, what it leaves alone, and how it goes on after it was stopped. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { commandsOn, deployment, key, own, ownersIn, type Deployment } from './deployment.ts'
import { background, configFile, run, type Background, type Surroundings } from '../../testing/support/program.ts'

const ALICE = 'corp:alice'

/** Writes a file beside the configuration. */
function written(folder: string, name: string, ...lines: readonly string[]): string {
  const file = join(folder, name)
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}

void test('a file is imported, in either format, and the counts are told', async (t) => {
  const { folder, store, command, data } = await deployment(t)
  const csv = written(folder, 'threads.csv', 'thread,user', 'a,corp:alice', 'b,corp:bob')
  t.same(await command('threads', 'import', csv), {
    code: 0,
    stdout: '2  added\n0  existed already\n0  conflicts, not changed\n0  invalid\n',
    stderr: '',
  })
  const jsonl = written(folder, 'threads.jsonl', '{"thread":"c","user":"corp:alice"}')
  t.same(await data('threads', 'import', jsonl), {
    dryRun: false,
    read: 1,
    added: 1,
    same: 0,
    repeated: 0,
    conflicts: 0,
    invalid: 0,
    unmapped: 0,
    unlisted: null,
    complete: true,
  })
  t.same(await ownersIn(store), ['a=corp:alice', 'b=corp:bob', 'c=corp:alice'])
})

void test('stdin is read to its end', async (t) => {
  const { file, store } = await deployment(t)
  const ended = await run(t, ['threads', 'import', '-', '--format', 'jsonl', '--config', file], {
    stdin: '{"thread":"a","user":"corp:alice"}',
  })
  t.match(ended, { code: 0, stdout: /^1 +added$/m, stderr: '' })
  t.same(await ownersIn(store), ['a=corp:alice'])
})

void test('conflicts and invalid lines are exit code 1: the first twenty on stderr, all of them in the report', async (t) => {
  const { folder, store, command } = await deployment(t)
  await own(store, 'corp:bob', 'taken')
  const bad = Array.from({ length: 30 }, (_one, at) => `bad-${at},crop:x`)
  const csv = written(folder, 'threads.csv', 'thread,user', ...bad, 'taken,corp:alice', 'free,corp:alice')
  const report = join(folder, 'report.jsonl')
  const ended = await command('threads', 'import', csv, '--report', report)
  t.match(ended, { code: 1, stdout: /^1 +added\n0 +existed already\n1 +conflicts, not changed\n30 +invalid\n$/ })
  const told = ended.stderr.trimEnd().split('\n')
  t.equal(told.length, 21)
  t.equal(told[0], 'line 2: the user "crop:x" is not valid: the configuration has no issuer "crop": did you mean "corp"?')
  t.equal(told[20], `and 11 more: see ${report}`)
  const problems = readFileSync(report, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  t.equal(problems.length, 31)
  t.match(problems[30], {
    kind: 'conflict',
    line: 32,
    thread: 'taken',
    user: ALICE,
    with: ['corp:bob'],
    reason: /belongs to corp:bob/,
  })
  t.equal(statSync(report).mode & 0o777, 0o600)
  t.match((await command('threads', 'import', csv)).stderr, /and 11 more: --report FILE writes all of them\n$/)
})

void test('what a line holds reaches the terminal without anything that it would obey', async (t) => {
  const { folder, command } = await deployment(t)
  const csv = written(folder, 'threads.csv', 'thread,user', '\u001b[2J,corp:alice', 't,\u202ecorp:x')
  const { code, stderr } = await command('threads', 'import', csv)
  t.equal(code, 1)
  t.notMatch(stderr, /[\u001b\u202e]/)
})

void test('a dry run says what would become of it', async (t) => {
  const { folder, store, command } = await deployment(t)
  const csv = written(folder, 'threads.csv', 'thread,user', 'a,corp:alice')
  t.match(await command('threads', 'import', csv, '--dry-run'), { code: 0, stdout: /^1 +would be added$/m })
  t.same(await ownersIn(store), [])
})

void test('a store that is not there is made, and said to be; by a dry run it is not', async (t) => {
  const { file, folder } = configFile(t)
  const { command } = commandsOn(t, file)
  const csv = written(folder, 'threads.csv', 'thread,user', 'a,corp:alice')
  const store = join(folder, 'ownership.db')
  const dry = await command('threads', 'import', csv, '--dry-run')
  t.match(dry, {
    code: 0,
    stdout: /^1 +would be added$/m,
    stderr: `the store ${store} does not exist: the import would create it\n`,
  })
  t.equal(existsSync(store), false)
  t.match(await command('threads', 'import', csv), {
    code: 0,
    stderr: `the store ${store} does not exist: the import creates it\n`,
  })
  t.match(await command('threads', 'owner', 'a'), { code: 0 })
})

void test('of a file that cannot be read to its end nothing is imported', async (t) => {
  const { folder, store, command } = await deployment(t)
  const csv = written(folder, 'threads.csv', 'thread,user', 'a,corp:alice', 'b,"corp:bob')
  const ended = await command('threads', 'import', csv)
  t.match(ended, {
    code: 1,
    stdout: '',
    stderr: /^error: line \d: a quote is not closed; nothing was imported\n$/,
  })
  t.same(await ownersIn(store), [])
})

void test('what was observed is confirmed, and conflicts are told', async (t) => {
  const { store, command, data } = await deployment(t)
  await store.observe(key('one'), ALICE, '', 'run', 1)
  for (const user of ['corp:bob', ALICE]) await store.observe(key('two'), user, '', 'run', 1)
  t.match(await data('threads', 'import', '--from-observed', '--dry-run'), { dryRun: true, added: 1, conflicts: 1 })
  t.same(await ownersIn(store), [])
  const ended = await command('threads', 'import', '--from-observed')
  t.match(ended, { code: 1, stdout: /^1 +added$/m })
  t.equal(ended.stderr, 'two: several users ran it: corp:alice, corp:bob; threadwarden threads assign gives it to one of them\n')
  t.same(await ownersIn(store), [`one=${ALICE}`])
  t.match(await command('threads', 'assign', 'two', '--to', ALICE), { code: 0 })
  t.match(await command('threads', 'import', '--from-observed'), { code: 0, stderr: '' })
})

/**
 * Begins an import from stdin whose first lines are faults, and waits until the report tells of them: then the store is open, and
 * the source read in part.
 */
async function startReading(t: Test, { file, folder }: Deployment, surroundings: Surroundings = {}): Promise<Background> {
  const report = join(folder, 'report.jsonl')
  rmSync(report, { force: true })
  const importing = background(
    t,
    ['threads', 'import', '-', '--format', 'csv', '--report', report, '--config', file],
    surroundings,
  )
  // The reader keeps the last few bytes of what has come until more comes.
  importing.stdin.write(`thread,user\n${'bad\n'.repeat(10)}`)
  await until(() => existsSync(report) && statSync(report).size > 0)
  return importing
}

/** The same, and somebody else has locked the store before the import comes to write. */
async function startLocked(t: Test, lines: readonly string[]) {
  const scene = await deployment(t)
  const importing = await startReading(t, scene)
  const lock = new Database(join(scene.folder, 'ownership.db'))
  t.teardown(() => lock.close())
  lock.exec('BEGIN IMMEDIATE')
  importing.stdin.end(lines.join('\n'))
  await until(() => importing.stderr().includes('retrying for'))
  return { importing, ...scene, unlock: () => void lock.exec('ROLLBACK') }
}

void test('a store that is busy is waited for', async (t) => {
  const { importing, store, unlock } = await startLocked(t, ['a,corp:alice'])
  unlock()
  t.match(await importing.ended, {
    stdout: /^1 +added$/m,
    stderr: /^the ownership store failed: .*; retrying for 30 s$/m,
  })
  t.same(await ownersIn(store), ['a=corp:alice'])
})

void test('an import that is interrupted says how far it came, and goes on when it is run again', async (t) => {
  const lines = Array.from({ length: 1200 }, (_one, at) => `t-${at},corp:alice`)
  const { importing, folder, store, command, unlock } = await startLocked(t, lines)
  importing.signal('SIGINT')
  const { code, stderr } = await importing.ended
  unlock()
  t.equal(code, 1)
  t.match(stderr, /0 threads were processed \(0 added\): run the same command again to continue\n$/)
  const csv = written(folder, 'threads.csv', 'thread,user', ...lines)
  t.match(await command('threads', 'import', csv), { code: 0, stdout: /^1200 +added$/m })
  t.equal((await store.stats()).threads, 1200)
})

void test('ctrl-C while a source is read imports nothing; its temporary file is gone even if the process is killed', async (t) => {
  const scene = await deployment(t)
  const temporary = join(scene.folder, 'tmp')
  mkdirSync(temporary)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    const importing = await startReading(t, scene, { environment: { SQLITE_TMPDIR: temporary } })
    importing.stdin.write('a,corp:alice\nb,corp:alice\n')
    importing.signal(signal)
    const { code, stderr } = await importing.ended
    if (signal !== 'SIGKILL') {
      t.equal(code, 1)
      t.match(stderr, /\ninterrupted: 0 threads were processed \(0 added\): run the same command again to continue\n$/)
    }
    t.same(readdirSync(temporary), [])
  }
  t.same(await ownersIn(scene.store), [])
})
