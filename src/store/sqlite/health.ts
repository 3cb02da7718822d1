/** Whether the SQLite store can be read and written now. */
import { StoreUnavailable } from '../port.ts'
import { sql } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { findDamage } from './integrity.ts'
import { standingOf } from './ownership.ts'

const PROBE = sql("INSERT INTO versions (name, value) VALUES ('probe', 1) ON CONFLICT DO UPDATE SET value = value + 1")

/** The least time between two looks through a damaged file, in milliseconds. */
const LOOKING_MS = 1000
/** How many times as long as a look took the next one waits: a large file is read for a long time. */
const PATIENCE = 10

/**
 * Makes the question.
 * @returns asks it: null, or what is wrong, in words for an operator
 */
export function healthOf(file: SqliteFile): () => Promise<string | null> {
  let looking = false
  let nextLook = -Infinity

  /** Damage stays damage until the file was looked through and has none: what is read next may be another part of it. */
  const lookThrough = async (): Promise<void> => {
    const began = performance.now()
    if (looking || began < nextLook) return
    looking = true
    if ((await findDamage(file.path, 'quick')) === null) file.damaged = false
    const ended = performance.now()
    nextLook = ended + Math.max(LOOKING_MS, PATIENCE * (ended - began))
    looking = false
  }

  return async () => {
    try {
      // What decisions rest on is asked as they ask it.
      await file.read((database) => standingOf(database, { scope: '', threadId: '' }, { userId: '', groups: [] }))
      await file.probe((database) => database.run(PROBE))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      if (file.damaged) void lookThrough()
      return error.message
    }
    if (!file.damaged) return null
    void lookThrough()
    return 'the ownership store failed: its file is damaged: restore it from a backup'
  }
}
