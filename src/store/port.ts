/**
 * The ports of the store: what the gateway asks of it about owners and about revocations. A store that fails throws
 * StoreUnavailable, and the answer to the caller is 503, never yes.
 */
import type { Credential, Revocation } from '../core/credential.ts'
import type { OwnerRecord } from '../core/decide.ts'

/** Which thread: ids compare byte for byte. */
export interface ThreadKey {
  /** The upstream that the thread lives in; `''` while a gateway has one upstream. */
  readonly scope: string
  readonly threadId: string
}

/**
 * A run's place in a row that no run has confirmed yet: which life of the thread it is part of, because a deleted thread
 * may have been revived by another run when this one is over. Null for a run on a settled thread, which has none.
 */
export type Registration = number | null

/** How a claim for a run went. */
export type ClaimResult =
  /** The thread is the user's: `new` if this claim made it so, `own` if it was before. */
  | { readonly outcome: 'new' | 'own'; readonly registration: Registration }
  | { readonly outcome: 'foreign'; readonly record: OwnerRecord }

/** What became of a run that had registered. */
export type RunOutcome =
  /** The upstream answered 2xx, or may have started the run: the row stays. */
  | 'stays'
  /** The run certainly did not start: the row goes with the last such run, unless one was confirmed. */
  | 'not-started'

/** The ownership of threads. Every method is one atomic step, over all processes that share the store. */
export interface OwnershipStore {
  /** The owner of a thread. It takes as long for one without a row, as far as it can: a refusal's time is not to tell. */
  owner(key: ThreadKey): Promise<OwnerRecord>
  /** The owners of threads, a row each; threads without a row are not in the map. One query, however many ids. */
  owners(scope: string, threadIds: readonly string[]): Promise<ReadonlyMap<string, NonNullable<OwnerRecord>>>
  /**
   * Registers a run: claims the thread if nobody owns it, revives it if the user deleted it. Notes the time of use,
   * at most once a minute.
   * @param now milliseconds since the epoch
   */
  claim(key: ThreadKey, userId: string, agentId: string, now: number): Promise<ClaimResult>
  /** Settles a run that had registered. True if that released the thread. */
  settle(key: ThreadKey, userId: string, registration: number, outcome: RunOutcome): Promise<boolean>
  /** Notes the name that the upstream confirmed. */
  rename(key: ThreadKey, userId: string, name: string | null): Promise<void>
  /** Leaves a tombstone: nobody else can ever claim the thread. */
  bury(key: ThreadKey, userId: string, now: number): Promise<void>
  /** True if no row exists. */
  isEmpty(): Promise<boolean>
  /** A secret that all processes on this store share, made at first use: 32 bytes. */
  secret(): Promise<Uint8Array>
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
  /** Who ran each of these threads, the first first. One query, however many ids. */
  runners(scope: string, threadIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>
  /** How many threads were seen to be run and have no row. */
  unowned(): Promise<number>
}

/** All of it, in one place. */
export type Store = OwnershipStore & RevocationStore & ObservationStore

/** What a revocation is about. */
export type Revoked = { readonly tokenId: string } | { readonly userId: string }

/** What was revoked. Every method is one atomic step, over all processes that share the store. */
export interface RevocationStore {
  /** Adds a revocation. There is one of a token, and one of a user: the wider one, if there are two. */
  revoke(revocation: Revocation): Promise<void>
  /** Takes one back. True if there was one. */
  lift(what: Revoked): Promise<boolean>
  /** All of them. */
  revocations(): Promise<readonly Revocation[]>
  /** Another number after every `revoke`, and every `lift` that took one back, of any process. It costs next to nothing. */
  revocationsVersion(): Promise<number>
}

/** The revocations that are in force in this process. */
export interface RevocationList {
  /** As they were read last, in no order that means anything. */
  current(): readonly Revocation[]
  /** True if a credential was revoked: the same as in src/core/credential.ts, at a cost that doesn't grow with the list. */
  isRevoked(userId: string, credential: Credential): boolean
  /** Reads them anew, and rejects with StoreUnavailable if they can't be read; the last known stay in force then. */
  reload(): Promise<void>
  /** Reads nothing more by itself. */
  stop(): void
}

/** The store did not answer: nothing is known, nothing is allowed. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
