/**
 * Caches who may access each thread, and answers yes only: all refusals take equally long, and a new owner is seen at once.
 * For a reader without access, and a missing, provisional or deleted thread, the caller asks the store each time.
 */
import { rightIn, type Grant, type Reader } from '../core/decide/sharing.ts'
import type { ThreadAccess } from './port/access.ts'
import type { ThreadKey } from './port/thread.ts'

/** A settled live row with all its grants: enough to answer every reader. It never becomes provisional again while it lives. */
export interface Remembered {
  readonly owner: string
  readonly grants: readonly Grant[]
}

export interface AccessCache {
  /** @returns null if the entry does not permit the reader: the caller then asks the store */
  readonly find: (key: ThreadKey, reader: Reader) => ThreadAccess | null
  /** Begins a look-up. The returned function caches its result, unless an entry was dropped meanwhile: it may be outdated. */
  begin(): (key: ThreadKey, remembered: Remembered) => void
  /** Null drops all entries. */
  drop(key: ThreadKey | null): void
}

/** `isFresh`: all changes until a second ago have been dropped. While it is false, the cache answers nothing. */
export function makeAccessCache(size: number, isFresh: () => boolean): AccessCache {
  // In order of last use.
  const entries = new Map<string, Remembered>()
  /** Removes a sixteenth at a time: finding a map's oldest entry passes all entries that were removed before it. */
  const makeRoom = (): void => {
    for (const name of entries.keys()) {
      if (entries.size <= size - Math.floor(size / 16)) return
      entries.delete(name)
    }
  }
  let drops = 0
  return {
    find(key, reader) {
      const name = nameOf(key)
      const entry = entries.get(name)
      if (entry === undefined || !isFresh()) return null
      const granted = entry.grants.length === 0 ? null : rightIn(entry.grants, reader)
      if (entry.owner !== reader.userId && granted === null) return null
      entries.delete(name)
      entries.set(name, entry)
      return { row: { owner: entry.owner, deleted: false, provisional: false, granted }, runners: [] }
    },
    begin() {
      const before = drops
      return (key, remembered) => {
        if (drops !== before) return
        const name = nameOf(key)
        entries.delete(name)
        entries.set(name, remembered)
        if (entries.size > size) makeRoom()
      }
    },
    drop(key) {
      drops += 1
      if (key === null) entries.clear()
      else entries.delete(nameOf(key))
    },
  }
}

/** The length of the scope comes first, so that two keys never have the same name. */
export function nameOf({ scope, threadId }: ThreadKey): string {
  return `${scope.length}:${scope}${threadId}`
}
