/** Grants: rights on a thread that its owner or an operator gave to users and groups. */
import type { Grant, Grantee } from '../../core/decide/sharing.ts'
import type { ThreadKey } from './thread.ts'

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
