/** A connection to a SQLite file, with its statements: they are prepared at their first use and go with it. */
import Database from 'better-sqlite3'

/** A statement, and what its rows look like. All values are bound by name. */
export interface Sql<Row> {
  readonly text: string
  /** Never there: it carries the type. */
  readonly row?: Row
}

/** Values by name. What a statement does not name is left aside. */
export type Values = Readonly<Record<string, string | number | null | Uint8Array>>

export interface Connection {
  get<Row>(sql: Sql<Row>, values?: Values): Row | undefined
  /** The first column of the first row, of a statement that has no values. */
  value<Value>(sql: Sql<Value>): Value | undefined
  all<Row>(sql: Sql<Row>, values?: Values): Row[]
  /** Changes rows. @returns how many */
  run(sql: Sql<never>, values?: Values): number
  /** Does a step that reads, all of it at one state of the data. */
  snapshot<T>(step: () => T): T
  /** Does a step that reads and writes, atomically over all processes: the write lock comes first. */
  locked<T>(step: () => T): T
  close(): void
}

/** How long SQLite itself waits for a lock: nothing else goes on in the process meanwhile. */
const BLOCKING_MS = 25

/** Names the rows of a statement. */
export function sql<Row = never>(text: string): Sql<Row> {
  return { text }
}

/**
 * Opens a file.
 * @param mustExist true to fail where it is missing, false to make it
 * @param prepare brings its schema up to date, or throws
 * @throws what SQLite throws, and what `prepare` does
 */
export function connect(file: string, mustExist: boolean, prepare: (database: Database.Database) => void): Connection {
  const database = new Database(file, { fileMustExist: mustExist, timeout: BLOCKING_MS })
  try {
    database.pragma('journal_mode = WAL')
    // A claim that was answered must survive a loss of power.
    database.pragma('synchronous = FULL')
    // Who was erased is in no free page of the file, nor in a backup of it; the log is shortened when it begins anew.
    database.pragma('secure_delete = ON')
    database.pragma('journal_size_limit = 0')
    prepare(database)
  } catch (error) {
    database.close()
    throw error
  }
  const prepared = preparedBy((text) => database.prepare<[Values]>(text))
  const plucked = preparedBy((text) => database.prepare<[]>(text).pluck())
  const transaction = database.transaction(<T>(step: () => T): T => step())
  return {
    get: <Row>(sql: Sql<Row>, values: Values = {}) => prepared(sql).get(values) as Row | undefined,
    value: <Value>(sql: Sql<Value>) => plucked(sql).get() as Value | undefined,
    all: <Row>(sql: Sql<Row>, values: Values = {}) => prepared(sql).all(values) as Row[],
    run: (sql, values = {}) => prepared(sql).run(values).changes,
    snapshot: <T>(step: () => T) => transaction.deferred(step) as T,
    locked: <T>(step: () => T) => transaction.immediate(step) as T,
    close: () => void database.close(),
  }
}

/** Prepares a statement at its first use. */
function preparedBy<Statement>(prepare: (text: string) => Statement): (sql: Sql<unknown>) => Statement {
  const statements = new Map<string, Statement>()
  return ({ text }) => {
    let statement = statements.get(text)
    if (statement === undefined) statements.set(text, (statement = prepare(text)))
    return statement
  }
}
