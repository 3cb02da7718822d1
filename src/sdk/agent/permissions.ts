/** Tool gating (docs/specification.md, "Authentication" 9): first require the permission, then ask the user to confirm. */
import { NotAuthenticated, PermissionDenied } from './errors.ts'
import type { AgentUser } from './user.ts'

/** Also accepts a user that an agent's framework has copied. */
type Grants = Pick<AgentUser, 'user_id'> & Partial<Pick<AgentUser, 'role' | 'roles' | 'permissions'>>

/** Names are compared exactly; there are no wildcards. */
export function hasPermission(user: Grants, permission: string): boolean {
  return lists(user.permissions, named(permission))
}

/** @throws {PermissionDenied} if the user lacks the permission */
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
