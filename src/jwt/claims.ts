/** The claims of a JWT (RFC 7519 §4). */

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
