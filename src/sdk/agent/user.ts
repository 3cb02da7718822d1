/** Who is asking, as an agent's code reads it: made of verified claims, and of nothing else. */
import { NotAuthenticated } from './errors.ts'

/** The resolved user (docs/specification.md), frozen: nothing that runs later can widen it. */
export interface AgentUser {
  /** `alice` for an issuer's token, or `corp:alice` if the issuer has a key; always the latter for an assertion. */
  readonly user_id: string
  readonly name?: string
  /** The role, the first one of several; absent if there is none. */
  readonly role?: string
  /** All roles: `requireRole` looks here. */
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  /** The thread that the gateway let the user into; only in assertions, and only for requests about a thread. */
  readonly thread?: string
}

/** Verified claims. */
export type Claims = Readonly<Record<string, unknown>>

/** Where in the claims things are: JSON pointers (RFC 6901), such as `/realm_access/roles`. */
export interface ClaimPointers {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly permissions: string
}

/** Where they are unless said otherwise, as in the gateway's configuration. */
export const USUAL_POINTERS: ClaimPointers = { id: '/sub', name: '/name', role: '/role', permissions: '/permissions' }

/** The grammar of user ids that the gateway has: 1-255 characters, none of them a control. */
const USER_ID = /^[^\u0000-\u001f\u007f-\u009f]{1,255}$/u

/** True for a JSON pointer (RFC 6901 §3). */
export function isPointer(value: unknown): value is string {
  return typeof value === 'string' && /^(?:\/(?:[^~/]|~[01])*)*$/.test(value)
}

/**
 * Makes a user. Claims of a wrong type grant nothing.
 * @param claims the verified claims
 * @param pointers where things are in them
 * @param prefix what stands before the id, such as `corp:`
 * @throws {NotAuthenticated} if the id is no user id
 */
export function userFromClaims(claims: Claims, pointers: ClaimPointers, prefix = ''): AgentUser {
  const id = valueAt(claims, pointers.id)
  if (typeof id !== 'string' || !id.isWellFormed() || !USER_ID.test(id)) {
    throw new NotAuthenticated('credential-invalid', 'user-id-invalid')
  }
  const name = valueAt(claims, pointers.name)
  const roles = strings(valueAt(claims, pointers.role), (one) => [one])
  const permissions = strings(valueAt(claims, pointers.permissions), (one) => one.split(' '))
  return Object.freeze({
    user_id: `${prefix}${id}`,
    ...(typeof name === 'string' && { name }),
    ...(roles[0] !== undefined && { role: roles[0] }),
    roles,
    permissions,
  })
}

/** The user with the thread of an assertion, if it names one. */
export function withThread(user: AgentUser, thread: unknown): AgentUser {
  return typeof thread === 'string' && thread !== '' ? Object.freeze({ ...user, thread }) : user
}

/** Own properties only: a claim is never found on a prototype. */
function valueAt(claims: Claims, pointer: string): unknown {
  let value: unknown = claims
  for (const raw of pointer.split('/').slice(1)) {
    const token = raw.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined
    value = (value as Claims)[token]
  }
  return value
}

/** A list of strings, or one string taken apart; anything else, a list with one member of another type too, is nothing. */
function strings(value: unknown, apart: (one: string) => readonly string[]): readonly string[] {
  const list: unknown = typeof value === 'string' ? apart(value) : value
  const good = Array.isArray(list) && list.every((one) => typeof one === 'string') ? list : []
  return Object.freeze(good.filter((one) => one !== ''))
}
