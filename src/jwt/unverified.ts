/** Reads a token before it is verified: from a header, and to find the issuer that can verify it. */
import type { Claims } from './claims.ts'

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The form of a signed or encrypted JWT (RFC 7515 §3.1, RFC 7516 §3.1), which only its own issuer may see. */
export function looksLikeJwt(token: string): boolean {
  const parts = token.split('.').length
  return parts === 3 || parts === 5 || token.startsWith('eyJ')
}

/** Accepts one spelling of each part (RFC 4648 §3.5) and only UTF-8 (RFC 7519 §7.2): otherwise two names could read alike. */
export function readUnverified(token: string): { readonly header: Claims; readonly claims: Claims } | null {
  const [head, body, signature, ...more] = token.split('.').map(canonicalBytes)
  if (!head || !body || !signature || more.length > 0) return null
  try {
    const [header, claims] = [parsed(head), parsed(body)]
    return isClaims(header) && isClaims(claims) ? { header, claims } : null
  } catch {
    return null
  }
}

function canonicalBytes(part: string): Buffer | null {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : null
}

function parsed(bytes: Buffer): unknown {
  return JSON.parse(UTF8.decode(bytes))
}

function isClaims(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Of the header, with the scheme. */
export const MAX_LENGTH = 8192

/** b64token (RFC 6750 §2.1); it has no comma, with which servers join repeated headers. */
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
