/** Revocations of tokens, one by one or all of a user. */
import type { Credential, Revocation } from '../../core/decide/credential.ts'

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
