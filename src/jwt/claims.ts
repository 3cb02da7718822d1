/** The claims and the type of a JWT (RFC 7519 §4, §5.1). */

export type Claims = Readonly<Record<string, unknown>>

/** The latest time of a Date, in seconds (ECMA-262 §21.4.1.1). */
const LAST_TIME = 8.64e12

/** A NumericDate in milliseconds. `1e400` parses as infinity and would never expire. */
export function timeIn(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) <= LAST_TIME ? value * 1000 : undefined
}

/** The audience is a string or a list of strings (RFC 7519 §4.1.3). */
export function includesAudience(audience: unknown, accepted: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(audience) ? audience : [audience]
  return named.every((one) => typeof one === 'string') && named.some((one) => accepted.includes(one))
}

/** The types of access tokens (RFC 7519 §5.1, RFC 9068 §2.1). A token without `typ` is accepted too. */
export const USUAL_TYPES: readonly string[] = ['jwt', 'at+jwt']

/** Folds a media type for comparison: RFC 7515 §4.1.9 allows omitting `application/`, and case does not count. */
export function tokenTypeName(text: string): string {
  // ASCII only: the lower case of U+212A, the Kelvin sign, is `k`.
  return text.replace(/[A-Z]/g, (one) => one.toLowerCase()).replace(/^application\//, '')
}

/** A token of another kind, such as a logout token, must not sign a user in (RFC 8725 §3.11). */
export function typeFits(typ: unknown, allowed: readonly string[] | undefined): boolean {
  if (typ === undefined) return allowed === undefined
  return typeof typ === 'string' && (allowed ?? USUAL_TYPES).includes(tokenTypeName(typ))
}
