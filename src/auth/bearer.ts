/** Reads the one bearer token of a request (RFC 6750 §2.1; docs/specification.md). */
import { refuse, type Refusal } from '../core/reasons.ts'

/** In characters: a longer header is not decoded. */
const MAX_TOKEN_LENGTH = 8192

// RFC 6750 §2.1: b64token. The scheme is exactly `Bearer`, as the reference gates compare it.
const CREDENTIALS = /^Bearer ([A-Za-z0-9\-._~+/]+=*)$/

/**
 * @param authorization the header's value, undefined if there was none
 * @returns the token, or a refusal whose code is `credential-missing` or `credential-invalid`
 */
export function bearerToken(authorization: string | undefined): { readonly token: string } | Refusal {
  if (authorization === undefined) return refuse('credential-missing')
  if (!authorization.startsWith('Bearer ')) return refuse('scheme-not-bearer')
  if (isTooLong(authorization)) return refuse('token-too-long')
  const token = CREDENTIALS.exec(authorization)?.[1]
  return token === undefined ? refuse('token-malformed') : { token }
}

export function isTooLong(authorization: string): boolean {
  return authorization.length > MAX_TOKEN_LENGTH
}
