/** A connection to a SQLite file, with statements that are prepared at first use and live as long as it, and its failures. */
import Database from 'better-sqlite3'
import type { Sql } from '../sql/statement.ts'

/** A statement ignores names that it does not use. */
export type Values = Readonly<Record<string, string | number | null | Uint8Array>>

export interface Connection {
  get<Row>(sql: Sql<Row>, values?: Values): Row | undefined
  /** A number that changes when another connection, of any process, commits (https://sqlite.org/pragma.html#pragma_data_version). */
  readonly commits: { get(): number | undefined }
  /** Increases when a backup is restored, which may have any change count. */
  schemaVersion(): number
  /** None of a statement that returns no rows. */
  all<Row>(sql: Sql<Row>, values?: Values): Row[]
  /** The first column of each row: making an object of a row takes as long as reading it. */
  column<Value>(sql: Sql<Value>, values?: Values): Value[]
  /** @returns how many rows it changed */
  run(sql: Sql<never>, values?: Values): number
  /** For reads: one state of the data. */
  snapshot<T>(step: () => T): T
  /** Atomic across processes: takes the write lock first. */
  locked<T>(step: () => T): T
  close(): void
}

/** How long SQLite itself waits for a lock, which blocks the whole process. */
const BLOCKING_MS = 25

/** Never creates a file: in an empty one every thread would be unowned. @throws what SQLite or `prepare` throws */
export function connect(file: string, prepare: (database: Database.Database) => void): Connection {
  const database = new Database(file, { fileMustExist: true, timeout: BLOCKING_MS })
  try {
    database.pragma('journal_mode = WAL')
    // A claim that was answered must survive a power failure.
    database.pragma('synchronous = FULL')
    // No free page and no backup may contain an erased user. SQLite shortens the log when it starts it again.
    database.pragma('secure_delete = ON')
    database.pragma('journal_size_limit = 0')
    prepare(database)
  } catch (error) {
    database.close()
    throw error
  }
  const statements = new Map<string, Database.Statement<[Values]>>()
  const prepared = ({ text }: Sql<unknown>): Database.Statement<[Values]> => {
    let statement = statements.get(text)
    if (statement === undefined) statements.set(text, (statement = database.prepare<[Values]>(text)))
    return statement
  }
  const schema = database.prepare<[], number>('PRAGMA schema_version').pluck()
  const transaction = database.transaction(<T>(step: () => T): T => step())
  return {
    get: <Row>(sql: Sql<Row>, values: Values = {}) => prepared(sql).get(values) as Row | undefined,
    commits: database.prepare<[], number>('PRAGMA data_version').pluck(),
    schemaVersion: () => schema.get() as number,
    all: <Row>(sql: Sql<Row>, values: Values = {}) => {
      const statement = prepared(sql)
      if (statement.reader) return statement.all(values) as Row[]
      statement.run(values)
      return []
    },
    column: <Value>(sql: Sql<Value>, values: Values = {}) => prepared(sql).pluck().all(values) as Value[],
    run: (sql, values = {}) => prepared(sql).run(values).changes,
    snapshot: <T>(step: () => T) => transaction.deferred(step) as T,
    locked: <T>(step: () => T) => transaction.immediate(step) as T,
    close: () => void database.close(),
  }
}

/** True if another process has the lock: the step did nothing, and a retry may work. */
export function isBusy(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(?:BUSY|LOCKED|PROTOCOL)/)
}

/** True if only a new connection may recover. Failed disk writes don't count: SQLite rolls them back, and reads continue. */
export function isLasting(error: unknown): boolean {
  return isDamage(error) || hasCode(error, /^SQLITE_(?:IOERR(?!_WRITE)|READONLY|CANTOPEN|PERM|NOMEM|INTERNAL)/)
}

export function isDamage(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(?:CORRUPT|NOTADB)/)
}

export function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error instanceof Database.SqliteError ? `${error.message} (${error.code})` : error.message
}

function hasCode(error: unknown, codes: RegExp): boolean {
  return error instanceof Database.SqliteError && codes.test(error.code)
}
