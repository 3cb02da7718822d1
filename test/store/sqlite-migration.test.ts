/** A file of an older program is migrated when it is opened: every row stays, and processes that open it at once agree. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts'
import { until } from '../../testing/support/until.ts'

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

/** Schema 3: what was seen under observe beside it. History, too. */
const SCHEMA_3 = `
  ${SCHEMA_2}
  CREATE TABLE observations (
    scope TEXT NOT NULL COLLATE BINARY,
    thread_id TEXT NOT NULL COLLATE BINARY,
    user_id TEXT NOT NULL COLLATE BINARY,
    agent_id TEXT NOT NULL,
    first_used_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    ran INTEGER NOT NULL CHECK (ran IN (0, 1)),
    PRIMARY KEY (scope, thread_id, user_id)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO observations VALUES ('', 't-3', 'corp:eve', 'agent', 1, 2, 1);
  PRAGMA user_version = 3;
`

/** Schema 4: sharing. History, too. */
const SCHEMA_4 = `
  ${SCHEMA_3}
  ALTER TABLE threads ADD COLUMN archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1));
  ALTER TABLE threads ADD COLUMN gone INTEGER NOT NULL DEFAULT 0 CHECK (gone IN (0, 1));
  UPDATE threads SET gone = 1 WHERE deleted_at IS NOT NULL;
  DROP INDEX threads_by_user;
  CREATE INDEX threads_by_user ON threads (user_id, scope, last_used_at DESC, thread_id);
  CREATE INDEX threads_by_use ON threads (scope, last_used_at DESC, thread_id);
  CREATE INDEX threads_gone ON threads (deleted_at) WHERE gone = 1;
  CREATE INDEX observations_by_user ON observations (user_id, scope, thread_id);
  CREATE TABLE grants (
    scope TEXT NOT NULL COLLATE BINARY,
    thread_id TEXT NOT NULL COLLATE BINARY,
    kind TEXT NOT NULL CHECK (kind IN ('user', 'group')),
    grantee TEXT NOT NULL COLLATE BINARY,
    access TEXT NOT NULL CHECK (access IN ('read', 'write')),
    granted_by TEXT NOT NULL COLLATE BINARY,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (scope, thread_id, kind, grantee)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_grantee ON grants (kind, grantee, scope, thread_id);
  INSERT INTO versions (name, value) VALUES ('standing', 8);
  CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO migrations VALUES
    (1, 'threads', '960db2644df0bd21d0116033daa6b82057c68b8b4da9a41857973b48b5962733', 1750000000000),
    (2, 'revocations', 'fa8e3531425cbbcf2c8f5288d70e5dbb0d06c9d518f690af606d8b0644f5d616', 1750000000000),
    (3, 'observations', 'e60764d3d7d76a5f0c36014dc7e6dce2128954d81648dfeecd2a2f2cd10ee44f', 1750000000000),
    (4, 'sharing', 'd3b221711f1a72df99a371a339546a3ad562f4fd6d68d916b2f28a636136ad83', 1750000000000);
  INSERT INTO grants VALUES ('', 't-1', 'user', 'corp:eve', 'read', 'corp:alice', 9);
  PRAGMA user_version = 4;
`

/** The checksums of the steps, as files out there have them. Only ever appended to. */
const CHECKSUMS = [
  '960db2644df0bd21d0116033daa6b82057c68b8b4da9a41857973b48b5962733',
  'fa8e3531425cbbcf2c8f5288d70e5dbb0d06c9d518f690af606d8b0644f5d616',
  'e60764d3d7d76a5f0c36014dc7e6dce2128954d81648dfeecd2a2f2cd10ee44f',
  'd3b221711f1a72df99a371a339546a3ad562f4fd6d68d916b2f28a636136ad83',
  'ffeca094efd276891171634e129d421d3e75cd68d20cde1c284a9c4da10a8122',
  '4ebe7f966c37e0fa1070ef23cbbd677965a4613245426cee1933c03a0e2a27a9',
  'ff68a92f75ba6540b6d1eaf9c1cd0c32dea6a39a3c6fe9ea1d9e6bf2ac91fa6f',
  '3591eec82d3790b3e13353839105a9d417549baa1f468c0a0d5bfe54d7cb559d',
  '7c7d7dbf8e3601c8283b4f39e90aa9ddc817554e091a7e240e3fa480149b8978',
]

/** What a file holds of threads and secrets, and its schema. */
function contents(file: string): unknown {
  return inFile(file, (database) => ({
    threads: database.prepare('SELECT * FROM threads ORDER BY thread_id').all(),
    secrets: database.prepare('SELECT name, hex(value) AS value FROM secrets').all(),
    version: database.pragma('user_version', { simple: true }),
  }))
}

/** Works on a file past the store. */
function inFile<T>(file: string, work: (database: Database.Database) => T): T {
  const database = new Database(file)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/** The same after a migration: nothing is archived, and what was deleted is gone upstream, for else it was not deleted. */
function migrated(before: object): object {
  const { threads } = before as {
    readonly threads: readonly Readonly<Record<string, unknown>>[]
  }
  return {
    ...before,
    threads: threads.map((row) => ({
      ...Object.fromEntries(Object.entries(row).filter(([name]) => !['life', 'pending', 'gone'].includes(name))),
      incarnation: row['life'],
      open_runs: row['pending'],
      archived: 0,
      upstream_deleted: row['deleted_at'] === null ? 0 : 1,
      deletion: null,
      runs_by: '*',
    })),
    version: SCHEMA_VERSION,
  }
}

interface Migration {
  readonly number: number
  readonly name: string
  readonly checksum: string
  readonly applied_at: number
}

/** A file of an older schema with two threads in it, and what it holds. */
function oldFile(t: Test, schema = SCHEMA_1): { readonly file: string; readonly before: object } {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const database = new Database(file)
  database.exec(schema)
  database.close()
  return { file, before: schema === '' ? {} : (contents(file) as object) }
}

void test('a store of schema 1 becomes one of today’s, with every row as it was', async (t) => {
  const { file, before } = oldFile(t)
  const store = await openSqliteStore(file)
  t.same(contents(file), migrated(before))
  t.same(await store.revocations(), [])
  await store.revoke({ kind: 'token', tokenId: 'j', revokedAt: 1 })
  t.match(await store.thread({ scope: '', threadId: 't-2' }), { row: { owner: 'corp:bob', deletedAt: 5, provisional: true } })
  await store.close()

  const again = await openSqliteStore(file)
  t.same(await again.revocations(), [{ kind: 'token', tokenId: 'j', revokedAt: 1 }], 'and is one when it is opened again')
  await again.close()
  t.same(contents(file), migrated(before))
})

void test('a store of schema 2 becomes one of today’s, and what was revoked stays revoked', async (t) => {
  const { file, before } = oldFile(t, SCHEMA_2)
  const store = await openSqliteStore(file)
  t.same(contents(file), migrated(before))
  t.same(await store.revocations(), [{ kind: 'user', userId: 'corp:eve', before: null, revokedAt: 6 }])
  t.equal(await store.revocationsVersion(), 7)
  const key = { scope: '', threadId: 't-9' }
  await store.observe(key, 'corp:eve', 'agent', 'run', 8)
  t.match(await store.thread(key), { row: null, runners: ['corp:eve'] })
  await store.close()
})

void test('a store of schema 3 becomes one of today’s, and what was seen stays so', async (t) => {
  const { file, before } = oldFile(t, SCHEMA_3)
  const store = await openSqliteStore(file)
  t.same(contents(file), migrated(before))
  t.match(await store.thread({ scope: '', threadId: 't-3' }), { row: null, runners: ['corp:eve'] })
  const to = { kind: 'user', id: 'corp:eve', right: 'read', grantedBy: 'operator', grantedAt: 1 } as const
  t.equal(await store.grant({ scope: '', threadId: 't-1' }, null, to), 'done', 'and threads can be shared')
  await store.close()
})

void test('a store of schema 4 becomes one of today’s: its lists and grants are as they were, and its changes go on', async (t) => {
  const { file, before } = oldFile(t, SCHEMA_4)
  const store = await openSqliteStore(file)
  t.same(contents(file), migrated(before))
  const key = { scope: '', threadId: 't-1' }
  const window = { agentId: null, includeArchived: false, after: null, limit: 10 }
  for (const [userId, granted] of [
    ['corp:alice', null],
    ['corp:eve', 'read'],
  ] as const)
    t.match(await store.listed('', { userId, groups: [] }, window), [{ threadId: 't-1', name: 'name', granted }])
  t.equal(await store.ungrant(key, 'corp:alice', { kind: 'user', id: 'corp:eve' }), 'done')
  await store.close()
  const changes = inFile(file, (database) => database.prepare('SELECT * FROM standing_changes').all())
  t.same(changes, [{ number: 9, scope: '', thread_id: 't-1' }])
})

void test('a program that opened the store before it was migrated goes on, and the others hear of what it changes', async (t) => {
  const { file } = oldFile(t, SCHEMA_4)
  const older = new Database(file)
  t.teardown(() => older.close())
  const changing = older.prepare("UPDATE versions SET value = value + 1 WHERE name = 'standing'")
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  const told: unknown[] = []
  store.onInvalidation((key) => told.push(key))
  changing.run()
  await until(() => told.length > 0)
  t.same(told, [null])
})

void test('a file says by which steps it came to be, whichever schema it began with', async (t) => {
  for (const schema of ['', SCHEMA_1, SCHEMA_2, SCHEMA_3, SCHEMA_4]) {
    const { file } = oldFile(t, schema)
    await (await openSqliteStore(file)).close()
    await (await openSqliteStore(file)).close()
    const steps = inFile(file, (database) => database.prepare('SELECT * FROM migrations ORDER BY number').all()) as Migration[]
    t.same(
      steps.map(({ number, name, checksum }) => [number, name, checksum]),
      ['threads', 'revocations', 'observations', 'sharing', 'deletions', 'lists', 'columns', 'unconfirmed', 'states'].map(
        (name, at) => [at + 1, name, CHECKSUMS[at]],
      ),
    )
    t.ok(
      steps.every(({ applied_at: time }) => time > 1_700_000_000_000 && time < 100_000_000_000_000),
      'in milliseconds',
    )
  }
})

for (const [change, message] of [
  ["UPDATE migrations SET checksum = 'other' WHERE number = 2", /its migration 2 \(revocations\) differs/],
  ['DELETE FROM migrations WHERE number = 4', /its migration 4 \(sharing\) differs/],
  [`INSERT INTO migrations VALUES (${SCHEMA_VERSION + 1}, 'next', 'x', 1)`, /is newer than this program knows/],
  [`PRAGMA user_version = ${SCHEMA_VERSION + 1}`, /is newer than this program knows/],
] as const) {
  void test(`a file that came to be by other steps is refused, and left as it is: ${change}`, async (t) => {
    const { file } = oldFile(t)
    await (await openSqliteStore(file)).close()
    inFile(file, (database) => database.exec(change))
    const all = (database: Database.Database) => [
      database.prepare('SELECT * FROM migrations').all(),
      database.pragma('user_version', { simple: true }),
    ]
    const before = inFile(file, all)
    await t.rejects(openSqliteStore(file), { name: 'StoreUnavailable', message })
    t.same(inFile(file, all), before)
  })
}

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
  t.same(contents(file), migrated(before))
})

void test('a migration that fails half-way leaves the file as it was', async (t) => {
  const { file } = oldFile(t)
  const database = new Database(file)
  // Stands in the way of the second of the new tables.
  database.exec('CREATE TABLE versions (other TEXT)')
  database.close()
  const before = contents(file)
  await t.rejects(openSqliteStore(file), { name: 'StoreUnavailable', message: /versions already exists/ })
  t.same(contents(file), before)
  const after = new Database(file, { readonly: true })
  t.equal(after.prepare("SELECT 1 FROM sqlite_master WHERE name = 'revocations'").get(), undefined)
  after.close()
})
