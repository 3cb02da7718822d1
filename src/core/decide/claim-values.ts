/** Takes from a token only the claims that a policy compares: enough for decisions, and nothing else about a person. */
import { isObject, type Json } from '../json/read.ts'
import { isPointer, valueAt } from '../json/pointer.ts'
import type { CallerConditions, Rules } from './rules.ts'

export type ClaimValues = Readonly<Record<string, Json>>

export function claimPointersOf({ routes }: Pick<Rules, 'routes'>): readonly string[] {
  const pointers = (conditions: CallerConditions | null): readonly string[] => (conditions?.claims ?? []).map(({ at }) => at)
  const rules = Object.values(routes).flatMap((route) => route.rules)
  return [...new Set(rules.flatMap(({ when, unless }) => [...pointers(when), ...pointers(unless)]))].sort()
}

/** Omits absent claims. An object becomes an empty object: a rule looks into it only by a separate pointer. */
export function takeClaims(claims: unknown, pointers: readonly string[]): ClaimValues {
  const found = pointers.map((pointer) => [pointer, valueAt(claims, pointer)] as const).filter(([, value]) => value !== undefined)
  return Object.fromEntries(found.map(([pointer, value]) => [pointer, outlined(value as Json)]))
}

/** Builds claims in which each pointer finds its value; null if a name is not a pointer below the top level. */
export function claimsFrom(values: ClaimValues): Json | null {
  let claims: Json = {}
  // Outer values come first: inner values go into them.
  const pointers = Object.keys(values).sort((one, other) => one.length - other.length)
  for (const pointer of pointers) {
    if (pointer === '' || !isPointer(pointer)) return null
    const tokens = pointer.split('/').slice(1)
    claims = put(
      claims,
      tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~')),
      values[pointer] as Json,
    )
  }
  return claims
}

function outlined(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => (isScalar(item) ? item : Array.isArray(item) ? [] : {}))
  return isScalar(value) ? value : {}
}

function isScalar(value: Json): boolean {
  return typeof value !== 'object' || value === null
}

function put(into: Json, [token, ...rest]: readonly string[], value: Json): Json {
  if (token === undefined) return value
  const inner = valueAt(into, `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`) as Json | undefined
  const next = put(inner ?? {}, rest, value)
  if (Array.isArray(into)) return into.map((item: Json, at) => (String(at) === token ? next : item))
  // Not an assignment: `__proto__` is an ordinary name here.
  return isObject(into) ? Object.fromEntries([...Object.entries(into), [token, next]]) : into
}
