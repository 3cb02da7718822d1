/**
 * Operator access to the table. Work on many rows runs in steps of bounded size, so that requests are served meanwhile. Each call
 * is one step; the caller repeats it until nothing is left.
 */
import type { Revocation } from '../../core/decide/credential.ts'
import type { StoredGrant } from './grants.ts'
import type { ThreadKey } from './thread.ts'

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

/** What the store holds of one thread. */
export interface WholeThread {
  readonly row: ThreadRow | null
  readonly grants: readonly StoredGrant[]
  readonly runners: readonly string[]
}

/** Absent keys do not filter. */
export interface RowFilter {
  readonly scope?: string
  readonly owner?: string
  readonly agentId?: string
  readonly deleted?: 'no' | 'only' | 'too'
}

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

export interface RowStore {
  /** Null where the store has never recorded the thread. */
  thread(key: ThreadKey): Promise<WholeThread | null>
  /** Rows in the order of their keys: scope, then id, byte for byte. */
  threads(filter: RowFilter, after: ThreadKey | null, limit: number): Promise<readonly ThreadRow[]>
  /** @param scope only what is in this scope; undefined for all. Revocations belong to no scope and always count. */
  stats(scope?: string): Promise<StoreStats>
}

export type AssignOutcome =
  | { readonly outcome: 'assigned'; readonly before: string | null }
  | { readonly outcome: 'same' }
  | { readonly outcome: 'changed'; readonly owner: string | null }

export interface AssignmentStore {
  /**
   * Gives a thread an owner, whatever its current owner. Its grants are removed, what was pending on it is settled, and a
   * tombstone becomes live. A thread without a row gets a row.
   * @param expected the required current owner, NOBODY included; null: no row; undefined: any
   */
  assign(key: ThreadKey, to: string, now: number, expected?: string | null): Promise<AssignOutcome>
  /** Removes a thread's owner and grants: it is foreign to every user until it is assigned. False without a row. */
  withhold(key: ThreadKey, now: number): Promise<boolean>
}

/** Selects rows that match all given conditions. Times are milliseconds since the epoch. */
export interface PruneRule {
  readonly scope?: string
  /** Tombstones from before this time, of threads that the upstream has confirmed to be gone. */
  readonly deletedBefore?: number
  readonly unusedSince?: number
}

export interface PruneStore {
  /** Deletes rows: their threads are unknown then, and may be claimed. @returns how many rows this step deleted */
  prune(rule: PruneRule, limit: number): Promise<number>
  prunable(rule: PruneRule): Promise<number>
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

export interface UserStore {
  userData(userId: string): Promise<UserData>
  /**
   * Moves a user's rows, tombstones included, to another user, with received grants and observations. A row that no run has
   * confirmed stays unconfirmed: no operator has looked at this single thread.
   * @param scope only what is in this scope; undefined for all
   * @returns how many rows this step moved; 0 when nothing is left
   */
  transfer(from: string, to: string, limit: number, scope?: string): Promise<number>
  /**
   * Forgets a user. The user's rows stay as tombstones of NOBODY, so that no other user can claim what the upstream still holds.
   * Grants given and received are removed, and so are observations. Threads on which the user was seen, also with others, become
   * tombstones of NOBODY, too. Revocations stay.
   * @returns how many rows this step changed; 0 when nothing is left
   */
  erase(userId: string, now: number, limit: number): Promise<number>
}
