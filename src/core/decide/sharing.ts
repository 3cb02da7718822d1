/** Sharing: an owner or operator grants a thread to a user or group. Deleting, archiving and granting stay with the owner. */
import { isUserId } from '../route/ids.ts'

/** A granted right. A user who may write may read as well. */
export type Right = 'read' | 'write'

export type NeededRight = Right | 'owner'

export interface Grantee {
  readonly kind: 'user' | 'group'
  /** `issuer-key:name`, for users and groups: a group of one issuer is not a group of another issuer. */
  readonly id: string
}

export interface Grant extends Grantee {
  readonly right: Right
}

export interface Reader {
  readonly userId: string
  readonly groups: readonly string[]
}

/** The granter of what an operator grants by the API or the command line. No user has this id: user ids have a colon. */
export const BY_OPERATOR = 'operator'

/** Operators may give as many more: neither uses up the other's grants. The gateway looks up all of them together. */
export const MAX_GRANTS = 100

/** The most threads on which a user may let in the same user or group: they are all in the grantee's list. */
export const MAX_GRANTS_TO_ONE = 200

export function rightIn(grants: readonly Grant[], { userId, groups }: Reader): Right | null {
  const theirs = grants.filter(({ kind, id }) => (kind === 'user' ? id === userId : groups.includes(id)))
  if (theirs.length === 0) return null
  return theirs.some(({ right }) => right === 'write') ? 'write' : 'read'
}

export function widest(one: Right | null, other: Right | null): Right | null {
  return one === 'write' ? one : (other ?? one)
}

export function suffices(right: Right, needed: NeededRight): boolean {
  return needed === 'read' || needed === right
}

/** True for the id of a grantee: `issuer-key:name`, split at the first colon. */
export function isGranteeId(text: string): boolean {
  const colon = text.indexOf(':')
  return colon > 0 && /^[a-z0-9-]+$/.test(text.slice(0, colon)) && isUserId(text.slice(colon + 1))
}
