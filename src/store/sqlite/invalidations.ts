/** Access invalidations between all processes on one SQLite file: each counts its changes in the file, and the others poll. */
import type { AccessInvalidations } from '../port/access.ts'
import type { ThreadKey } from '../port/thread.ts'
import { changesBetween, countChanges, noteChange, type Changed, type NumberedChange } from './changes.ts'
import type { Connection } from './connection.ts'
import type { SqliteFile, Step } from './file.ts'
import { nameOf } from '../access-cache.ts'

export type { Changed } from './changes.ts'

export interface SqliteInvalidations extends AccessInvalidations {
  write<T>(step: Step<{ readonly result: T; readonly changed: Changed }>): Promise<T>
  stop(): void
}

type Listener = (key: ThreadKey | null) => void

/** Another file, or a restored backup, has another history. */
interface Count {
  readonly version: number
  readonly identity: string | null
  readonly schema: number
}

/** Null changes: any thread may have changed. */
interface Seen {
  readonly count: Count
  readonly changes: readonly NumberedChange[] | null
}

const INTERVAL_MS = 250

/** Must learn of a change before any caller can ask. */
export interface CacheUpdates {
  onOwn(changed: ThreadKey | 'many'): void
  /** Called before the listeners: the access that they look up must be current. */
  onAny(): void
}

export function invalidationsOf(file: SqliteFile, first: CacheUpdates): SqliteInvalidations {
  const listeners = new Set<Listener>()
  let timer: NodeJS.Timeout | undefined
  /** The count that was last announced; null while it is unknown. */
  let known: Count | null = null
  /** True if the first read failed: the changes since that time are unknown, too. */
  let lost = false
  let polling = false

  const invalidate = (key: ThreadKey | null): void => {
    first.onAny()
    for (const listener of [...listeners]) listener(key)
  }
  const announcedIn = ({ identity, schema }: Count): number | null =>
    known?.identity === identity && known.schema === schema ? known.version : null
  /** Call it within a step: after the step another file may be in use. */
  const see = (database: Connection, version: number): Seen => {
    const count = { version, identity: file.identity, schema: database.schemaVersion() }
    const before = announcedIn(count)
    return { count, changes: before === null ? null : changesBetween(database, before, version) }
  }
  const hear = ({ count, changes }: Seen): void => {
    if (listeners.size === 0) return
    const before = announcedIn(count)
    if (before !== null && count.version <= before) return
    known = count
    lost = false
    const keys = new Map<string, ThreadKey | null>()
    if (before === null || changes === null) keys.set('', null)
    // Some may have been announced since the look-up, and one thread may have changed several times.
    else for (const { number, key } of changes) if (number > before) keys.set(nameOf(key), key)
    keys.forEach(invalidate)
  }
  const poll = async (): Promise<void> => {
    if (polling) return
    polling = true
    try {
      const seen = await file.read((database) => {
        const now = see(database, countChanges(database))
        // The first look only learns the count. It keeps it at once, because a change by this process may follow.
        if (known === null && !lost) known = now.count
        return now
      })
      hear(seen)
    } catch {
      // Requests that need the store fail. Invalidations continue when it answers again.
      lost ||= known === null
    }
    polling = false
  }
  const stop = (): void => {
    clearInterval(timer)
    timer = undefined
    known = null
    lost = false
  }

  return {
    async write(step) {
      const { result, seen } = await file.write((database) => {
        const { changed, ...done } = step(database)
        if (changed === 'nothing') return { ...done, seen: null }
        first.onOwn(changed)
        return { ...done, seen: see(database, noteChange(database, changed)) }
      })
      if (seen !== null) hear(seen)
      return result
    },
    onInvalidation(listener) {
      // Each call is a listener of its own, even if the function is not.
      const own: Listener = (key) => listener(key)
      listeners.add(own)
      if (timer === undefined) {
        void poll()
        timer = setInterval(() => void poll(), INTERVAL_MS).unref()
      }
      return () => {
        listeners.delete(own)
        if (listeners.size === 0) stop()
      }
    },
    stop,
  }
}
