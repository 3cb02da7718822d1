/** What the table knows about listed threads, for a comparison that changes nothing. */

export interface KnownThread {
  readonly threadId: string
  /** True for a row, also that of a deleted thread or of one whose owner was revoked: no other user can claim it. */
  readonly hasRow: boolean
  /** How many users ran the thread under `enforcement: observe`. */
  readonly runners: number
}

export interface ThreadLookup {
  /** One result for each id. */
  known(scope: string, threadIds: readonly string[]): Promise<readonly KnownThread[]>
  close(): Promise<void>
}

/** Of a store without tables. */
export const EMPTY_LOOKUP: ThreadLookup = {
  known: (_scope, threadIds) => Promise.resolve(threadIds.map((threadId) => ({ threadId, hasRow: false, runners: 0 }))),
  close: () => Promise.resolve(),
}
