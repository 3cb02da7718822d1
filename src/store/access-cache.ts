/**
 * Caches which users may access each thread, for a store that other processes also change. The cache answers yes only. For a
 * reader without access, and for a missing, provisional or deleted thread, the store is asked each time. So all refusals take
 * equally long, and a new owner is seen at once.
 */
import { rightIn, type Grant, type Reader } from '../core/decide/sharing.ts'
import type { ThreadAccess } from './port/access.ts'
import type { ThreadKey } from './port/thread.ts'

/** A settled live row with all its grants, enough to answer every reader. While it lives, it never becomes provisional again. */
export interface Remembered {
  readonly owner: string
  readonly grants: readonly Grant[]
}

export interface AccessCache {
  /** @returns null if the entry does not let the reader use the thread: the caller then asks the store */
  find(key: ThreadKey, reader: Reader): ThreadAccess | null
  /**
   * Begins a look-up. The returned function stores its result, unless an entry was dropped meanwhile: the look-up may have read
   * the state before the change.
   */
  begin(): (key: ThreadKey, remembered: Remembered) => void
  /** Drops the entry of a thread; null drops all entries. */
  drop(key: ThreadKey | null): void
}

/**
 * @param size most threads in the cache; the least recently used leave first
 * @param isFresh true if all changes until a second ago have been dropped; the cache answers nothing while it is false
 */
export function makeAccessCache(size: number, isFresh: () => boolean): AccessCache {
  // Entries are in order of last use.
  const entries = new Map<string, Remembered>()
  /** Removes a sixteenth at a time: finding the oldest entry of a map passes all entries that were removed before it. */
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
      const granted = rightIn(entry.grants, reader)
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
