/** Errors that an agent may get instead of a user. No message contains any part of a credential, so all may be logged. */

/** The codes of the gateway's own 401 (docs/reference/errors.md), and one of `expectThread`. A caller may see them. */
export type NotAuthenticatedCode = 'credential-missing' | 'credential-invalid' | 'credential-expired' | 'other-thread'

/** The credential is missing or not valid: answer 401. */
export class NotAuthenticated extends Error {
  override readonly name = 'NotAuthenticated'
  readonly code: NotAuthenticatedCode
  /** The exact reason, such as `audience-mismatch`: for the log, not for the caller. */
  readonly reason: string

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

/** The issuer's keys are unavailable, so the caller is unknown: answer 503. `cause` has the reason. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable'
  readonly code = 'keys-unavailable'

  constructor(cause: unknown) {
    super(`the keys of the issuer could not be fetched: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** A known user lacks a permission or a role: answer 403, or report it in the agent's answer. */
export class PermissionDenied extends Error {
  override readonly name = 'PermissionDenied'
  readonly code = 'permission-denied'
  readonly user_id: string
  readonly missing: string

  constructor(user_id: string, kind: 'permission' | 'role', missing: string) {
    super(`${user_id} lacks ${kind === 'role' ? 'the role ' : ''}${missing}`)
    this.user_id = user_id
    this.missing = missing
  }
}
