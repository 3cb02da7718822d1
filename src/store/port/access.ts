/** Who may access a thread: for decisions, and for open streams whose access may end. */
import type { Reader, Right } from '../../core/decide/sharing.ts'
import type { ThreadKey } from './thread.ts'

export interface RowFacts {
  /** The user id, or NOBODY. */
  readonly owner: string
  /** True for a tombstone, until a run of its owner is confirmed. */
  readonly deleted: boolean
  /** True while no run of its owner is confirmed. */
  readonly provisional: boolean
  /** The widest right granted to the reader, as a user or through a group. */
  readonly granted: Right | null
}

/** `runners` lists who ran the thread under `observe`, earliest first; it may be empty if the row already permits the reader. */
export interface ThreadAccess {
  readonly row: RowFacts | null
  readonly runners: readonly string[]
}

export interface AccessStore {
  /** Must take equally long for a thread without a row, so that a refusal's time reveals nothing. Synchronous if cached. */
  accessTo(key: ThreadKey, reader: Reader): ThreadAccess | Promise<ThreadAccess>
  /** One query. The map has no entry for a thread that the store has never recorded. */
  accessToSeveral(scope: string, threadIds: readonly string[], reader: Reader): Promise<ReadonlyMap<string, ThreadAccess>>
  /**
   * The threads that the reader owns, in any state, or was granted, without runners. Null if there are more than `most`; a
   * thread that was granted several times may count several times. Many grants are read in steps: other changes may come between.
   */
  accessOfReader(scope: string, reader: Reader, most: number): Promise<ReadonlyMap<string, ThreadAccess> | null>
}

/** Reports access changes except claims: no other user knew of a claimed thread. */
export interface AccessInvalidations {
  /** Calls the listener within a second of any process's change; null: any thread may have changed. Returns the unsubscriber. */
  onInvalidation(listener: (key: ThreadKey | null) => void): () => void
}
