/**
 * The ports of the store: what the gateway and the command line ask of it. A store that fails throws StoreUnavailable, and the
 * answer to the caller is 503, never yes. Ids compare byte for byte in every store. Every method is one atomic step, over all
 * processes that share the store, unless it says otherwise.
 */
import type { Credential, Revocation } from '../core/decide/credential.ts'
import type { Grant, Grantee, Reader, Right } from '../core/decide/sharing.ts'

export interface ThreadKey {
  /** The upstream that the thread lives in: its key, or `''` for `upstream`. */
  readonly scope: string
  readonly threadId: string
}

/** The owner of a row from which its owner was taken: nobody's id, and foreign to everybody until a thread is assigned. */
export const NOBODY = ''

/** A row, as it stands to somebody. */
export interface RowFacts {
  /** The user id, or NOBODY. */
  readonly owner: string
  /** True for a tombstone, until a run of its owner is confirmed. */
  readonly deleted: boolean
  /** True while no run of its owner is confirmed. */
  readonly provisional: boolean
  /** What was granted to the reader who was asked for: the widest right, of the user's own and of their groups. */
  readonly granted: Right | null
}

/**
 * A run that began longer ago than this is taken to be over, in milliseconds: a deleted thread that was last used before may be
 * forgotten whoever sent its runs.
 */
export const LONGEST_RUN = 24 * 3_600_000

/**
 * What is known of a thread: its row, and who was seen to run it under `observe`, the first first. Who was seen may be left out
 * where the row lets the reader use the thread: the row is what counts.
 */
export interface ThreadAccess {
  readonly row: RowFacts | null
  readonly runners: readonly string[]
}

/** Of a thread that nobody ever heard of. */
export const UNHEARD_OF: ThreadAccess = { row: null, runners: [] }

/**
 * A run's place in a row that no run has confirmed yet: which life of the thread it is part of, because a deleted thread
 * may have been revived by another run when this one is over. Null for a run on a settled thread, which has none.
 */
export type Registration = number | null

/** Who claims a thread, for a run. */
export interface Claim {
  /** Whose thread it is to be, or is: of a run by somebody else (a guest), its owner. */
  readonly userId: string
  readonly agentId: string
  /**
   * True for a run by somebody else than the owner, whom a grant or the policy lets in: it registers on a live row of that
   * owner's, and neither begins a thread nor revives one.
   */
  readonly guest: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** How a claim for a run went. */
export type ClaimResult =
  /** The thread is the user's: `new` if this claim made it so, `own` if it was before. */
  | { readonly outcome: 'new' | 'own'; readonly registration: Registration }
  /** It is not, or is not there for a guest: what is known of it has to be asked anew. */
  | { readonly outcome: 'foreign' }

/** What became of a run that had registered. */
export type RunOutcome =
  /** The upstream answered a run of the owner's 2xx: the row is settled. */
  | 'confirmed'
  /**
   * It may have started, or was not the owner's: the row stays, whatever becomes of its other runs, and is not confirmed by that.
   * Whoever asks and does not wait for the refusal would have it confirmed otherwise. A tombstone lives again: it was confirmed
   * before.
   */
  | 'stays'
  /** The run certainly did not start: the row goes with the last such run, unless one was confirmed. */
  | 'not-started'

/** A thread as lists show it. Times are milliseconds since the epoch. */
export interface ListedThread {
  readonly threadId: string
  readonly owner: string
  /** True while no run of its owner is confirmed. */
  readonly provisional: boolean
  readonly granted: Right | null
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

/** Which threads a page of a list is of: the last used first, those used at the same time by id. */
export interface ListWindow {
  /** Only threads of this agent; null for all. */
  readonly agentId: string | null
  readonly includeArchived: boolean
  /** The last thread of the page before, or null for the first page. */
  readonly after: { readonly updatedAt: number; readonly threadId: string } | null
  readonly limit: number
}

/** The ownership of threads, as requests need it. */
export interface OwnershipStore {
  /** What is known of a thread. It takes as long for one without a row, as far as it can: a refusal's time is not to tell. At once where it is remembered. */
  standing(key: ThreadKey, reader: Reader): ThreadAccess | Promise<ThreadAccess>
  /** The same of several; what nobody ever heard of is not in the map. One query, however many ids. */
  standings(scope: string, threadIds: readonly string[], reader: Reader): Promise<ReadonlyMap<string, ThreadAccess>>
  /**
   * The ids of the threads that name a reader: whose row says that they are theirs, in whatever state, or that were granted to
   * them. Only their own entries are looked at, whatever else the scope holds.
   * @param most how many may be told
   * @returns null for more
   */
  naming(scope: string, reader: Reader, most: number): Promise<ReadonlySet<string> | null>
  /**
   * Registers a run: claims the thread if nobody owns it, revives it if the user deleted it. Notes the time of use,
   * at most once a minute.
   */
  claim(key: ThreadKey, claim: Claim): Promise<ClaimResult>
  /**
   * Notes, before it is sent, a request that may make the upstream write to a thread, and that claims nothing: a suggestion, an
   * annotation, a run under `observe`. The thread's tombstone, if it has one or gets one by a deletion that is under way, no
   * longer says that the upstream holds nothing. The time of use is noted at most once an hour. Does nothing without a row.
   * @param now milliseconds since the epoch
   */
  noteWrite(key: ThreadKey, now: number): Promise<void>
  /** Settles a run that had registered. True if that released the thread. */
  settle(key: ThreadKey, userId: string, registration: number, outcome: RunOutcome): Promise<boolean>
  /** Notes the name of a live thread of this owner. False if there is no such row. */
  rename(key: ThreadKey, userId: string, name: string | null): Promise<boolean>
  /** Notes whether a live thread of this owner is archived. False if there is no such row. */
  archive(key: ThreadKey, userId: string, archived: boolean): Promise<boolean>
  /**
   * Notes that a deletion of a live thread of this owner is about to be sent upstream, whose answer may come late.
   * @returns what `endDeletion` takes, the same for deletions between which no run was claimed; null if there is no such row
   */
  beginDeletion(key: ThreadKey, userId: string): Promise<string | null>
  /**
   * Leaves a tombstone, as `bury` does, if no run was claimed and no owner changed since the deletion began.
   * @param gone as for `bury`, as far as this process knows. Where another process may have sent a run that is still executing,
   * or something that may write was sent since the deletion began, the tombstone is not marked as gone: the thread may be
   * written to after its deletion
   */
  endDeletion(key: ThreadKey, userId: string, deletion: string, now: number, gone: boolean): Promise<boolean>
  /**
   * Leaves a tombstone, without its grants: nobody else can ever claim the thread.
   * @param gone true where the upstream has confirmed that it holds nothing of it any more: only such a tombstone may ever be
   * thrown away by its age
   */
  bury(key: ThreadKey, userId: string, now: number, gone: boolean): Promise<void>
  /**
   * A page of the threads that are listed: live rows that are the reader's or granted to them; of everybody with `everybody`.
   * One query.
   */
  listed(scope: string, reader: Reader | 'everybody', window: ListWindow): Promise<readonly ListedThread[]>
  /** True if the scope has no row. */
  isEmpty(scope: string): Promise<boolean>
  /** A secret that all processes on this store share, made at first use: 32 bytes. */
  secret(): Promise<Uint8Array>
  /**
   * Whether it can be read and written now.
   * @returns null, or what is wrong, in words for an operator and without anything secret
   */
  fault(): Promise<string | null>
  close(): Promise<void>
}

/** What was seen under `enforcement: observe`: who used which thread. It makes nobody an owner. */
export interface ObservationStore {
  /**
   * Notes that the upstream served a user on a thread; the time of use at most once a minute. Of a thread that nobody ran
   * and that has no row nothing is noted: ids are easily made up.
   * @param ran true for a run, which a thread begins with
   * @param agentId `''` where the request named none
   * @param now milliseconds since the epoch
   */
  observe(key: ThreadKey, userId: string, agentId: string, ran: boolean, now: number): Promise<void>
  /** How many threads were seen to be run and have no row. */
  unowned(): Promise<number>
  /**
   * Threads that were seen to be run and have no row, with who ran them, in the order of their keys.
   * @param after the last thread of the page before, or null for the first page
   */
  observed(after: ThreadKey | null, limit: number): Promise<readonly ObservedThread[]>
}

/** A thread that was seen under `observe`. */
export interface ObservedThread extends ThreadKey {
  /** Who ran it, the first first: more than one are a conflict. */
  readonly runners: readonly string[]
  readonly agentId: string
  /** Milliseconds since the epoch. */
  readonly firstUsedAt: number
  readonly lastUsedAt: number
}

export interface StoredGrant extends Grant {
  /** The user id of who granted it, or `operator`. */
  readonly grantedBy: string
  /** Milliseconds since the epoch. */
  readonly grantedAt: number
}

/** How a change of grants went: `not-owner` where the thread is not a live one of the owner that was named. */
export type GrantOutcome = 'done' | 'unchanged' | 'not-owner' | 'too-many'

/** Grants on threads. Only live rows with an owner have any. */
export interface GrantStore {
  /**
   * The grants of a live thread, the oldest first.
   * @param owner whose it must be; null for anybody's
   * @returns null if there is no such thread
   */
  grants(key: ThreadKey, owner: string | null): Promise<readonly StoredGrant[] | null>
  /**
   * Grants, in place of what the grantee had.
   * @param owner whose it must be; null for anybody's
   */
  grant(key: ThreadKey, owner: string | null, grant: StoredGrant): Promise<GrantOutcome>
  /** Takes a grant back; `unchanged` if there was none. */
  ungrant(key: ThreadKey, owner: string | null, grantee: Grantee): Promise<GrantOutcome>
  /** What was granted to somebody, in the order of the threads. */
  grantedTo(grantee: Grantee, after: ThreadKey | null, limit: number): Promise<readonly (ThreadKey & StoredGrant)[]>
}

/** A row of the ownership table, whole. Times are milliseconds since the epoch. */
export interface ThreadRow extends ThreadKey {
  /** The user id, or NOBODY. */
  readonly owner: string
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  /** Null for a live one. */
  readonly deletedAt: number | null
  /** True while no run of its owner is confirmed. */
  readonly provisional: boolean
}

/** A row to be taken over from elsewhere. */
export type ImportedThread = Omit<ThreadRow, 'deletedAt' | 'provisional'>

/**
 * What became of a row that was to be imported: added; there already, with the same owner; or there with somebody else, or
 * seen under `observe` with somebody else, or deleted: then nothing is changed.
 */
export type ImportOutcome =
  | { readonly outcome: 'added' | 'same' }
  | { readonly outcome: 'conflict'; readonly with: 'owner' | 'observed' | 'deleted'; readonly users: readonly string[] }

/** Which rows an operator wants to see; what is left out is not asked for. */
export interface RowFilter {
  readonly scope?: string
  readonly owner?: string
  readonly agentId?: string
  /** Live rows, tombstones, or all of them. */
  readonly deleted?: 'no' | 'only' | 'too'
}

/** Which rows are thrown away: those for which all of it is so. Times are milliseconds since the epoch. */
export interface PruneRule {
  /** Only rows of this scope. */
  readonly scope?: string
  /** Tombstones of before this, of threads that the upstream has confirmed to be gone. */
  readonly deletedBefore?: number
  /** Live rows that nobody used since. */
  readonly unusedSince?: number
}

export type AssignOutcome =
  | { readonly outcome: 'assigned'; readonly before: string | null }
  | { readonly outcome: 'same' }
  /** The owner is another than was expected. */
  | { readonly outcome: 'changed'; readonly owner: string | null }

export interface StoreStats {
  readonly threads: number
  readonly deleted: number
  readonly provisional: number
  /** Rows from which their owner was taken. */
  readonly withheld: number
  readonly owners: number
  readonly grants: number
  /** Threads seen under `observe` that have no row, and those of them with more than one runner. */
  readonly observed: number
  readonly conflicts: number
  readonly revocations: number
}

/** Everything that the store holds of one user. */
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
 * The table as operators work on it. What works on many rows does so in steps of a bounded size, so that requests go on
 * meanwhile: each call is one step, and it is called until nothing is left.
 */
export interface ThreadAdministration {
  /** The whole row of a thread with its grants and who was seen on it; null where nobody ever heard of it. */
  thread(key: ThreadKey): Promise<{
    readonly row: ThreadRow | null
    readonly grants: readonly StoredGrant[]
    readonly runners: readonly string[]
  } | null>
  /** Rows in the order of their keys (scope, then id; byte for byte). */
  threads(filter: RowFilter, after: ThreadKey | null, limit: number): Promise<readonly ThreadRow[]>
  /**
   * Takes rows over, each on its own: an owner that is there is never replaced. One step for all of them.
   * @param dryRun true to say what would become of them, and change nothing
   * @param settleConflicts true to take a row whose thread others were seen on under `observe`: the operator has decided
   */
  import(
    rows: readonly ImportedThread[],
    options: { readonly dryRun: boolean; readonly settleConflicts: boolean },
  ): Promise<readonly ImportOutcome[]>
  /**
   * Gives a thread an owner, by whomever it was owned: its grants go, what was pending on it is settled, and a tombstone is
   * a live thread again. A thread without a row gets one.
   * @param expected whose it must be, NOBODY included; null: no row; undefined for whoever it is
   */
  assign(key: ThreadKey, to: string, now: number, expected?: string | null): Promise<AssignOutcome>
  /**
   * Gives a user's rows, tombstones included, to another, with what was granted to the user and what was seen of them. A row
   * that no run has confirmed stays so: nobody has looked at this one thread.
   * @param scope only what is in this scope; undefined for all of it
   * @returns how many rows this step moved, and of which; none when nothing is left
   */
  transfer(from: string, to: string, limit: number, scope?: string): Promise<number>
  /** Takes a thread's owner away, with its grants: it is foreign to everybody until it is assigned. False without a row. */
  withhold(key: ThreadKey, now: number): Promise<boolean>
  /** Throws rows away; the thread is unknown then, and may be claimed. @returns how many this step threw away, or would */
  prune(rule: PruneRule, limit: number): Promise<number>
  /** How many rows `prune` would throw away. */
  prunable(rule: PruneRule): Promise<number>
  /** @param scope only what is in this scope; undefined for all of it. Revocations are in none, and always counted. */
  stats(scope?: string): Promise<StoreStats>
  /** All that is held of a user. */
  userData(userId: string): Promise<UserData>
  /**
   * Forgets a user: their rows stay as tombstones of nobody's, so that nobody else can claim what the upstream still holds;
   * their grants, given and received, and what was seen of them go, and threads on which they were seen, be it with others,
   * become tombstones of nobody's, too. Revocations stay.
   * @returns how many rows this step changed; none when nothing is left
   */
  erase(userId: string, now: number, limit: number): Promise<number>
}

/**
 * Tells of changes that take something away from somebody or give it: assignments, transfers, grants and their ends,
 * deletions. Claims are none: nobody else knew anything of the thread.
 */
export interface AccessInvalidations {
  /**
   * @param listener called with each thread whose access has changed, within a second over all processes; null: whatever
   * thread may have, because invalidations were lost or too many
   * @returns ends it
   */
  onStanding(listener: (key: ThreadKey | null) => void): () => void
}

/** All of it, in one place. */
export type Store = OwnershipStore & RevocationStore & ObservationStore & GrantStore & ThreadAdministration & AccessInvalidations

export type Revoked = { readonly tokenId: string } | { readonly userId: string }

export interface RevocationStore {
  /** Adds a revocation. There is one of a token, and one of a user: the wider one, if there are two. */
  revoke(revocation: Revocation): Promise<void>
  /** Takes one back. True if there was one. */
  lift(what: Revoked): Promise<boolean>
  revocations(): Promise<readonly Revocation[]>
  /** Another number after every `revoke`, and every `lift` that took one back, of any process. It costs next to nothing. */
  revocationsVersion(): Promise<number>
}

/** The active revocations of this process. */
export interface RevocationList {
  /** As they were read last, in no order that means anything. */
  current(): readonly Revocation[]
  /** True if a credential was revoked: the same as in src/core/decide/credential.ts, at a cost that doesn't grow with the list. */
  isRevoked(userId: string, credential: Credential): boolean
  /** Reads them again. Rejects with StoreUnavailable if they cannot be read; the last known ones then stay active. */
  reload(): Promise<void>
  /** Reads nothing more by itself. */
  stop(): void
}

/** The store did not answer: nothing is known, nothing is allowed. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
