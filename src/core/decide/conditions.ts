/** What a policy requires of a caller: issuer, roles, permissions, and claims that are compared by type. */
import { valueAt } from '../json/pointer.ts'
import type { Part, Principal, User } from './principal.ts'

export type Scalar = string | number | boolean

export type ClaimTest = { readonly at: string } & (
  | { readonly is: 'equal'; readonly to: Scalar }
  /** All items have the same type. */
  | { readonly is: 'in'; readonly list: readonly Scalar[] }
  | { readonly is: 'containing'; readonly item: Scalar }
  | { readonly is: 'at-least' | 'at-most'; readonly bound: number }
  | { readonly is: 'present'; readonly wanted: boolean }
)

/** A caller who is not signed in meets only the empty conditions. */
export interface CallerConditions {
  readonly issuers?: readonly string[]
  readonly roles?: readonly string[]
  readonly permissions?: { readonly any?: readonly string[]; readonly all?: readonly string[] }
  readonly claims?: readonly ClaimTest[]
}

export type CallerPart = 'issuer' | 'role' | 'permission' | 'claim'

/** @returns null if the caller meets all parts, `failed` if a claim has another type than it is compared with */
export function unmetOf(conditions: CallerConditions, principal: Principal): CallerPart | 'failed' | null {
  const { issuers, roles, permissions, claims } = conditions
  const user = principal.kind === 'user' ? principal : null
  if (issuers !== undefined && (user === null || !issuers.includes(user.issuer))) return 'issuer'
  const role = roles === undefined ? true : meets(user, 'role', (one) => roles.some((name) => one.roles.includes(name)))
  if (role === false) return 'role'
  const permission = permissions === undefined ? true : meets(user, 'permissions', (one) => hasPermissions(one, permissions))
  if (permission === false) return 'permission'
  if (claims !== undefined && user === null) return 'claim'
  // All claims are compared: a claim that merely differs must not hide a claim of a wrong type.
  const results = claims?.map((claim) => compare(claim, valueAt(user?.claims, claim.at))) ?? []
  if (results.includes('failed')) return 'failed'
  if (results.includes(false)) return 'claim'
  return role === 'failed' || permission === 'failed' ? 'failed' : null
}

/** An unreadable claim grants nothing, but a rule may deny by it. The result is therefore `failed` and not false. */
function meets(user: User | null, part: Part, has: (user: User) => boolean): boolean | 'failed' {
  if (user === null) return false
  return user.unreadable?.includes(part) === true ? 'failed' : has(user)
}

export function holdsOf(conditions: CallerConditions, principal: Principal): boolean | 'failed' {
  const unmet = unmetOf(conditions, principal)
  return unmet === 'failed' ? 'failed' : unmet === null
}

function hasPermissions(user: User, { any, all }: NonNullable<CallerConditions['permissions']>): boolean {
  const has = (permission: string): boolean => user.permissions.includes(permission)
  return (any === undefined || any.some(has)) && (all === undefined || all.every(has))
}

/** An absent claim meets only `exists: false`. Null is a value, of a type that nothing is compared with. */
function compare(test: ClaimTest, claim: unknown): boolean | 'failed' {
  if (test.is === 'present') return (claim !== undefined) === test.wanted
  if (claim === undefined) return false
  switch (test.is) {
    case 'equal':
      return typeof claim === typeof test.to ? claim === test.to : 'failed'
    case 'in':
      return typeof claim === typeof test.list[0] ? test.list.includes(claim as Scalar) : 'failed'
    case 'containing':
      if (!Array.isArray(claim) || !claim.every((item) => typeof item === typeof test.item)) return 'failed'
      return claim.includes(test.item)
    case 'at-least':
      return typeof claim === 'number' ? claim >= test.bound : 'failed'
    case 'at-most':
      return typeof claim === 'number' ? claim <= test.bound : 'failed'
  }
}
