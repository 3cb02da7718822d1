/** The file of the SQLite store: opened, brought to the schema of this program, and used in steps that are atomic. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { StoreUnavailable } from './port.ts'

// BINARY collation is SQLite's default and stands here as a promise: ids compare byte for byte.
// `pending` counts the registered runs of a row that no run has confirmed yet (0 and provisional = 0 once it is settled);
// `life` counts its revivals, so that a run from before a deletion settles nothing after it.
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

// `issued_before` is null where all tokens of a user are meant, and for single tokens.
// `versions` holds what other processes poll: one number instead of a table.
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

// What was seen under `enforcement: observe`. It makes nobody an owner: several users of one thread are several rows.
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

/** What leads from each schema to the next; the number of a schema is SQLite's user_version. Only ever appended to. */
const STEPS = [THREADS, REVOCATIONS, OBSERVATIONS]

/** The schema of this program, as SQLite's user_version. */
export const SCHEMA_VERSION = STEPS.length

/** How long to wait for another process's write: it blocks this one, and then the answer is 503. */
const BUSY_TIMEOUT_MS = 5000

/** An open file. */
export interface SqliteFile {
  readonly database: Database.Database
  /** Does a step; whatever it throws becomes a rejection with StoreUnavailable. */
  guard<T>(step: () => T): Promise<T>
  /** Does a step that reads and writes, atomically over all processes. */
  guardLocked<T>(step: () => T): Promise<T>
  /** The same within a guarded step. */
  locked<T>(step: () => T): T
}

/**
 * Opens a file, making it and its folder where they are missing, and migrates it where it is of an older program.
 * @param file the path of the database
 * @throws StoreUnavailable with the path and what to do, if it can't be opened or written
 */
export function openSqliteFile(file: string): SqliteFile {
  let database: Database.Database | undefined
  try {
    mkdirSync(dirname(file), { recursive: true })
    database = new Database(file, { timeout: BUSY_TIMEOUT_MS })
    useWriteAheadLog(database)
    // A claim that was answered must survive a loss of power.
    database.pragma('synchronous = FULL')
    migrate(database)
    return stepsOn(database)
  } catch (error) {
    database?.close()
    throw new StoreUnavailable(
      `the ownership store ${file} cannot be opened for writing: ${message(error)}; check ownership.store and the permissions of its folder`,
    )
  }
}

function stepsOn(database: Database.Database): SqliteFile {
  // IMMEDIATE: the write lock comes first, so that reading and writing are one step over all processes.
  const locked = <T>(step: () => T): T => database.transaction(step).immediate()
  const guard = <T>(step: () => T): Promise<T> => {
    try {
      return Promise.resolve(step())
    } catch (error) {
      return Promise.reject(new StoreUnavailable(`the ownership store failed: ${message(error)}`))
    }
  }
  return { database, locked, guard, guardLocked: (step) => guard(() => locked(step)) }
}

/** Another process may be making the same file: SQLite's own waiting does not cover this one step. */
function useWriteAheadLog(database: Database.Database): void {
  const until = Date.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      database.pragma('journal_mode = WAL')
      return
    } catch (error) {
      const busy = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
      if (!busy || Date.now() >= until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

/** One transaction that begins with the write lock: of processes that open at once, one migrates and the others wait. */
function migrate(database: Database.Database): void {
  database
    .transaction(() => {
      const version = database.pragma('user_version', { simple: true }) as number
      if (version > SCHEMA_VERSION) throw new Error(`its schema ${version} is newer than this program knows (${SCHEMA_VERSION})`)
      for (const step of STEPS.slice(version)) database.exec(step)
      // Written always, so that a store that can't be written is found at start and not at the first claim.
      database.pragma(`user_version = ${SCHEMA_VERSION}`)
    })
    .immediate()
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
