/**
 * Caches who may access each thread, in front of a store that other processes change as well. It answers yes only: whom a
 * thread is not granted to, and whoever asks for one that is missing, provisional or deleted, has the store asked each time.
 * So a refusal takes as long for the one as for the other, and a new owner is seen at once.
 */
import { rightIn, type Grant, type Reader } from '../core/decide/sharing.ts'
import type { ThreadAccess, ThreadKey } from './port.ts'

/** Of a settled live row, which is never provisional again while it lives, with all its grants: what every reader can be answered by. */
export interface Remembered {
  readonly owner: string
  readonly grants: readonly Grant[]
}

export interface AccessCache {
  /** What is known of a thread, if that lets the reader use it; null: the store has to be asked. */
  find(key: ThreadKey, reader: Reader): ThreadAccess | null
  /**
   * Begins a look-up. What comes of it is put in by the function returned; not if anything was dropped meanwhile, because it
   * may have been read before the change.
   */
  begin(): (key: ThreadKey, remembered: Remembered) => void
  /** Forgets a thread, or with null all of them. */
  drop(key: ThreadKey | null): void
}

/**
 * Makes a cache.
 * @param size how many threads it remembers at most: those that were used last
 * @param isFresh whether all changes until a second ago have been dropped; it answers nothing while they have not
 */
export function makeAccessCache(size: number, isFresh: () => boolean): AccessCache {
  // Entries are in the order of their last use.
  const entries = new Map<string, Remembered>()
  /** A sixteenth at a time: whoever looks for the oldest entry of a map has to pass all that was taken out before it. */
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

/** A name for a key, with the length of the first part, so that no two keys have one name. */
export function nameOf({ scope, threadId }: ThreadKey): string {
  return `${scope.length}:${scope}${threadId}`
}
