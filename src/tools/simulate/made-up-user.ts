/** Makes up users: from claims as an issuer would give them, read in the same way as those of a token. */
import type { Config } from '../../config/schema.ts'
import type { Json } from '../../core/json/read.ts'
import { userFromClaims, type User } from '../../core/decide/principal.ts'
import type { Refusal } from '../../core/reasons.ts'

export interface Attributes {
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  /** Claims by JSON pointer. If both the present and the wanted value are lists, they are joined. */
  readonly claims: readonly (readonly [at: string, value: Json])[]
}

export const NO_ATTRIBUTES: Attributes = { roles: [], permissions: [], claims: [] }

/**
 * @param issuer the key of a configured issuer
 * @returns a refusal if the claims leave no user id
 */
export function makeUser(issuer: string, subject: string, attributes: Attributes, { authentication }: Config): User | Refusal {
  const config = authentication.issuers[issuer]
  if (config === undefined) throw new Error(`there is no issuer ${issuer}`)
  const pointers = config.claims
  const claims: Branch = {}
  put(claims, '/iss', config.issuer)
  put(claims, pointers.id, subject)
  if (attributes.roles.length > 0) put(claims, pointers.role, [...attributes.roles])
  if (attributes.permissions.length > 0) put(claims, pointers.permissions, [...attributes.permissions])
  for (const [at, value] of attributes.claims) put(claims, at, value)
  return userFromClaims(issuer, claims, pointers)
}

type Branch = Record<string, unknown>

/** Puts a value at a JSON pointer (RFC 6901 §4). It replaces anything in the way. */
function put(claims: Branch, pointer: string, value: Json): void {
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = steps.pop() ?? ''
  let inner = claims
  for (const step of steps) {
    const next = Object.hasOwn(inner, step) ? inner[step] : undefined
    const branch = typeof next === 'object' && next !== null ? (next as Branch) : {}
    if (next !== branch) define(inner, step, branch)
    inner = branch
  }
  const known = Object.hasOwn(inner, last) ? inner[last] : undefined
  const joined =
    Array.isArray(known) && Array.isArray(value)
      ? [...new Set([...(known as readonly Json[]), ...(value as readonly Json[])])]
      : value
  define(inner, last, joined)
}

/** A claim may have the name `__proto__`. */
function define(inner: Branch, name: string, value: unknown): void {
  Object.defineProperty(inner, name, { value, enumerable: true, writable: true, configurable: true })
}
