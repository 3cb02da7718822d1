/** Checks the users and scopes that operators write, and suggests those that they may have meant. */
import { ANONYMOUS } from '../../core/decide/principal.ts'
import { isGranteeId } from '../../core/decide/sharing.ts'
import { userFault } from '../../operator/revocation-form.ts'
import { isScope } from '../../core/route/ids.ts'
import { suggestion } from '../../document/nearest.ts'

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
  if (text === ANONYMOUS.id) return users.anonymous ? null : 'there are no anonymous callers with authentication.mode: required'
  return granteeFault(text, users.issuers)
}

/** Checks a user or group that is to get a grant: `issuer:name`. The result is like that of `userIdFault`. */
export function granteeFault(text: string, issuers: readonly string[]): string | null {
  const fault = userFault(text, issuers)
  if (fault === null) return null
  if (fault === 'form') return 'write issuer:name, with at most 255 characters after the colon'
  if (issuers.length === 0) return 'the configuration has no issuers'
  return `the configuration has no issuer "${fault.issuer}": ${suggestion(fault.issuer, issuers, 'it has')}`
}

/** @returns null for a valid scope; else the text that follows it in a message */
export function scopeFault(scope: string, scopes: readonly string[]): string | null {
  if (scopes.includes(scope)) return null
  const keys = scopes.filter((one) => one !== '')
  if (scope === '') return `the configuration has no upstream without a key; it has: ${keys.join(', ')}`
  if (!isScope(scope)) return 'a key of upstreams or agents has at most 128 characters of a-z, 0-9 and -'
  const there = keys.length === 0 ? 'its only upstream has no key' : suggestion(scope, keys, 'it has')
  return `the configuration has no upstream with this key: ${there}`
}

/** The text that follows a thread id to say where it is; empty for the scope of `upstream`. */
export function atScope(scope: string): string {
  return scope === '' ? '' : ` at ${scope}`
}
