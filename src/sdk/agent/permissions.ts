/**
 * Tool gating (docs/specification.md, "Authentication" 9). The order is: authorise with `requirePermission`, then ask the user to confirm, then
 * execute; nobody is asked to confirm what they may not do. Permissions and roles are compared to the letter.
 */
import { NotAuthenticated, PermissionDenied } from './errors.ts'
import type { AgentUser } from './user.ts'

/** What these need of a user; also one that an agent's framework handed on. */
type Grants = Pick<AgentUser, 'user_id'> & Partial<Pick<AgentUser, 'role' | 'roles' | 'permissions'>>

/** True if the user has the permission. */
export function hasPermission(user: Grants, permission: string): boolean {
  return lists(user.permissions, named(permission))
}

/**
 * Stands before everything that not everybody may do.
 * @throws {PermissionDenied} if the user lacks the permission
 */
export function requirePermission(user: Grants, permission: string): void {
  if (!hasPermission(user, permission)) throw new PermissionDenied(user.user_id, 'permission', permission)
}

/**
 * The same for a role.
 * @throws {PermissionDenied} if the user lacks the role
 */
export function requireRole(user: Grants, role: string): void {
  if (user.role === named(role) || lists(user.roles, role)) return
  throw new PermissionDenied(user.user_id, 'role', role)
}

/**
 * Holds an assertion against the thread that the agent works on, so that one made for a thread opens no other.
 * @param user the user of an assertion; the one of a token has no thread and fits none
 * @param threadId the thread of the run
 * @throws {NotAuthenticated} `other-thread`
 */
export function expectThread(user: Pick<AgentUser, 'thread'>, threadId: string): void {
  if (user.thread === undefined || user.thread !== threadId) throw new NotAuthenticated('other-thread')
}

/** In plain JavaScript a permission that is undefined, by a slip of the pen, must not be one that anybody has. */
function named(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new TypeError('name the permission or role that is required')
  return value
}

/** A string has `includes`, too, and would find a part of a permission. */
function lists(values: unknown, value: string): boolean {
  return Array.isArray(values) && values.includes(value)
}
