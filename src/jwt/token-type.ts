/** The `typ` of a JWT's header: a token of another kind, such as a logout token, must not sign a user in (RFC 8725 §3.11). */

/** The types of access tokens (RFC 7519 §5.1, RFC 9068 §2.1). A token without `typ` is accepted too. */
const USUAL: readonly string[] = ['jwt', 'at+jwt']

/** Folds a media type for comparison: RFC 7515 §4.1.9 allows omitting `application/`, and case does not count. */
export function tokenTypeName(text: string): string {
  // ASCII only: the lower case of U+212A, the Kelvin sign, is `k`.
  return text.replace(/[A-Z]/g, (one) => one.toLowerCase()).replace(/^application\//, '')
}

export function typeFits(typ: unknown, allowed: readonly string[] | undefined): boolean {
  if (typ === undefined) return allowed === undefined
  return typeof typ === 'string' && (allowed ?? USUAL).includes(tokenTypeName(typ))
}
