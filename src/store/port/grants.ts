/** Grants: rights on a thread that its owner or an operator gave to users and groups. */
import type { Grant, Grantee } from '../../core/decide/sharing.ts'
import type { ThreadKey } from './thread.ts'

export interface StoredGrant extends Grant {
  /** The granting user's id, or `operator`. */
  readonly grantedBy: string
  /** Milliseconds since the epoch. */
  readonly grantedAt: number
}

/** `not-owner`: `owner` has no such live thread. */
export type GrantOutcome = 'done' | 'unchanged' | 'not-owner' | 'too-many'

/** Only live rows with an owner have grants. */
export interface GrantStore {
  /** Oldest first; null if there is no such thread. A null `owner` permits any. */
  grants(key: ThreadKey, owner: string | null): Promise<readonly StoredGrant[] | null>
  /** Replaces the grantee's previous right. A null `owner` permits any. */
  grant(key: ThreadKey, owner: string | null, grant: StoredGrant): Promise<GrantOutcome>
  ungrant(key: ThreadKey, owner: string | null, grantee: Grantee): Promise<GrantOutcome>
  /** Ordered by thread key. */
  grantedTo(grantee: Grantee, after: ThreadKey | null, limit: number): Promise<readonly (ThreadKey & StoredGrant)[]>
}
