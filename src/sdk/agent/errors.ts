/** What an agent can be told instead of a user. No message holds any part of a credential, so all of them may be logged. */

/** What a caller may be told; the same words as the gateway's own 401 (docs/errors.md), and one for `expectThread`. */
export type NotAuthenticatedCode = 'credential-missing' | 'credential-invalid' | 'credential-expired' | 'other-thread'

/** The caller showed no credential, or none that is good here: 401. */
export class NotAuthenticated extends Error {
  override readonly name = 'NotAuthenticated'
  readonly code: NotAuthenticatedCode
  /** What exactly is wrong, such as `audience-mismatch`: for the log, not for the caller. */
  readonly reason: string

  /**
   * @param code what the caller may be told
   * @param reason what is wrong; by default the code
   */
  constructor(code: NotAuthenticatedCode, reason: string = code) {
    super(`${SENTENCES[code]}${reason === code ? '' : ` (${reason})`}`)
    this.code = code
    this.reason = reason
  }
}

const SENTENCES: Readonly<Record<NotAuthenticatedCode, string>> = {
  'credential-missing': 'the request has no credential',
  'credential-invalid': 'the credential is not valid',
  'credential-expired': 'the credential has expired',
  'other-thread': 'the credential is not for this thread',
}

/** The keys of the issuer can't be had, so nothing can be said about the caller: 503. `cause` tells why. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable'
  readonly code = 'keys-unavailable'

  constructor(cause: unknown) {
    super(`the keys of the issuer could not be fetched: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** A known user may not do this: 403, or what the agent says in its place. */
export class PermissionDenied extends Error {
  override readonly name = 'PermissionDenied'
  readonly code = 'permission-denied'
  readonly user_id: string
  /** The permission or the role that is missing. */
  readonly missing: string

  constructor(user_id: string, kind: 'permission' | 'role', missing: string) {
    super(`${user_id} lacks ${kind === 'role' ? 'the role ' : ''}${missing}`)
    this.user_id = user_id
    this.missing = missing
  }
}
