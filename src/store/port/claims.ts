/** Claims of threads by runs, and changes by their owners. */
import type { ThreadKey } from './thread.ts'

/**
 * Milliseconds after which a run counts as over. A deleted thread that was last used before that may be forgotten, whichever
 * process sent its runs.
 */
export const LONGEST_RUN = 24 * 3_600_000

/**
 * Identifies the incarnation of an unconfirmed thread that a run belongs to: another run may revive a deleted thread before this one
 * ends. Null for a run on a settled thread.
 */
export type Registration = number | null

export interface Claim {
  /** The owner that the thread has or is to get; for a guest's run, the thread's owner. */
  readonly userId: string
  readonly agentId: string
  /**
   * True for a run by a user who is not the owner, permitted by a grant or the policy. It registers only on a live row of that
   * owner, and never begins or revives a thread.
   */
  readonly guest: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

export type ClaimResult =
  /** `new` if this claim made the user the owner, `own` if the user was the owner before. */
  | { readonly outcome: 'new' | 'own'; readonly registration: Registration }
  /** The thread is not the user's, or does not exist for a guest: its access has to be read again. */
  | { readonly outcome: 'foreign' }

export type RunOutcome =
  /** The upstream answered the owner's run with 2xx: the row is settled. */
  | 'confirmed'
  /**
   * The run may have started, or was not the owner's. The row stays, whatever happens to its other runs, and is not confirmed by
   * this. Otherwise a caller could confirm it by not waiting for the refusal. A tombstone lives again: it was confirmed before.
   */
  | 'stays'
  /** The run certainly did not start. The row is removed with the last such run, unless a run was confirmed. */
  | 'not-started'

export interface ClaimStore {
  /**
   * Registers a run: claims an unowned thread, revives one that the user deleted. Notes the time of use at most once a minute.
   */
  claim(key: ThreadKey, claim: Claim): Promise<ClaimResult>
  /**
   * Records a request before it is sent that may make the upstream write to a thread but claims nothing. Examples: a suggestion,
   * an annotation, a run under `observe`. The thread's tombstone, also that of a deletion under way, no longer says that the
   * upstream holds nothing. Notes the time of use at most once an hour. Does nothing without a row.
   * @param now milliseconds since the epoch
   */
  noteWrite(key: ThreadKey, now: number): Promise<void>
  /** @returns true if that released the thread */
  settle(key: ThreadKey, userId: string, registration: number, outcome: RunOutcome): Promise<boolean>
}

/**
 * What is known of a deleted thread at its upstream. `deleted`: the upstream has confirmed that it holds nothing of the thread any
 * more. Only such a tombstone may ever be deleted by age.
 */
export type AtUpstream = 'deleted' | 'unknown'

export interface OwnerChanges {
  /** @returns false if this owner has no such live thread */
  rename(key: ThreadKey, userId: string, name: string | null): Promise<boolean>
  /** @returns false if this owner has no such live thread */
  archive(key: ThreadKey, userId: string, archived: boolean): Promise<boolean>
  /**
   * Records that a deletion of this owner's live thread is about to be sent upstream, whose answer may come late.
   * @returns what `endDeletion` takes, the same for deletions between which no run was claimed; null without such a row
   */
  beginDeletion(key: ThreadKey, userId: string): Promise<string | null>
  /**
   * Leaves a tombstone, as `bury` does, if no run was claimed and the owner did not change since the deletion began.
   * @param upstream as far as this process knows. `deleted` counts as `unknown` in two cases: another process may have sent a run
   *   that still executes, or a possible write was sent since the deletion began. The thread may then be written to after its
   *   deletion
   */
  endDeletion(key: ThreadKey, userId: string, deletion: string, now: number, upstream: AtUpstream): Promise<boolean>
  /** Leaves a tombstone without grants: no other user can ever claim the thread. */
  bury(key: ThreadKey, userId: string, now: number, upstream: AtUpstream): Promise<void>
}
