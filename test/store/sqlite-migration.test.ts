/** A file of an older program is migrated when it is opened: every row stays, and processes that open it at once agree. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { makeFolder } from '../support/gateway.ts'

const WORKER = fileURLToPath(new URL('claim-worker.ts', import.meta.url))

/** Schema 1, as version 0.1 wrote it. It is history: nothing here ever changes. */
const SCHEMA_1 = `
  CREATE TABLE threads (
    scope TEXT NOT NULL COLLATE BINARY,
    thread_id TEXT NOT NULL COLLATE BINARY,
    user_id TEXT NOT NULL COLLATE BINARY,
    agent_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    name TEXT,
    deleted_at INTEGER,
    provisional INTEGER NOT NULL DEFAULT 0 CHECK (provisional IN (0, 1)),
    pending INTEGER NOT NULL DEFAULT 0,
    life INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, thread_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX threads_by_user ON threads (user_id, scope);
  CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
  INSERT INTO threads VALUES ('', 't-1', 'corp:alice', 'agent', 1, 2, 'name', NULL, 0, 0, 0);
  INSERT INTO threads VALUES ('', 't-2', 'corp:bob', 'agent', 3, 4, NULL, 5, 1, 2, 3);
  INSERT INTO secrets VALUES ('cursor', x'00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff');
  PRAGMA journal_mode = WAL;
  PRAGMA user_version = 1;
`

/** Schema 2: revocations beside it. History, too. */
const SCHEMA_2 = `
  ${SCHEMA_1}
  CREATE TABLE revocations (
    kind TEXT NOT NULL CHECK (kind IN ('token', 'user')),
    id TEXT NOT NULL COLLATE BINARY,
    issued_before INTEGER CHECK (issued_before IS NULL OR kind = 'user'),
    revoked_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE versions (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO versions (name, value) VALUES ('revocations', 7);
  INSERT INTO revocations VALUES ('user', 'corp:eve', NULL, 6);
  PRAGMA user_version = 2;
`

/** What a file holds of threads and secrets, and its schema. */
function contents(file: string): unknown {
  const database = new Database(file, { readonly: true })
  const all = {
    threads: database.prepare('SELECT * FROM threads ORDER BY thread_id').all(),
    secrets: database.prepare('SELECT name, hex(value) AS value FROM secrets').all(),
    version: database.pragma('user_version', { simple: true }),
  }
  database.close()
  return all
}

/** A file of an older schema with two threads in it, and what it holds. */
function oldFile(t: Test, schema = SCHEMA_1): { readonly file: string; readonly before: object } {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const database = new Database(file)
  database.exec(schema)
  database.close()
  return { file, before: contents(file) as object }
}

void test('a store of schema 1 becomes one of today’s, with every row as it was', async (t) => {
  const { file, before } = oldFile(t)
  const store = openSqliteStore(file)
  t.same(contents(file), { ...before, version: 3 })
  t.same(await store.revocations(), [])
  await store.revoke({ kind: 'token', tokenId: 'j', revokedAt: 1 })
  t.match(await store.owner({ scope: '', threadId: 't-2' }), { owner: 'corp:bob', deleted: true })
  await store.close()

  const again = openSqliteStore(file)
  t.same(await again.revocations(), [{ kind: 'token', tokenId: 'j', revokedAt: 1 }], 'and is one when it is opened again')
  await again.close()
  t.same(contents(file), { ...before, version: 3 })
})

void test('a store of schema 2 becomes one of today’s, and what was revoked stays revoked', async (t) => {
  const { file, before } = oldFile(t, SCHEMA_2)
  const store = openSqliteStore(file)
  t.same(contents(file), { ...before, version: 3 })
  t.same(await store.revocations(), [{ kind: 'user', userId: 'corp:eve', before: null, revokedAt: 6 }])
  t.equal(await store.revocationsVersion(), 7)
  const key = { scope: '', threadId: 't-9' }
  await store.observe(key, 'corp:eve', 'agent', true, 8)
  t.same([...(await store.runners('', ['t-9', 't-8']))], [['t-9', ['corp:eve']]])
  await store.close()
})

void test('four processes that open a store of schema 1 at once all come up on today’s', async (t) => {
  const { file, before } = oldFile(t)
  const workers = Array.from({ length: 4 }, () => fork(WORKER, [file, 'corp:eve', '0'], { execArgv: [] }))
  const told = await Promise.all(
    workers.map(async (worker) => {
      const gone = once(worker, 'exit').then(() => ['ended'])
      return ((await Promise.race([once(worker, 'message'), gone])) as unknown[])[0]
    }),
  )
  t.same(told, ['open', 'open', 'open', 'open'])
  const exits = workers.map((worker) => once(worker, 'exit'))
  for (const worker of workers) worker.send('go')
  await Promise.all(exits)
  t.same(contents(file), { ...before, version: 3 })
})

void test('a migration that fails half-way leaves the file as it was', (t) => {
  const { file } = oldFile(t)
  const database = new Database(file)
  // Stands in the way of the second of the new tables.
  database.exec('CREATE TABLE versions (other TEXT)')
  database.close()
  const before = contents(file)
  t.throws(() => openSqliteStore(file), { name: 'StoreUnavailable', message: /versions already exists/ })
  t.same(contents(file), before)
  const after = new Database(file, { readonly: true })
  t.equal(after.prepare("SELECT 1 FROM sqlite_master WHERE name = 'revocations'").get(), undefined)
  after.close()
  t.end()
})
