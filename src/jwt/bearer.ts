/** The form of a token in a request header (RFC 6750 §2.1). */

const MAX_LENGTH = 8192

/** b64token; it has no comma, with which servers join repeated headers. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** @param scheme the text before the token; `Bearer` exactly, as the reference gates compare it */
export function tokenIn(
  header: string,
  scheme: 'Bearer ' | '',
): { readonly token: string } | 'scheme-not-bearer' | 'token-too-long' | 'token-malformed' {
  if (!header.startsWith(scheme)) return 'scheme-not-bearer'
  if (isTooLong(header)) return 'token-too-long'
  const token = header.slice(scheme.length)
  return TOKEN.test(token) ? { token } : 'token-malformed'
}

export function isTooLong(header: string): boolean {
  return header.length > MAX_LENGTH
}
