/** How grants are written in requests and shown in answers, alike for owners and for operators. */
import type { Json, JsonObject } from '../../core/json/read.ts'
import { isGranteeId, type Grant, type Grantee, type Right } from '../../core/decide/sharing.ts'
import type { StoredGrant } from '../../store/port.ts'

/** Who it is granted to. */
type ShownGrantee = { readonly user: string } | { readonly group: string }

/** A grant as it is shown; the time as RFC 3339 writes it. */
export type ShownGrant = ShownGrantee & {
  readonly right: Right
  /** The user id of who granted it, or `operator`. */
  readonly grantedBy: string
  readonly grantedAt: string
}

/** What is wrong with what was written, for whoever wrote it; never anything of it. */
export interface FormFault {
  readonly fault: string
}

const FORM =
  'Write {"user": "issuer:subject", "right": "read"} or {"group": "issuer:group", "right": "write"}; without "right" to take it back.'

/**
 * Reads what is to be granted. To the letter: a key that nobody knows may be one that somebody relies on.
 * @param issuers the issuer keys of the configuration: to somebody of another one it would be granted without effect
 * @param owner whose the thread is: nothing can be granted to them
 */
export function readGrant({ right, ...rest }: JsonObject, issuers: readonly string[], owner: string): Grant | FormFault {
  const grantee = readGrantee(rest)
  if ('fault' in grantee) return grantee
  if (right !== 'read' && right !== 'write') return { fault: 'right is read or write.' }
  if (!issuers.includes(grantee.id.slice(0, grantee.id.indexOf(':')))) {
    return { fault: `The configuration has no issuer of this key. It has: ${issuers.join(', ')}.` }
  }
  if (grantee.kind === 'user' && grantee.id === owner) return { fault: 'The thread is theirs.' }
  return { ...grantee, right }
}

/**
 * Reads from whom something is to be taken back. Of any issuer: what was granted once must be possible to take back when its
 * issuer is no longer configured.
 */
export function readGrantee({ user, group, ...others }: JsonObject): Grantee | FormFault {
  if (Object.keys(others).length > 0 || (user === undefined) === (group === undefined)) return { fault: FORM }
  return user === undefined ? granteeOf('group', group) : granteeOf('user', user)
}

function granteeOf(kind: Grantee['kind'], id: Json | undefined): Grantee | FormFault {
  if (typeof id === 'string' && isGranteeId(id)) return { kind, id }
  return { fault: kind === 'user' ? 'user is a user id: issuer:subject.' : 'group is the name of a group: issuer:group.' }
}

export function shownGrant({ kind, id, right, grantedBy, grantedAt }: StoredGrant): ShownGrant {
  const grantee = kind === 'user' ? { user: id } : { group: id }
  return { ...grantee, right, grantedBy, grantedAt: new Date(grantedAt).toISOString() }
}

/** A grantee in one word for a log line: `user:issuer:subject` or `group:issuer:group`. */
export function granteeWord({ kind, id }: Grantee): string {
  return `${kind}:${id}`
}

/** True for the grant to this grantee. */
export function isTo({ kind, id }: Grantee): (grant: Grantee) => boolean {
  return (grant) => grant.kind === kind && grant.id === id
}
