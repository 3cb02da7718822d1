/** Checks the user ids that can own threads, as operators write them. */
import { ANONYMOUS } from '../../core/decide/principal.ts'
import { isGranteeId } from '../../core/decide/sharing.ts'
import { userFault } from '../../operator/revocation-form.ts'
import { suggestion } from './suggestion.ts'

export interface KnownUsers {
  readonly issuers: readonly string[]
  /** True if callers need no credential: all callers without one are the owner `anonymous`. */
  readonly anonymous: boolean
}

/** True if a user can have this id under some configuration: `issuer:subject`, or `anonymous`. */
export function isUserId(text: string): boolean {
  return text === ANONYMOUS.id || isGranteeId(text)
}

/** An id that no user can have would lock the thread for all users. @returns null, or the text that follows it in a message */
export function userIdFault(text: string, users: KnownUsers): string | null {
  if (text === ANONYMOUS.id) return users.anonymous ? null : 'nobody is anonymous with authentication.mode: required'
  return granteeFault(text, users.issuers)
}

/** Checks a user or group that is to get a grant: `issuer:name`. The result is like that of `userIdFault`. */
export function granteeFault(text: string, issuers: readonly string[]): string | null {
  const fault = userFault(text, issuers)
  if (fault === null) return null
  if (fault === 'form') return 'it is written issuer:name, with up to 255 characters behind the colon'
  if (issuers.length === 0) return 'the configuration has no issuers'
  return `the configuration has no issuer "${fault.issuer}": ${suggestion(fault.issuer, issuers)}`
}
