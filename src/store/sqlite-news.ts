/** News of changed standings over all processes on one SQLite file: each counts its changes in the file, and the others look. */
import type { StandingNews, ThreadKey } from './port.ts'
import { sql } from './sqlite-connection.ts'
import type { SqliteFile, Step } from './sqlite-file.ts'

/** What a step has changed of standings: of one thread, of many, or nothing. */
export type Changed = ThreadKey | 'many' | 'nothing'

/** The news, and the steps that make them. */
export interface SqliteNews extends StandingNews {
  /** Does a step that reads and writes, and tells of what it changed. */
  write<T>(step: Step<{ readonly result: T; readonly changed: Changed }>): Promise<T>
  stop(): void
}

type Listener = (key: ThreadKey | null) => void

/** How many changes a file counts, and which file that is. */
interface Count {
  readonly version: number
  readonly identity: string | null
}

const INTERVAL_MS = 250

const VERSION = sql<{ value: number }>("SELECT value FROM versions WHERE name = 'standing'")
const NEXT = sql<{ value: number }>("UPDATE versions SET value = value + 1 WHERE name = 'standing' RETURNING value")

/** Who has to know before anybody else can ask. */
export interface Forerunner {
  /** This process changes a standing. */
  onOwn(): void
  /** The listeners are about to be told: whatever they ask about standings has to be of now. */
  onNews(): void
}

/** Makes the news of an open file. */
export function newsOf(file: SqliteFile, first: Forerunner): SqliteNews {
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
  /** Asked within a step: after it another file may be in use. */
  const countIn = (row: { readonly value: number } | undefined): Count => {
    if (row === undefined) throw new Error('the version of the standings vanished')
    return { version: row.value, identity: file.identity }
  }
  /** Takes in how many changes the file counts, of which one is known. */
  const hear = (count: Count, changed: Changed): void => {
    if (listeners.size === 0) return
    const before = known?.identity === count.identity ? known.version : null
    if (before !== null && count.version <= before) return
    known = count
    lost = false
    tell(before === count.version - 1 && typeof changed === 'object' ? changed : null)
  }
  const look = async (): Promise<void> => {
    if (looking) return
    looking = true
    try {
      const count = await file.read((database) => countIn(database.get(VERSION)))
      // The first look only finds out where the count is.
      if (known === null && !lost) known = count
      else hear(count, 'many')
    } catch {
      // Whoever needs the store is told by its failure; the news come when it answers again.
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
      const { result, changed, count } = await file.write((database) => {
        const done = step(database)
        if (done.changed !== 'nothing') first.onOwn()
        // The last statement: in databases with locks on rows this one is held by all.
        return { ...done, count: done.changed === 'nothing' ? null : countIn(database.get(NEXT)) }
      })
      if (count !== null) hear(count, changed)
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
