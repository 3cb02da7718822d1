/** Claims of threads by runs, and changes by their owners. Times are milliseconds since the epoch. */
import type { ThreadKey } from './thread.ts'

/** Milliseconds after which a run counts as over, so that its deleted thread may be forgotten. */
export const LONGEST_RUN = 24 * 3_600_000

/** The thread's incarnation when the run registered: a later run may revive the thread. Null for a settled thread. */
export type Registration = number | null

export interface Claim {
  /** For a guest's run, the thread's owner. */
  readonly userId: string
  readonly agentId: string
  /** A run that a grant or the policy permits: it registers only on the owner's live row, never begins or revives a thread. */
  readonly guest: boolean
  readonly now: number
}

export type ClaimResult =
  | { readonly outcome: 'new' | 'own'; readonly registration: Registration }
  /** Not the user's thread, or missing for a guest: the caller must read the access again. */
  | { readonly outcome: 'foreign' }

export type RunOutcome =
  /** The upstream answered the owner's run with 2xx. */
  | 'confirmed'
  /** May have started, or is a guest's: revives a tombstone but confirms no live row, or an early disconnect would confirm it. */
  | 'stays'
  /** Certainly did not start. The row is removed with the last such run, unless a run was confirmed. */
  | 'not-started'

export interface ClaimStore {
  /** Claims an unowned thread, or revives one that the user deleted. Notes the time of use at most once a minute. */
  claim(key: ThreadKey, claim: Claim): Promise<ClaimResult>
  /**
   * Call before sending a request that may write to a thread without claiming it (suggestion, annotation, run under `observe`).
   * A tombstone then no longer says that the upstream is empty. Notes the use at most once an hour; does nothing without a row.
   */
  noteWrite(key: ThreadKey, now: number): Promise<void>
  /** Returns true if that released the thread. */
  settle(key: ThreadKey, userId: string, registration: number, outcome: RunOutcome): Promise<boolean>
}

/** `deleted`: the upstream confirmed that it holds nothing of the thread. Only such a tombstone may be deleted by age. */
export type AtUpstream = 'deleted' | 'unknown'

export interface OwnerChanges {
  /** This and `archive` return false if the owner has no such live thread. */
  rename(key: ThreadKey, userId: string, name: string | null): Promise<boolean>
  archive(key: ThreadKey, userId: string, change: { readonly archived: boolean }): Promise<boolean>
  /** Call before sending the deletion: its answer may come late. Returns the token for `endDeletion`; null without a live row. */
  beginDeletion(key: ThreadKey, userId: string): Promise<string | null>
  /**
   * Buries the thread unless a run was claimed or the owner changed since `beginDeletion`. `deleted` counts as `unknown` if
   * another process may have sent a run, or a possible write was sent since then: it may arrive after the deletion.
   */
  endDeletion(key: ThreadKey, userId: string, deletion: string, now: number, upstream: AtUpstream): Promise<boolean>
  /** Leaves a tombstone without grants: no other user can ever claim the thread. */
  bury(key: ThreadKey, userId: string, now: number, upstream: AtUpstream): Promise<void>
}
