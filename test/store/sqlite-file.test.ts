/** The file of the SQLite store: what is in it, that it lasts, and that one which can't serve is a start error with its path. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import type { Sql } from '../../src/store/sql/statement.ts'
import { SqliteFile } from '../../src/store/sqlite/file.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts'

const INSERT: Sql<never> = {
  text: `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at) VALUES ('', :id, 'corp:alice', 'agent', 1, 1)`,
}
const KEY = { scope: '', threadId: 't-1' }

/** What opening a file as a store throws. */
async function failure(file: string): Promise<Error | undefined> {
  try {
    await (await openSqliteStore(file)).close()
    return undefined
  } catch (error) {
    return error as Error
  }
}

void test('file and folders are made where they are missing, and what was claimed lasts', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'a', 'b', 'ownership.db')
  const store = await openSqliteStore(file)
  for (const name of ['', '-wal', '-shm']) t.equal(statSync(`${file}${name}`).mode & 0o777, 0o600, `for its user alone: ${name}`)
  await store.claim(KEY, { userId: 'corp:alice', agentId: 'agent', guest: false, now: 1 })
  const secret = await store.secret()
  await store.close()
  const again = await openSqliteStore(file)
  t.match(await again.thread(KEY), { row: { owner: 'corp:alice', deletedAt: null } })
  t.same(await again.secret(), secret)
  await again.close()
})

/** Each transaction ends with a frame that has the size of the database (https://sqlite.org/fileformat.html#the_write_ahead_log). */
function transactionsIn(log: string): number {
  const bytes = readFileSync(log)
  const frame = 24 + bytes.readUInt32BE(8)
  const salt = bytes.readBigUInt64BE(16)
  let count = 0
  for (let at = 32; at + frame <= bytes.length && bytes.readBigUInt64BE(at + 8) === salt; at += frame)
    if (bytes.readUInt32BE(at + 4) > 0) count += 1
  return count
}

/** A file with the schema of a store. */
async function emptyFile(t: Test): Promise<{ readonly path: string; readonly file: SqliteFile }> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const path = join(folder, 'ownership.db')
  return { path, file: await SqliteFile.open(path) }
}

void test('claims of one turn of the event loop share a transaction, and a failure stays its own', async (t) => {
  const { path, file } = await emptyFile(t)
  t.teardown(() => file.close())
  const count: Sql<{ count: number }> = { text: 'SELECT count(*) AS count FROM threads' }
  const add = (id: string): Promise<number> =>
    file.write((database) => {
      if (id === 'fails') throw new Error('as asked')
      return database.run(INSERT, { id })
    })
  const before = transactionsIn(`${path}-wal`)
  t.same(await Promise.all(Array.from({ length: 64 }, (_, at) => add(`t-${at}`))), new Array(64).fill(1))
  t.equal(transactionsIn(`${path}-wal`) - before, 1, 'one transaction for all')
  const ids = ['u-1', 'fails', 'u-2', 't-1', 'u-3']
  const results = await Promise.allSettled(ids.map(add))
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
  )
  t.match(results[1], { reason: { name: 'StoreUnavailable', message: /as asked/ } })
  t.equal((await file.ask((database) => database.get(count)))?.count, 67, 'each that worked is there once')
})

void test('what waits to be written is written before the file is closed', async (t) => {
  const { path, file } = await emptyFile(t)
  const written = Array.from({ length: 100 }, (_, at) => file.write((database) => database.run(INSERT, { id: `t-${at}` })))
  file.close()
  await Promise.all(written)
  const again = await openSqliteStore(path)
  t.match(await again.thread({ scope: '', threadId: 't-99' }), { row: { owner: 'corp:alice' } })
  await again.close()
  await t.rejects(
    file.write((database) => database.run(INSERT, { id: 'late' })),
    /it is closed/,
  )
})

void test('scope and thread id are the primary key, and users are indexed', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  await (await openSqliteStore(file)).close()
  const database = new Database(file, { readonly: true })
  t.teardown(() => void database.close())
  const columns = database.pragma('table_info(threads)') as { name: string; pk: number }[]
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
  t.same(
    key.map(({ name }) => name),
    ['scope', 'thread_id'],
  )
  const indexes = database.pragma('index_list(threads)') as { name: string }[]
  const first = indexes.map(({ name }) => (database.pragma(`index_info(${name})`) as { name: string }[])[0]?.name)
  t.ok(first.includes('user_id'), 'an index starts with user_id')
  t.equal(database.pragma('journal_mode', { simple: true }), 'wal')
  t.equal(database.pragma('user_version', { simple: true }), SCHEMA_VERSION)
})

void test('a schema that is newer than the program is refused and left as it is', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const database = new Database(file)
  database.exec(`CREATE TABLE threads (owner TEXT); PRAGMA user_version = ${SCHEMA_VERSION + 1}`)
  database.close()
  t.match(await failure(file), { name: 'StoreUnavailable', message: /is newer than this program knows/ })
  const after = new Database(file)
  t.equal(after.pragma('user_version', { simple: true }), SCHEMA_VERSION + 1)
  after.close()
})

void test('a path that cannot be written is named, with what to do', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  mkdirSync(join(folder, 'directory.db'))
  writeFileSync(join(folder, 'file'), '')
  writeFileSync(join(folder, 'text.db'), 'this is no database, and long enough to be seen as none\n'.repeat(20))
  for (const file of [
    join(folder, 'directory.db'),
    join(folder, 'file', 'ownership.db'),
    join(folder, 'text.db'),
    '/dev/null/ownership.db',
  ]) {
    const error = await failure(file)
    t.type(error, StoreUnavailable, file)
    t.ok(error?.message.includes(file), 'the path')
    t.match(error?.message, /check ownership\.store and the permissions of its folder/)
  }
  t.match(readFileSync(join(folder, 'text.db'), 'utf8'), /^this is no database/, 'and what was there is left alone')
})

void test('an empty file is a store without rows', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  writeFileSync(file, '')
  const store = await openSqliteStore(file)
  t.equal(await store.isEmpty(''), true)
  await store.close()
})

void test('a store without the version of its revocations gives none, and says once why', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  const database = new Database(file)
  database.exec("DELETE FROM versions WHERE name = 'revocations'")
  database.close()
  const expected = {
    name: 'StoreUnavailable',
    message: /^the ownership store failed: the version of the revocations is missing$/,
  }
  await t.rejects(store.revocationsVersion(), expected)
  await t.rejects(store.revocations(), expected)
})
