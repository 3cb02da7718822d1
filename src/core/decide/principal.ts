/** Who is asking. The gateway takes this from the verified claims of a token, never from anything that a caller could write. */
import { isUserId } from '../route/ids.ts'
import { valueAt } from '../json/pointer.ts'
import { refuse, type Refusal } from '../reasons.ts'

export type Part = 'role' | 'permissions'

export interface User {
  readonly kind: 'user'
  /** `issuer-key:subject`, as in the ownership table, logs and files. */
  readonly id: string
  readonly issuer: string
  readonly subject: string
  readonly name: string | undefined
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  /** The groups that the token names, as `issuer-key:group`. A grant to a group is a grant to the user. */
  readonly groups: readonly string[]
  /** Role and permissions, if their claim is present but has an unreadable form: they grant nothing. */
  readonly unreadable?: readonly Part[]
  readonly claims: unknown
}

export interface Anonymous {
  readonly kind: 'anonymous'
  readonly id: 'anonymous'
  /** True in mode `off`: every caller is this one user, with the rights of a signed-in user. */
  readonly standsForAll: boolean
}

export type Principal = User | Anonymous

export interface ClaimPointers {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly permissions: string
  readonly groups: string
}

/** For requests without a credential in mode `optional`. */
export const ANONYMOUS: Anonymous = { kind: 'anonymous', id: 'anonymous', standsForAll: false }

export const EVERYBODY: Anonymous = { kind: 'anonymous', id: 'anonymous', standsForAll: true }

/** Claims of a wrong shape grant nothing; a malformed id is an error (docs/contributing/specification-map.md, "Errors", 400). */
export function userFromClaims(issuer: string, claims: unknown, pointers: ClaimPointers): User | Refusal {
  const subject = valueAt(claims, pointers.id)
  if (!isUserId(subject)) return refuse('user-id-invalid')
  const name = valueAt(claims, pointers.name)
  const role = valueAt(claims, pointers.role)
  const permissions = valueAt(claims, pointers.permissions)
  const groups = valueAt(claims, pointers.groups)
  const unreadable = [
    ...(isReadable(role) ? [] : (['role'] as const)),
    ...(isReadable(permissions) ? [] : (['permissions'] as const)),
  ]
  return {
    kind: 'user',
    id: `${issuer}:${subject}`,
    issuer,
    subject,
    name: typeof name === 'string' ? name : undefined,
    roles: typeof role === 'string' ? nonEmpty([role]) : strings(role),
    permissions: typeof permissions === 'string' ? nonEmpty(permissions.split(' ')) : strings(permissions),
    groups: [...new Set(typeof groups === 'string' ? [groups] : strings(groups))]
      .filter(isUserId)
      .map((group) => `${issuer}:${group}`),
    ...(unreadable.length === 0 ? {} : { unreadable }),
    claims,
  }
}

function isReadable(value: unknown): boolean {
  if (value === undefined || value === null || typeof value === 'string') return true
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/** A list with one member of another type grants nothing. */
function strings(value: unknown): readonly string[] {
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) return []
  return nonEmpty(value)
}

function nonEmpty(values: readonly string[]): readonly string[] {
  return values.filter((value) => value !== '')
}
