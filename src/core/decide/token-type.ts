/** The `typ` of a JWT's header: keeps a token of another kind, such as a logout token, from signing anyone in (RFC 8725 §3.11). */

/** The types that access tokens have (RFC 7519 §5.1, RFC 9068 §2.1); a token without `typ` is accepted beside them. */
const USUAL: readonly string[] = ['jwt', 'at+jwt']

/** A media type in the form in which two are compared: RFC 7515 §4.1.9 lets `application/` be left out, and case does not count. */
export function tokenTypeName(text: string): string {
  // ASCII alone: U+212A, the Kelvin sign, has `k` as its lower case.
  return text.replace(/[A-Z]/g, (one) => one.toLowerCase()).replace(/^application\//, '')
}

/**
 * Whether a token may have this type.
 * @param allowed the configured types, as tokenTypeName writes them, of which a token must then have one
 */
export function typeFits(typ: unknown, allowed: readonly string[] | undefined): boolean {
  if (typ === undefined) return allowed === undefined
  return typeof typ === 'string' && (allowed ?? USUAL).includes(tokenTypeName(typ))
}
