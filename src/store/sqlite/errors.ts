/** What a failure of SQLite means for the connection it happened on, and what it is in words for an operator. */
import Database from 'better-sqlite3'

/** True if another process has the lock: the same step may work a moment later, and nothing of it was done. */
export function isBusy(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(?:BUSY|LOCKED|PROTOCOL)/)
}

/**
 * True if the connection may not recover from it, or goes on seeing what was so when it was opened (a file that was not to be
 * written then). Writes that the disk did not take are none of these: SQLite rolls them back, and reads go on.
 */
export function isLasting(error: unknown): boolean {
  return isDamage(error) || hasCode(error, /^SQLITE_(?:IOERR(?!_WRITE)|READONLY|CANTOPEN|PERM|NOMEM|INTERNAL)/)
}

/** True if the content of the file is wrong. */
export function isDamage(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(?:CORRUPT|NOTADB)/)
}

/** The failure for an operator, with SQLite's own word for it. */
export function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error instanceof Database.SqliteError ? `${error.message} (${error.code})` : error.message
}

function hasCode(error: unknown, codes: RegExp): boolean {
  return error instanceof Database.SqliteError && codes.test(error.code)
}
