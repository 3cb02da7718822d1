/** Checks whether the SQLite store can be read and written now. */
import { StoreUnavailable } from '../port/state.ts'
import { sql } from '../sql/statement.ts'
import type { SqliteFile } from './file.ts'
import { findDamage } from './integrity.ts'
import { accessOf } from './ownership.ts'

const PROBE = sql("INSERT INTO versions (name, value) VALUES ('probe', 1) ON CONFLICT DO UPDATE SET value = value + 1")

const LOOKING_MS = 1000
/** The next check waits this many times as long as the last one took: reading a large file takes long. */
const PATIENCE = 10

export function healthOf(file: SqliteFile): () => Promise<string | null> {
  let checking = false
  let nextCheck = -Infinity

  /** The file stays damaged until a check finds no damage: the next read may use another part of it. */
  const check = async (): Promise<void> => {
    const began = performance.now()
    if (checking || began < nextCheck) return
    checking = true
    if ((await findDamage(file.path, 'quick')) === null) file.damaged = false
    const ended = performance.now()
    nextCheck = ended + Math.max(LOOKING_MS, PATIENCE * (ended - began))
    checking = false
  }

  return async () => {
    try {
      // The same queries as for decisions.
      await file.read((database) => accessOf(database, { scope: '', threadId: '' }, { userId: '', groups: [] }))
      await file.probe((database) => database.run(PROBE))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      if (file.damaged) void check()
      return error.message
    }
    if (!file.damaged) return null
    void check()
    return 'the ownership store failed: its file is damaged: restore it from a backup'
  }
}
