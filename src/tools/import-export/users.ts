/** Whom threads can belong to, as operators write them. */
import { ANONYMOUS } from '../../core/decide/principal.ts'
import { isGranteeId } from '../../core/decide/sharing.ts'
import { userFault } from '../../http/admin/revocation-form.ts'
import { suggestion } from './suggestion.ts'

/** Who there can be under a configuration. */
export interface People {
  readonly issuers: readonly string[]
  /** True where callers come in without a credential: all of them are the owner `anonymous`. */
  readonly anonymous: boolean
}

/** True if somebody may have this user id, under whatever configuration: `issuer:subject`, or `anonymous`. */
export function isPerson(text: string): boolean {
  return text === ANONYMOUS.id || isGranteeId(text)
}

/**
 * What is wrong with a user id that is to own something. One that nobody can have would lock a thread for everybody, and the
 * operator would believe it to be in good hands.
 * @returns null if nothing is; else the words to follow the id
 */
export function personFault(text: string, people: People): string | null {
  if (text === ANONYMOUS.id) return people.anonymous ? null : 'nobody is anonymous with authentication.mode: required'
  return granteeFault(text, people.issuers)
}

/** The same of a user or a group that something is to be granted to: `issuer:name`. */
export function granteeFault(text: string, issuers: readonly string[]): string | null {
  const fault = userFault(text, issuers)
  if (fault === null) return null
  if (fault === 'form') return 'it is written issuer:name, with up to 255 characters behind the colon'
  if (issuers.length === 0) return 'the configuration has no issuers'
  return `the configuration has no issuer "${fault.issuer}": ${suggestion(fault.issuer, issuers)}`
}
