/** News over processes on one SQLite file. */
import { renameSync } from 'node:fs'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { until } from '../../testing/support/until.ts'
import { ALICE, at, BOB, grant, KEY, NOW, own, user } from './contract/under-test.ts'
import { openPair, type SqlitePair } from './sqlite-pair.ts'

async function started(t: Test): Promise<SqlitePair> {
  const pair = await openPair(t)
  await own(pair.store, ALICE)
  return pair
}

function listen(store: Store): (ThreadKey | null)[] {
  const told: (ThreadKey | null)[] = []
  store.onInvalidation((key) => told.push(key))
  return told
}

function inFile(file: string, question: string): unknown {
  const database = new Database(file, { readonly: true })
  try {
    return database.prepare(question).pluck().get()
  } finally {
    database.close()
  }
}

void test('a change of one’s own is told at once, once, and with its thread', async (t) => {
  const { store } = await started(t)
  const told = listen(store)
  await grant(store, user(BOB))
  t.same(told, [KEY])
  await store.bury(KEY, ALICE, NOW, 'deleted')
  t.same(told, [KEY, KEY])
  // It looks at the count several times meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 700))
  t.same(told, [KEY, KEY])
})

void test('a change of another process is told with its thread, and none of the others is gone through', async (t) => {
  const { store, other } = await started(t)
  await own(store, ALICE, at('others'))
  const told = listen(store)
  await grant(other, user(BOB))
  await until(() => told.length > 0)
  t.same(told, [KEY])
  for (const right of ['write', 'read', 'write'] as const) await grant(other, user(BOB), right)
  await other.bury(at('others'), ALICE, NOW, 'deleted')
  await until(() => told.length > 2)
  t.same(told, [KEY, KEY, at('others')], 'each thread once, however often it has changed')
})

void test('a change of many threads is told as one of all, whatever was changed beside it', async (t) => {
  const { store, other } = await started(t)
  const told = listen(store)
  await grant(other, user(BOB))
  await other.transfer(ALICE, BOB, 10)
  await grant(other, user(ALICE))
  await until(() => told.length > 0)
  t.same(told, [null])
})

void test('more changes than are kept are told as one of all, and no more of them are kept', async (t) => {
  const { store, other, file } = await started(t)
  const told = listen(store)
  // In one go, so that nobody looks meanwhile.
  await Promise.all(Array.from({ length: 300 }, (_, n) => grant(other, user(BOB), n % 2 === 0 ? 'write' : 'read')))
  await until(() => told.length > 0)
  t.same(told, [null])
  t.equal(inFile(file, 'SELECT count(*) FROM standing_changes'), 256)
})

void test('a change that nobody noted is told as one of all: an older program counts, and notes nothing', async (t) => {
  const { store, other, file } = await started(t)
  const told = listen(store)
  const database = new Database(file)
  database.exec("UPDATE versions SET value = value + 1 WHERE name = 'standing'")
  database.close()
  await grant(other, user(BOB))
  await until(() => told.length > 0)
  t.same(told, [null])
})

void test('after a backup that is put back nothing is taken for known, whatever its numbers say', async (t) => {
  const { store, file } = await started(t)
  const backup = `${file}.backup`
  const source = new Database(file)
  await source.backup(backup)
  source.close()
  const told = listen(store)
  await grant(store, user(BOB))
  t.same(told, [KEY])
  const old = new Database(backup)
  // It goes on to a higher number than was known, with changes of other threads.
  old.exec(`UPDATE versions SET value = value + 2 WHERE name = 'standing';
    INSERT INTO standing_changes SELECT value, '', 'another' FROM versions WHERE name = 'standing'`)
  await old.backup(file)
  old.close()
  await until(() => told.length > 1)
  t.same(told, [KEY, null])
})

void test('changes of others between one’s own are not lost', async (t) => {
  const { store, other } = await started(t)
  const told = listen(store)
  await grant(store, user(BOB))
  await other.assign(KEY, BOB, NOW)
  await store.assign({ ...KEY, threadId: 'mine' }, BOB, NOW)
  t.same(told, [KEY, KEY, at('mine')])
})

void test('what changes while the file cannot be read is told when it can', async (t) => {
  const { store, file } = await started(t)
  const told = listen(store)
  renameSync(file, `${file}.away`)
  await until(async () => (await store.fault()) !== null)
  renameSync(`${file}.away`, file)
  const late = await openSqliteStore(file)
  await late.assign(KEY, BOB, NOW)
  await late.close()
  await until(() => told.length > 0)
  t.same(told, [KEY])
})

void test('nothing is told of what was before anybody listened, nor after the end', async (t) => {
  const { store, other } = await started(t)
  await other.assign(KEY, BOB, NOW)
  const first = listen(store)
  const end = store.onInvalidation(() => first.push(null))
  end()
  await store.assign(KEY, ALICE, NOW)
  t.same(first, [KEY])
  await store.close()
  await other.assign(KEY, BOB, NOW)
  t.same(first, [KEY])
})
