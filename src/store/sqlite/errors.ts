/** Classifies failures of SQLite, and describes them for an operator. */
import Database from 'better-sqlite3'

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
