/** Decides which conditions on callers imply or exclude others. Anything uncertain counts as not implied. */
import type { CallerConditions, ClaimTest, Scalar } from '../core/decide/rules.ts'

/** True if each caller who meets all of `given` is sure to meet `asked`. */
export function implies(given: readonly CallerConditions[], { issuers, roles, permissions, claims }: CallerConditions): boolean {
  const among = (one: readonly string[] | undefined, wider: readonly string[]): boolean =>
    one !== undefined && one.every((item) => wider.includes(item))
  const held = given.flatMap(({ permissions: known }) => [...(known?.all ?? []), ...(known?.any?.length === 1 ? known.any : [])])
  return (
    (issuers === undefined || given.some((one) => among(one.issuers, issuers))) &&
    (roles === undefined || given.some((one) => among(one.roles, roles))) &&
    (permissions?.all === undefined || among(permissions.all, held)) &&
    (permissions?.any === undefined ||
      permissions.any.some((one) => held.includes(one)) ||
      given.some((one) => among(one.permissions?.any, permissions.any ?? []))) &&
    (claims ?? []).every((wanted) => given.some((one) => one.claims?.some((known) => testImplies(known, wanted))))
  )
}

/** True if no signed-in user can meet all of `given` at once. */
export function exclude(given: readonly CallerConditions[]): boolean {
  const issuers = given.flatMap((one) => (one.issuers === undefined ? [] : [one.issuers]))
  if (issuers.length > 0 && !issuers[0]?.some((issuer) => issuers.every((list) => list.includes(issuer)))) return true
  const claims = given.flatMap((one) => one.claims ?? [])
  return claims.some((one) => claims.some((other) => one.at === other.at && testsExclude(one, other)))
}

/** The values that a test accepts; null if they cannot be listed. */
function valuesOf(test: ClaimTest): readonly Scalar[] | null {
  return test.is === 'equal' ? [test.to] : test.is === 'in' ? test.list : null
}

function testImplies(known: ClaimTest, wanted: ClaimTest): boolean {
  if (known.at !== wanted.at) return false
  if (wanted.is === 'present') return known.is === 'present' ? known.wanted === wanted.wanted : wanted.wanted
  const [few, many] = [valuesOf(known), valuesOf(wanted)]
  if (few !== null && many !== null) return few.every((value) => many.includes(value))
  if (known.is === 'at-least' && wanted.is === 'at-least') return known.bound >= wanted.bound
  if (known.is === 'at-most' && wanted.is === 'at-most') return known.bound <= wanted.bound
  return known.is === 'containing' && wanted.is === 'containing' && known.item === wanted.item
}

function testsExclude(one: ClaimTest, other: ClaimTest): boolean {
  if (one.is === 'present') return !one.wanted && !(other.is === 'present' && !other.wanted)
  const [some, others] = [valuesOf(one), valuesOf(other)]
  if (some !== null && others !== null) return !some.some((value) => others.includes(value))
  return one.is === 'at-least' && other.is === 'at-most' && one.bound > other.bound
}
