/**
 * Sharing: a thread's owner, or an operator, grants it to a user or to a group for reading or for writing. Deleting,
 * archiving and granting stay with the owner, whatever was granted.
 */
import { isUserId } from '../route/ids.ts'
import type { Principal } from './principal.ts'

/** What was granted: who may write may read as well. */
export type Right = 'read' | 'write'

/** What a route wants of whoever uses it on a thread. */
export type NeededRight = Right | 'owner'

/** To whom something is granted: a user, or all whose token names a group. */
export interface Grantee {
  readonly kind: 'user' | 'group'
  /** `issuer-key:name`, of a user as of a group: a group of one issuer is no group of another. */
  readonly id: string
}

export interface Grant extends Grantee {
  readonly right: Right
}

/** Whom grants are looked up for: a user with the groups that their token names. */
export interface Reader {
  readonly userId: string
  readonly groups: readonly string[]
}

/** Who has granted what an operator grants by the API or the command line: no user id is without a colon. */
export const BY_OPERATOR = 'operator'

/**
 * The most grants that users may have given on a thread, and as many more that operators may have: all of them are looked up
 * together, and neither takes the others' room.
 */
export const MAX_GRANTS = 100

/** On so many threads at most one user may let another one, or a group, in: they stand in the list of whom they were granted to. */
export const MAX_GRANTS_TO_ONE = 200

/** The reader that a principal is. Anonymous callers have no groups, and nothing can be granted to them. */
export function readerOf(principal: Principal): Reader {
  return { userId: principal.id, groups: principal.kind === 'user' ? principal.groups : [] }
}

/**
 * The widest right that grants give a reader.
 * @returns null for none
 */
export function rightIn(grants: readonly Grant[], { userId, groups }: Reader): Right | null {
  const theirs = grants.filter(({ kind, id }) => (kind === 'user' ? id === userId : groups.includes(id)))
  if (theirs.length === 0) return null
  return theirs.some(({ right }) => right === 'write') ? 'write' : 'read'
}

/** True if a right is enough for what is needed. */
export function suffices(right: Right, needed: NeededRight): boolean {
  return needed === 'read' || needed === right
}

/** True for the id of a grantee: `issuer-key:name`, split at the first colon. */
export function isGranteeId(text: string): boolean {
  const colon = text.indexOf(':')
  return colon > 0 && /^[a-z0-9-]+$/.test(text.slice(0, colon)) && isUserId(text.slice(colon + 1))
}
