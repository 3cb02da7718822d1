/** Access invalidations between all processes on one SQLite file: each counts its changes in the file, and the others poll. */
import type { AccessInvalidations, ThreadKey } from '../port.ts'
import { changesBetween, countChanges, noteChange, SCHEMA, type Changed, type NumberedChange } from './changes.ts'
import type { Connection } from './connection.ts'
import type { SqliteFile, Step } from './file.ts'
import { nameOf } from '../access-cache.ts'

export type { Changed } from './changes.ts'

/** The invalidations, and the steps that send them. */
export interface SqliteInvalidations extends AccessInvalidations {
  /** Does a step that reads and writes, and tells of what it changed. */
  write<T>(step: Step<{ readonly result: T; readonly changed: Changed }>): Promise<T>
  stop(): void
}

type Listener = (key: ThreadKey | null) => void

/** How many changes a file counts, and which file that is: another one, or a backup that was put back, has another past. */
interface Count {
  readonly version: number
  readonly identity: string | null
  readonly schema: number | undefined
}

/** A count, and what has changed since the one that was known; null: any thread may have. */
interface Seen {
  readonly count: Count
  readonly changes: readonly NumberedChange[] | null
}

const INTERVAL_MS = 250

/** Who has to know before anybody else can ask. */
export interface Forerunner {
  /** This process changes access. */
  onOwn(changed: ThreadKey | 'many'): void
  /** The listeners are about to be told: access that they look up has to be current. */
  onNews(): void
}

/** Creates the invalidations of an open file. */
export function invalidationsOf(file: SqliteFile, first: Forerunner): SqliteInvalidations {
  const listeners = new Set<Listener>()
  let timer: NodeJS.Timeout | undefined
  /** What the listeners were told of, in the file that it is counted in; null while that is not known. */
  let known: Count | null = null
  /** True if it could not be read at the beginning: what has changed since then is not known, either. */
  let lost = false
  let looking = false

  const tell = (key: ThreadKey | null): void => {
    first.onNews()
    for (const listener of [...listeners]) listener(key)
  }
  /** What was told last, if it was counted in this file. */
  const toldIn = ({ identity, schema }: Count): number | null =>
    known?.identity === identity && known.schema === schema ? known.version : null
  /** Asked within a step: after it another file may be in use. */
  const see = (database: Connection, version: number): Seen => {
    const count = { version, identity: file.identity, schema: database.value(SCHEMA) }
    const before = toldIn(count)
    return { count, changes: before === null ? null : changesBetween(database, before, version) }
  }
  const hear = ({ count, changes }: Seen): void => {
    if (listeners.size === 0) return
    const before = toldIn(count)
    if (before !== null && count.version <= before) return
    known = count
    lost = false
    const keys = new Map<string, ThreadKey | null>()
    if (before === null || changes === null) keys.set('', null)
    // Some of them may have been told since they were looked up, and one thread may have changed again and again.
    else for (const { number, key } of changes) if (number > before) keys.set(nameOf(key), key)
    keys.forEach(tell)
  }
  const look = async (): Promise<void> => {
    if (looking) return
    looking = true
    try {
      const seen = await file.read((database) => {
        const now = see(database, countChanges(database))
        // The first look only finds out where the count is: at once, because a change of one's own may follow.
        if (known === null && !lost) known = now.count
        return now
      })
      hear(seen)
    } catch {
      // Requests that need the store fail. Invalidations continue when it answers again.
      lost ||= known === null
    }
    looking = false
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
    onStanding(listener) {
      // Each call is a listener of its own, even if the function is not.
      const own: Listener = (key) => listener(key)
      listeners.add(own)
      if (timer === undefined) {
        void look()
        timer = setInterval(() => void look(), INTERVAL_MS).unref()
      }
      return () => {
        listeners.delete(own)
        if (listeners.size === 0) stop()
      }
    },
    stop,
  }
}
