/**
 * Caches who may use a thread. SQLite counts commits of other connections; asking for the count costs a tenth of a look-up, so
 * look-ups that run together share one question. A change by another process is seen by the next look-up that begins after it.
 */
import type { Grant, Reader } from '../../core/decide/sharing.ts'
import type { ThreadAccess } from '../port/access.ts'
import type { ThreadKey } from '../port/thread.ts'
import { changesBetween, countChanges } from './changes.ts'
import { sql } from '../sql/statement.ts'
import type { Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { makeAccessCache, nameOf } from '../access-cache.ts'

export interface SqliteAccess {
  /** Null: look up now. Only the first look-up of an event loop round runs at once; the others share one query at its end. */
  turn(): Promise<void> | null
  /** Cached access that permits the reader; null: ask the file. */
  find(key: ThreadKey, reader: Reader): ThreadAccess | null
  /** Caches only access that permits the reader. Call it within the step that looks it up. */
  keep(database: Connection, key: ThreadKey, threadAccess: ThreadAccess, reader: Reader): void
  /** Undefined if not cached. As current as the last answer of `find`. */
  usedAt(key: ThreadKey): number | undefined
  noteUse(key: ThreadKey, time: number): void
  /** The next look-up asks for other commits again, even in this round: the caller has heard of a change. */
  askAgain(): void
  /** Call before this process changes a thread, or `many`: SQLite does not count a connection's own commits. */
  forget(changed: ThreadKey | 'many'): void
}

const GRANTS = sql<Grant>(
  'SELECT kind, grantee AS id, access AS right FROM grants WHERE scope = :scope AND thread_id = :threadId',
)

interface State {
  /** Each connection counts other commits from the same start number: a new one does not know earlier commits. */
  readonly connection: Connection
  readonly identity: string | null
  readonly changes: number
  readonly schema: number
}

export function sqliteAccessCache(file: Pick<SqliteFile, 'identity' | 'connected'>, size: number): SqliteAccess {
  let commits: number | undefined
  let known: State | null = null
  // A row that was removed and added again may have another time of use: an access change forgets that as well.
  const uses = new Map<string, number>()
  const forget = (changed: ThreadKey | 'many'): void => {
    cache.drop(changed === 'many' ? null : changed)
    if (changed === 'many') uses.clear()
    else uses.delete(nameOf(changed))
  }

  // Asked once per synchronous run of code, so that a look-up and the claim that follows it see the same state.
  let asked: Connection | null = null

  let begun = false
  let together: Promise<void> | null = null
  const turn = (): Promise<void> | null => {
    // Not decided by whether the file was asked: it is asked only for existing threads, and a wait would reveal them.
    if (!begun) {
      begun = true
      setImmediate(() => (begun = false))
      return null
    }
    together ??= new Promise((resolve) => {
      setImmediate(() => {
        together = null
        resolve()
      })
    })
    return together
  }

  /** Forgets what other commits may have changed. @returns true if there was nothing */
  const catchUp = (database: Connection): boolean => {
    if (asked === database && known?.identity === file.identity) return true
    const now = database.commits.get()
    if (asked === null) queueMicrotask(() => (asked = null))
    if (known?.connection === database && now === commits && known.identity === file.identity) {
      asked = database
      return true
    }
    const changes = countChanges(database)
    const schema = database.schemaVersion()
    const isSameFile = known?.connection === database && known.identity === file.identity && known.schema === schema
    const missed = isSameFile && known !== null ? changesBetween(database, known.changes, changes) : null
    if (missed === null) forget('many')
    else for (const { key } of missed) forget(key)
    known = { connection: database, identity: file.identity, changes, schema }
    commits = now
    asked = database
    return missed?.length === 0
  }
  const isFresh = (): boolean => {
    try {
      return catchUp(file.connected('read'))
    } catch {
      // The look-up in the file, which follows, reports the failure.
      return false
    }
  }
  const cache = makeAccessCache(size, isFresh)

  return {
    turn,
    find: cache.find,
    keep(database, key, { row }, { userId }) {
      if (row === null || row.deleted || row.provisional) return
      if (row.owner !== userId && row.granted === null) return
      catchUp(database)
      cache.begin()(key, { owner: row.owner, grants: database.all(GRANTS, { ...key }) })
    },
    usedAt: (key) => uses.get(nameOf(key)),
    noteUse(key, time) {
      if (uses.size >= size) uses.clear()
      uses.set(nameOf(key), time)
    },
    askAgain: () => {
      asked = null
    },
    forget,
  }
}
