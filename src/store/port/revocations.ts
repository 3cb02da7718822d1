/** Revocations of tokens, one by one or all of a user. */
import type { Credential, Revocation } from '../../core/decide/credential.ts'

export type Revoked = { readonly tokenId: string } | { readonly userId: string }

export interface RevocationStore {
  /** Each token and each user has at most one revocation: the wider of two. */
  revoke(revocation: Revocation): Promise<void>
  lift(what: Revoked): Promise<boolean>
  revocations(): Promise<readonly Revocation[]>
  /** Changes after every `revoke`, and every `lift` that removed one, of any process. Cheap to poll. */
  revocationsVersion(): Promise<number>
}

export interface RevocationList {
  current(): readonly Revocation[]
  /** Same result as src/core/decide/credential.ts, at a cost that does not grow with the list. */
  readonly isRevoked: (userId: string, credential: Credential) => boolean
  /** Rejects with StoreUnavailable if the list cannot be read; the last known one then stays active. */
  reload(): Promise<void>
  stop(): void
}
