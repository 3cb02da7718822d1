/** Who may access a thread: for decisions, and for open answers whose access may end. */
import type { Reader, Right } from '../../core/decide/sharing.ts'
import type { ThreadKey } from './thread.ts'

export interface RowFacts {
  /** The user id, or NOBODY. */
  readonly owner: string
  /** True for a tombstone, until a run of its owner is confirmed. */
  readonly deleted: boolean
  /** True while no run of its owner is confirmed. */
  readonly provisional: boolean
  /** The widest right that was granted to the reader, as a user or through a group. */
  readonly granted: Right | null
}

/**
 * What the store knows of a thread: its row, and who ran it under `observe`, earliest first. The runners may be missing where the
 * row already lets the reader use the thread.
 */
export interface ThreadAccess {
  readonly row: RowFacts | null
  readonly runners: readonly string[]
}

export const UNHEARD_OF: ThreadAccess = { row: null, runners: [] }

export interface AccessStore {
  /**
   * Takes as long for a thread without a row, as far as possible: a refusal's time must reveal nothing. Returns at once if
   * cached.
   */
  accessTo(key: ThreadKey, reader: Reader): ThreadAccess | Promise<ThreadAccess>
  /** As `accessTo`, for several threads in one query. Threads that the store has never recorded are not in the map. */
  accessToSeveral(scope: string, threadIds: readonly string[], reader: Reader): Promise<ReadonlyMap<string, ThreadAccess>>
  /**
   * The ids of threads that the reader owns, in any state, or that were granted to the reader. Reads only the reader's own
   * entries, whatever else the scope holds.
   * @param most how many ids it may return
   * @returns null for more
   */
  naming(scope: string, reader: Reader, most: number): Promise<ReadonlySet<string> | null>
}

/**
 * Reports changes that give or remove access: assignments, transfers, grants and their ends, deletions. It does not report
 * claims: no other user knew anything of the thread.
 */
export interface AccessInvalidations {
  /**
   * @param listener gets each thread whose access has changed, within a second over all processes. Null: any thread may have
   *   changed, because invalidations were lost or too many
   * @returns a function that ends it
   */
  onInvalidation(listener: (key: ThreadKey | null) => void): () => void
}
