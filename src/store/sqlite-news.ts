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

const INTERVAL_MS = 250

const VERSION = sql<{ value: number }>("SELECT value FROM versions WHERE name = 'standing'")
const NEXT = sql<{ value: number }>("UPDATE versions SET value = value + 1 WHERE name = 'standing' RETURNING value")

/** Makes the news of an open file. */
export function newsOf(file: SqliteFile): SqliteNews {
  const listeners = new Set<Listener>()
  let timer: NodeJS.Timeout | undefined
  /** What the listeners were told of, in the file that it is counted in; null while that is not known. */
  let known: { readonly version: number; readonly identity: string | null } | null = null
  /** True if the version could not be read since it was known: what was before is not known, either. */
  let lost = false
  let looking = false

  const tell = (key: ThreadKey | null): void => {
    for (const listener of [...listeners]) listener(key)
  }
  /** Takes in that the file counts so far, one change of which is known. */
  const hear = (version: number, changed: Changed): void => {
    if (listeners.size === 0) return
    const { identity } = file
    const same = known !== null && known.identity === identity
    if (same && known !== null && version <= known.version) return
    const isNext = same && known?.version === version - 1
    known = { version, identity }
    lost = false
    tell(isNext && typeof changed === 'object' ? changed : null)
  }
  const look = async (): Promise<void> => {
    if (looking) return
    looking = true
    try {
      const version = await file.read((database) => versionIn(database.get(VERSION)))
      // The first look only finds out where the count is.
      if (known === null && !lost) known = { version, identity: file.identity }
      else hear(version, 'many')
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
      const { result, changed, version } = await file.write((database) => {
        const done = step(database)
        // The last statement: in databases with locks on rows this one is held by all.
        return { ...done, version: done.changed === 'nothing' ? null : versionIn(database.get(NEXT)) }
      })
      if (version !== null) hear(version, changed)
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

function versionIn(row: { readonly value: number } | undefined): number {
  if (row === undefined) throw new Error('the version of the standings vanished')
  return row.value
}
