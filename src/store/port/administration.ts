/** Operator access to the table. The caller repeats a bounded step until nothing is left, so that requests run in between. */
import type { Revocation } from '../../core/decide/credential.ts'
import type { StoredGrant } from './grants.ts'
import type { ThreadKey } from './thread.ts'

/** Times are milliseconds since the epoch. */
export interface ThreadRow extends ThreadKey {
  readonly owner: string
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly deletedAt: number | null
  readonly provisional: boolean
}

export interface WholeThread {
  readonly row: ThreadRow | null
  readonly grants: readonly StoredGrant[]
  readonly runners: readonly string[]
}

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
  /** `observed` counts threads seen under `observe` without a row, `conflicts` those of them with more than one runner. */
  readonly observed: number
  readonly conflicts: number
  readonly revocations: number
}

export interface UnconfirmedClaims {
  /** At most MOST_UNCONFIRMED. */
  readonly count: number
  /** When the oldest of them was made, in milliseconds since the epoch; null without any. */
  readonly oldest: number | null
}

/** The count of unconfirmed claims ends here, so that it takes no longer when many runs fail. */
export const MOST_UNCONFIRMED = 10_000

export interface RowStore {
  thread(key: ThreadKey): Promise<WholeThread | null>
  /** Ordered by scope, then id, byte for byte. */
  threads(filter: RowFilter, after: ThreadKey | null, limit: number): Promise<readonly ThreadRow[]>
  /** Without a scope: all. Revocations belong to no scope and are always counted. */
  stats(scope?: string): Promise<StoreStats>
  /** Of all scopes. Cheap at any size of the table. */
  unconfirmed(): Promise<UnconfirmedClaims>
}

export type AssignOutcome =
  | { readonly outcome: 'assigned'; readonly before: string | null }
  | { readonly outcome: 'same' }
  | { readonly outcome: 'changed'; readonly owner: string | null }

export interface AssignmentStore {
  /** Replaces any owner, removes grants, settles runs, revives a tombstone, adds a missing row. `expected`: null means no row. */
  assign(key: ThreadKey, to: string, now: number, expected?: string | null): Promise<AssignOutcome>
  /** Removes the owner and grants: the thread is foreign to every user until it is assigned. False without a row. */
  withhold(key: ThreadKey, now: number): Promise<boolean>
}

/** A row must match all given conditions. Times are milliseconds since the epoch. */
export interface PruneRule {
  readonly scope?: string
  /** Only tombstones whose deletion the upstream has confirmed. */
  readonly deletedBefore?: number
  readonly unusedSince?: number
}

export interface PruneStore {
  /** Deletes up to `limit` rows and returns how many. Their threads become unknown and can be claimed. */
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
  /** Moves rows (tombstones too), received grants and observations; 0 when done. Unconfirmed rows stay unconfirmed. */
  transfer(from: string, to: string, limit: number, scope?: string): Promise<number>
  /**
   * Turns the user's rows, and threads on which the user was seen, into tombstones of NOBODY: the upstream may still hold them.
   * Removes grants given and received, and observations. Revocations stay. 0 when done.
   */
  erase(userId: string, now: number, limit: number): Promise<number>
}

export type ImportedThread = Omit<ThreadRow, 'deletedAt' | 'provisional'>

/** `conflict`: another owner, a tombstone, or another user was seen under `observe`. The row is unchanged then. */
export type ImportOutcome =
  | { readonly outcome: 'added' | 'same' }
  | { readonly outcome: 'conflict'; readonly with: 'owner' | 'observed' | 'deleted'; readonly users: readonly string[] }

export interface ImportOptions {
  readonly dryRun: boolean
  /** True to import a row although other users were seen on its thread under `observe`. */
  readonly settleConflicts: boolean
}

export interface ImportStore {
  /** Handles the rows independently, in one atomic step. Never replaces an owner. */
  import(rows: readonly ImportedThread[], options: ImportOptions): Promise<readonly ImportOutcome[]>
}
