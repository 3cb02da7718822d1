/** The user that an agent sees, made from verified claims only, and tool gating (docs/contributing/specification-map.md, "Authentication" 9). */
import { isPointer, valueAt } from '../../core/json/pointer.ts'
import type { Claims } from '../../jwt/claims.ts'
import { NotAuthenticated, PermissionDenied } from './errors.ts'

/** The resolved user (docs/contributing/specification-map.md). It is frozen, so that later code cannot add rights. */
export interface AgentUser {
  /** `alice` for a token, or `corp:alice` with `issuerKey`; always the latter for an assertion. */
  readonly user_id: string
  readonly name?: string
  readonly role?: string
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  /** The thread that the gateway authorized: only in assertions, for requests about a thread. */
  readonly thread?: string
}

/** JSON pointers (RFC 6901) into the claims, such as `/realm_access/roles`. */
export interface ClaimPointers {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly permissions: string
}

export const USUAL_POINTERS: ClaimPointers = { id: '/sub', name: '/name', role: '/role', permissions: '/permissions' }

const USER_ID = /^[^\u0000-\u001f\u007f-\u009f]{1,255}$/u

export function isClaimPointer(value: unknown): value is string {
  return typeof value === 'string' && isPointer(value)
}

/** Claims of a wrong type grant nothing. `prefix` is such as `corp:`. @throws {NotAuthenticated} if the id is no user id */
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

export function withThread(user: AgentUser, thread: unknown): AgentUser {
  return typeof thread === 'string' && thread !== '' ? Object.freeze({ ...user, thread }) : user
}

function strings(value: unknown, split: (one: string) => readonly string[]): readonly string[] {
  const list: unknown = typeof value === 'string' ? split(value) : value
  const good = Array.isArray(list) && list.every((one) => typeof one === 'string') ? list : []
  return Object.freeze(good.filter((one) => one !== ''))
}

/** Also accepts a user that an agent's framework has copied. */
type Grants = Pick<AgentUser, 'user_id'> & Partial<Pick<AgentUser, 'role' | 'roles' | 'permissions'>>

/** Names are compared exactly; there are no wildcards. */
export function hasPermission(user: Grants, permission: string): boolean {
  return lists(user.permissions, named(permission))
}

/** Comes first; only then ask the user to confirm. @throws {PermissionDenied} if the user lacks the permission */
export function requirePermission(user: Grants, permission: string): void {
  if (!hasPermission(user, permission)) throw new PermissionDenied(user.user_id, 'permission', permission)
}

/** @throws {PermissionDenied} if the user lacks the role */
export function requireRole(user: Grants, role: string): void {
  if (user.role === named(role) || lists(user.roles, role)) return
  throw new PermissionDenied(user.user_id, 'role', role)
}

/** Binds an assertion to its thread. @throws {NotAuthenticated} `other-thread`, also for a token, which has no thread */
export function expectThread(user: Pick<AgentUser, 'thread'>, threadId: string): void {
  if (user.thread === undefined || user.thread !== threadId) throw new NotAuthenticated('other-thread')
}

/** In plain JavaScript, a misspelled constant is undefined: no user may have that permission. */
function named(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new TypeError('name the permission or role that is required')
  return value
}

/** `includes` of a string would find a part of a permission. */
function lists(values: unknown, value: string): boolean {
  return Array.isArray(values) && values.includes(value)
}
