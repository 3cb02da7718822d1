/** The schema of the SQLite store, and the migrations to it from each earlier schema. */
import { createHash } from 'node:crypto'
import type Database from 'better-sqlite3'
import { largest } from '../../core/json/extremes.ts'

// BINARY, SQLite's default, is explicit as a promise: ids compare byte for byte. COLUMNS renames `life`, `gone` and `pending`.
const THREADS = `
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
`

// `issued_before` is null for single tokens, and for all tokens of a user. `versions` holds numbers to poll instead of tables.
const REVOCATIONS = `
  CREATE TABLE revocations (
    kind TEXT NOT NULL CHECK (kind IN ('token', 'user')),
    id TEXT NOT NULL COLLATE BINARY,
    issued_before INTEGER CHECK (issued_before IS NULL OR kind = 'user'),
    revoked_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE versions (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO versions (name, value) VALUES ('revocations', 0);
`

// Observations make no user an owner: several users of one thread are several rows.
const OBSERVATIONS = `
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
`

// The primary key of `grants` serves decisions, its index by grantee serves lists. Indexes of `threads` are in list order.
// Before this migration tombstones were made only where the upstream had confirmed that it holds nothing of the thread.
const SHARING = `
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
  INSERT INTO versions (name, value) VALUES ('standing', 0);
  CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
  ) STRICT;
`

// `deletion` identifies the pending deletions of a thread, until a run is claimed: their answers may come late.
// `runs_by` is the process that sent all runs, or `*`: only that process can tell that no run executes during a deletion.
const DELETIONS = `
  ALTER TABLE threads ADD COLUMN deletion TEXT;
  ALTER TABLE threads ADD COLUMN runs_by TEXT NOT NULL DEFAULT '*';
`

// List indexes hold only live rows and begin with a list's optional conditions: a list costs no more than its page.
// `deleted_at` is in them because SQLite would look up each row for it.
// `grants_by_grantee` has the right beside the thread; `grants_by_giver` counts a user's grants to another user.
// `threads_of_user` serves work on a user's rows in any state. It is not written when a thread is used.
// `standing_changes` has the thread of each of the last changes, by the number of the change.
const LISTS = `
  DROP INDEX threads_by_user;
  DROP INDEX threads_by_use;
  DROP INDEX grants_by_grantee;
  CREATE INDEX threads_of_user ON threads (user_id, scope);
  CREATE INDEX listed_by_user ON threads (user_id, scope, archived, last_used_at DESC, thread_id, deleted_at) WHERE deleted_at IS NULL;
  CREATE INDEX listed_by_user_agent ON threads (user_id, scope, agent_id, archived, last_used_at DESC, thread_id, deleted_at)
    WHERE deleted_at IS NULL;
  CREATE INDEX listed_by_use ON threads (scope, archived, last_used_at DESC, thread_id, deleted_at) WHERE deleted_at IS NULL;
  CREATE INDEX listed_by_agent ON threads (scope, agent_id, archived, last_used_at DESC, thread_id, deleted_at) WHERE deleted_at IS NULL;
  CREATE INDEX grants_by_grantee ON grants (kind, grantee, scope, thread_id, access);
  CREATE INDEX grants_by_giver ON grants (granted_by, kind, grantee);
  CREATE TABLE standing_changes (
    number INTEGER PRIMARY KEY,
    scope TEXT NOT NULL COLLATE BINARY,
    thread_id TEXT NOT NULL COLLATE BINARY
  ) STRICT;
`

// `incarnation` counts revivals and owner changes: a run from before one settles nothing after it.
// `upstream_deleted` is 1 for a tombstone once the upstream has confirmed that it holds nothing of the thread.
// `open_runs` counts the registered runs of a row that no run has confirmed yet; 0 with provisional = 0 once it is settled.
const COLUMNS = `
  ALTER TABLE threads RENAME COLUMN life TO incarnation;
  ALTER TABLE threads RENAME COLUMN gone TO upstream_deleted;
  ALTER TABLE threads RENAME COLUMN pending TO open_runs;
`

// For the age of unconfirmed claims: `last_used_at` of such a row is the time of its claim.
const UNCONFIRMED = `
  CREATE INDEX threads_unconfirmed ON threads (last_used_at) WHERE provisional = 1;
`

// A list asks for the state of all of a user's rows: SQLite would look up each row for it.
const STATES = `
  DROP INDEX threads_of_user;
  CREATE INDEX threads_of_user ON threads (user_id, scope, thread_id, deleted_at, provisional);
`

interface Migration {
  readonly number: number
  readonly name: string
  readonly text: string
  /** SHA-256 of the text, in hexadecimal. */
  readonly checksum: string
}

/** Append only. The number of a migration is the schema that it leads to, SQLite's user_version. */
export const MIGRATIONS: readonly Migration[] = [
  ['threads', THREADS],
  ['revocations', REVOCATIONS],
  ['observations', OBSERVATIONS],
  ['sharing', SHARING],
  ['deletions', DELETIONS],
  ['lists', LISTS],
  ['columns', COLUMNS],
  ['unconfirmed', UNCONFIRMED],
  ['states', STATES],
].map(([name = '', text = ''], at) => ({
  number: at + 1,
  name,
  text,
  checksum: createHash('sha256').update(text).digest('hex'),
}))

export const SCHEMA_VERSION = MIGRATIONS.length

const RECORDED_FROM = 4

/** Returns 0 for a file without a schema. @throws Error if it is newer than this program or was made by other migrations */
export function schemaOf(database: Database.Database): number {
  const version = database.pragma('user_version', { simple: true }) as number
  const newer = (schema: number): Error => new Error(`its schema ${schema} is newer than this program knows (${SCHEMA_VERSION})`)
  if (version > SCHEMA_VERSION) throw newer(version)
  if (version < RECORDED_FROM) return version
  const applied = database.prepare<[], { number: number; checksum: string }>('SELECT number, checksum FROM migrations').all()
  const latest = largest(applied.map(({ number }) => number))
  if (latest > SCHEMA_VERSION) throw newer(latest)
  for (const { number, name, checksum } of MIGRATIONS.slice(0, version)) {
    const there = applied.find((one) => one.number === number)
    if (there?.checksum === checksum) continue
    throw new Error(`its migration ${number} (${name}) differs: another build of this program wrote it`)
  }
  return version
}

/** One transaction under the write lock: other processes wait. @throws as schemaOf and SQLite do, with nothing changed */
export function migrate(database: Database.Database): void {
  const record = `INSERT INTO migrations (number, name, checksum, applied_at)
    VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER)) ON CONFLICT DO NOTHING`
  database
    .transaction(() => {
      for (const { text } of MIGRATIONS.slice(schemaOf(database))) database.exec(text)
      const statement = database.prepare<[number, string, string]>(record)
      for (const { number, name, checksum } of MIGRATIONS) statement.run(number, name, checksum)
      // Always written, so that an unwritable store is found at start and not at the first claim.
      database.pragma(`user_version = ${SCHEMA_VERSION}`)
    })
    .immediate()
}
