/**
 * The ports of the store: what the gateway and the command line ask of it. A failing store throws StoreUnavailable, and the
 * caller gets 503, never access. Ids compare byte for byte in every store. Every method is one atomic step over all processes
 * that share the store, unless it says otherwise.
 */
import type { Credential, Revocation } from '../core/decide/credential.ts'
import type { Grant, Grantee, Reader, Right } from '../core/decide/sharing.ts'

export interface ThreadKey {
  /** The key of the thread's upstream, or `''` for `upstream`. */
  readonly scope: string
  readonly threadId: string
}

/** The owner of a row whose owner was removed. It is no user's id: the thread is foreign to every user until it is assigned. */
export const NOBODY = ''

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
 * Milliseconds after which a run counts as over. A deleted thread that was last used before that may be forgotten, whichever
 * process sent its runs.
 */
export const LONGEST_RUN = 24 * 3_600_000

/**
 * What the store knows of a thread: its row, and who ran it under `observe`, earliest first. The runners may be missing where the
 * row already lets the reader use the thread.
 */
export interface ThreadAccess {
  readonly row: RowFacts | null
  readonly runners: readonly string[]
}

export const UNHEARD_OF: ThreadAccess = { row: null, runners: [] }

/**
 * Identifies the life of an unconfirmed thread that a run belongs to: another run may revive a deleted thread before this one
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

/** Times are milliseconds since the epoch. */
export interface ListedThread {
  readonly threadId: string
  readonly owner: string
  readonly provisional: boolean
  readonly granted: Right | null
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

/** Selects a page of a list: threads last used first, those used at the same time by id. */
export interface ListWindow {
  readonly agentId: string | null
  readonly includeArchived: boolean
  /** The last thread of the previous page, or null for the first page. */
  readonly after: { readonly updatedAt: number; readonly threadId: string } | null
  readonly limit: number
}

export interface OwnershipStore {
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
   * @param gone as for `bury`, as far as this process knows. The tombstone is not marked as gone in two cases: another process
   *   may have sent a run that still executes, or a possible write was sent since the deletion began. The thread may then be
   *   written to after its deletion
   */
  endDeletion(key: ThreadKey, userId: string, deletion: string, now: number, gone: boolean): Promise<boolean>
  /**
   * Leaves a tombstone without grants: no other user can ever claim the thread.
   * @param gone true if the upstream has confirmed that it holds nothing of the thread any more: only such a tombstone may ever
   *   be deleted by age
   */
  bury(key: ThreadKey, userId: string, now: number, gone: boolean): Promise<void>
  /** Live rows that the reader owns or that were granted to the reader; with `everybody`, those of all users. One query. */
  listed(scope: string, reader: Reader | 'everybody', window: ListWindow): Promise<readonly ListedThread[]>
  isEmpty(scope: string): Promise<boolean>
  /** A secret of 32 bytes that all processes on this store share, made at first use. */
  secret(): Promise<Uint8Array>
  /**
   * Checks whether the store can be read and written now.
   * @returns null, or the problem in words for an operator, without anything secret
   */
  fault(): Promise<string | null>
  close(): Promise<void>
}

/** Records which user used which thread under `enforcement: observe`. It makes no user an owner. */
export interface ObservationStore {
  /**
   * Records that the upstream served a user on a thread; notes the time of use at most once a minute. Records nothing for a
   * thread that no user ran and that has no row: ids are easily made up.
   * @param ran true for a run, which a thread begins with
   * @param agentId `''` where the request named none
   * @param now milliseconds since the epoch
   */
  observe(key: ThreadKey, userId: string, agentId: string, ran: boolean, now: number): Promise<void>
  unowned(): Promise<number>
  /**
   * Threads that were run under `observe` and have no row, in the order of their keys.
   * @param after the last thread of the previous page, or null for the first page
   */
  observed(after: ThreadKey | null, limit: number): Promise<readonly ObservedThread[]>
}

export interface ObservedThread extends ThreadKey {
  /** The users who ran it, earliest first; more than one are a conflict. */
  readonly runners: readonly string[]
  readonly agentId: string
  /** Milliseconds since the epoch. */
  readonly firstUsedAt: number
  readonly lastUsedAt: number
}

export interface StoredGrant extends Grant {
  /** The granting user's id, or `operator`. */
  readonly grantedBy: string
  /** Milliseconds since the epoch. */
  readonly grantedAt: number
}

/** `not-owner`: the thread is not a live thread of the named owner. */
export type GrantOutcome = 'done' | 'unchanged' | 'not-owner' | 'too-many'

/** Only live rows with an owner have grants. */
export interface GrantStore {
  /**
   * @param owner the required owner; null for any
   * @returns the grants, oldest first; null if there is no such thread
   */
  grants(key: ThreadKey, owner: string | null): Promise<readonly StoredGrant[] | null>
  /**
   * Replaces what the grantee had.
   * @param owner the required owner; null for any
   */
  grant(key: ThreadKey, owner: string | null, grant: StoredGrant): Promise<GrantOutcome>
  /** `unchanged` if there was no such grant. */
  ungrant(key: ThreadKey, owner: string | null, grantee: Grantee): Promise<GrantOutcome>
  /** In the order of the threads. */
  grantedTo(grantee: Grantee, after: ThreadKey | null, limit: number): Promise<readonly (ThreadKey & StoredGrant)[]>
}

/** A whole row of the ownership table. Times are milliseconds since the epoch. */
export interface ThreadRow extends ThreadKey {
  readonly owner: string
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  /** Null for a live row. */
  readonly deletedAt: number | null
  readonly provisional: boolean
}

export type ImportedThread = Omit<ThreadRow, 'deletedAt' | 'provisional'>

/**
 * The result for one imported row. `same`: the row existed with the same owner. `conflict`: the row has another owner, another
 * user was seen on it under `observe`, or it is deleted; then nothing is changed.
 */
export type ImportOutcome =
  | { readonly outcome: 'added' | 'same' }
  | { readonly outcome: 'conflict'; readonly with: 'owner' | 'observed' | 'deleted'; readonly users: readonly string[] }

/** Absent keys do not filter. */
export interface RowFilter {
  readonly scope?: string
  readonly owner?: string
  readonly agentId?: string
  readonly deleted?: 'no' | 'only' | 'too'
}

/** Selects rows that match all given conditions. Times are milliseconds since the epoch. */
export interface PruneRule {
  readonly scope?: string
  /** Tombstones from before this time, of threads that the upstream has confirmed to be gone. */
  readonly deletedBefore?: number
  readonly unusedSince?: number
}

export type AssignOutcome =
  | { readonly outcome: 'assigned'; readonly before: string | null }
  | { readonly outcome: 'same' }
  | { readonly outcome: 'changed'; readonly owner: string | null }

export interface StoreStats {
  readonly threads: number
  readonly deleted: number
  readonly provisional: number
  readonly withheld: number
  readonly owners: number
  readonly grants: number
  /** Threads seen under `observe` without a row; `conflicts` counts those with more than one runner. */
  readonly observed: number
  readonly conflicts: number
  readonly revocations: number
}

export interface UserData {
  readonly threads: readonly ThreadRow[]
  readonly granted: readonly (ThreadKey & StoredGrant)[]
  readonly received: readonly (ThreadKey & StoredGrant)[]
  readonly observed: readonly (ThreadKey & {
    readonly agentId: string
    readonly firstUsedAt: number
    readonly lastUsedAt: number
  })[]
  readonly revocations: readonly Revocation[]
}

/**
 * Operator access to the table. Work on many rows runs in steps of bounded size, so that requests are served meanwhile. Each call
 * is one step; the caller repeats it until nothing is left.
 */
export interface ThreadAdministration {
  /** Null where the store has never recorded the thread. */
  thread(key: ThreadKey): Promise<{
    readonly row: ThreadRow | null
    readonly grants: readonly StoredGrant[]
    readonly runners: readonly string[]
  } | null>
  /** Rows in the order of their keys: scope, then id, byte for byte. */
  threads(filter: RowFilter, after: ThreadKey | null, limit: number): Promise<readonly ThreadRow[]>
  /**
   * Imports rows independently of each other, in one step; an existing owner is never replaced.
   * @param dryRun true to report the outcomes and change nothing
   * @param settleConflicts true to import a row although others were seen on its thread under `observe`: the operator has decided
   */
  import(
    rows: readonly ImportedThread[],
    options: { readonly dryRun: boolean; readonly settleConflicts: boolean },
  ): Promise<readonly ImportOutcome[]>
  /**
   * Gives a thread an owner, whatever its current owner. Its grants are removed, what was pending on it is settled, and a
   * tombstone becomes live. A thread without a row gets a row.
   * @param expected the required current owner, NOBODY included; null: no row; undefined: any
   */
  assign(key: ThreadKey, to: string, now: number, expected?: string | null): Promise<AssignOutcome>
  /**
   * Moves a user's rows, tombstones included, to another user, with received grants and observations. A row that no run has
   * confirmed stays unconfirmed: no operator has looked at this single thread.
   * @param scope only what is in this scope; undefined for all
   * @returns how many rows this step moved; 0 when nothing is left
   */
  transfer(from: string, to: string, limit: number, scope?: string): Promise<number>
  /** Removes a thread's owner and grants: it is foreign to every user until it is assigned. False without a row. */
  withhold(key: ThreadKey, now: number): Promise<boolean>
  /** Deletes rows: their threads are unknown then, and may be claimed. @returns how many rows this step deleted */
  prune(rule: PruneRule, limit: number): Promise<number>
  prunable(rule: PruneRule): Promise<number>
  /** @param scope only what is in this scope; undefined for all. Revocations belong to no scope and always count. */
  stats(scope?: string): Promise<StoreStats>
  userData(userId: string): Promise<UserData>
  /**
   * Forgets a user. The user's rows stay as tombstones of NOBODY, so that no other user can claim what the upstream still holds.
   * Grants given and received are removed, and so are observations. Threads on which the user was seen, also with others, become
   * tombstones of NOBODY, too. Revocations stay.
   * @returns how many rows this step changed; 0 when nothing is left
   */
  erase(userId: string, now: number, limit: number): Promise<number>
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

export type Store = OwnershipStore & RevocationStore & ObservationStore & GrantStore & ThreadAdministration & AccessInvalidations

export type Revoked = { readonly tokenId: string } | { readonly userId: string }

export interface RevocationStore {
  /** Adds a revocation. Each token and each user has at most one: the wider of two. */
  revoke(revocation: Revocation): Promise<void>
  lift(what: Revoked): Promise<boolean>
  revocations(): Promise<readonly Revocation[]>
  /** A number that changes after every `revoke`, and every `lift` that removed one, of any process. It costs next to nothing. */
  revocationsVersion(): Promise<number>
}

export interface RevocationList {
  current(): readonly Revocation[]
  /** The same check as in src/core/decide/credential.ts, at a cost that does not grow with the list. */
  readonly isRevoked: (userId: string, credential: Credential) => boolean
  /** Rejects with StoreUnavailable if they cannot be read; the last known ones then stay active. */
  reload(): Promise<void>
  stop(): void
}

/** The store did not answer: nothing is known, so nothing is allowed. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
