/**
 * Remembers of threads who may use them, in front of the SQLite file. Other processes change it as well, and what they have
 * changed is seen by the next look-up that begins after it: SQLite counts the commits of others, which costs a tenth of a look-up
 * to ask, and is asked once for all that is looked up together.
 */
import type { Grant, Reader } from '../../core/decide/sharing.ts'
import type { ThreadAccess, ThreadKey } from '../port.ts'
import { changesBetween, countChanges, SCHEMA } from './changes.ts'
import { sql, type Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { makeAccessCache, nameOf } from '../access-cache.ts'

export interface SqliteAccess {
  /**
   * What to wait for before a look-up, whatever this one and those before it are about: those that come in one round of the
   * event loop, but for the first, ask the file together at its end. Null: nothing, it is this one's turn.
   */
  turn(): Promise<void> | null
  /** What is known of a thread now, if that lets the reader use it; null: the file has to be asked. */
  find(key: ThreadKey, reader: Reader): ThreadAccess | null
  /** Keeps what a look-up has found, if it let the reader use the thread. Part of the step that looks it up. */
  keep(database: Connection, key: ThreadKey, threadAccess: ThreadAccess, reader: Reader): void
  /** When a thread was used last, as far as that is remembered; as true as what `find` has just answered. */
  usedAt(key: ThreadKey): number | undefined
  /** Keeps when a thread was used. */
  noteUse(key: ThreadKey, time: number): void
  /** Asks what others have committed before it answers again, also in this turn: somebody has heard of a change. */
  askAgain(): void
  /** Forgets a thread, or with `many` all, because this process is about to change it: its own commits are not in the count. */
  forget(changed: ThreadKey | 'many'): void
}

// Changes whenever another process, or another connection, has committed (https://sqlite.org/pragma.html#pragma_data_version).
const COMMITS = sql<number>('PRAGMA data_version')
const GRANTS = sql<Grant>(
  'SELECT kind, grantee AS id, access AS right FROM grants WHERE scope = :scope AND thread_id = :threadId',
)

/** What the file was like when everything that is remembered was true. */
interface State {
  /** Each counts the commits of others for itself, from the same number on: a new one knows nothing of those before it. */
  readonly connection: Connection
  readonly identity: string | null
  readonly changes: number
  /** A backup that is put back may have any count of changes. */
  readonly schema: number | undefined
}

/**
 * Makes what remembers of a file.
 * @param size of how many threads at most
 */
export function accessCacheOf(file: Pick<SqliteFile, 'identity' | 'glance'>, size: number): SqliteAccess {
  let commits: number | undefined
  let known: State | null = null
  // A row that went and came again may have been used at another time: a change of access invalidates that as well.
  const uses = new Map<string, number>()
  const forget = (changed: ThreadKey | 'many'): void => {
    cache.drop(changed === 'many' ? null : changed)
    if (changed === 'many') uses.clear()
    else uses.delete(nameOf(changed))
  }

  // Asked once for all that runs together: until the code that runs now has come to its end, nobody here can have been told of
  // what others commit meanwhile except through invalidations, and a look-up and the claim that follows it see the same.
  let asked: Connection | null = null
  const noteAsked = (database: Connection): void => {
    if (asked === null) queueMicrotask(() => (asked = null))
    asked = database
  }

  /** Whether somebody has come in this round of the event loop. */
  let begun = false
  /** What the others wait for: at the end of the round all that came in it has come before the question. */
  let together: Promise<void> | null = null
  const turn = (): Promise<void> | null => {
    // Not whether somebody has asked: that is done for threads that are there, and whoever waits would tell of them.
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

  /** Takes in what others have committed: what that may have touched is forgotten. @returns true if there was nothing */
  const catchUp = (database: Connection): boolean => {
    if (asked === database && known?.identity === file.identity) return true
    const now = database.value(COMMITS)
    if (known?.connection === database && now === commits && known.identity === file.identity) {
      noteAsked(database)
      return true
    }
    const changes = countChanges(database)
    const schema = database.value(SCHEMA)
    const isSameFile = known?.connection === database && known.identity === file.identity && known.schema === schema
    const missed = isSameFile && known !== null ? changesBetween(database, known.changes, changes) : null
    if (missed === null) forget('many')
    else for (const { key } of missed) forget(key)
    known = { connection: database, identity: file.identity, changes, schema }
    commits = now
    noteAsked(database)
    return missed?.length === 0
  }
  const cache = makeAccessCache(size, () => file.glance(catchUp) === true)

  return {
    turn,
    find: (key, reader) => cache.find(key, reader),
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
