/** Reads and shows revocations, alike in the admin API and on the command line. */
import type { Revocation } from '../core/decide/credential.ts'
import { isUserId } from '../core/route/ids.ts'
import type { Revoked } from '../store/port/revocations.ts'

// RFC 3339 §5.6 with `T` and a zone: without a zone, the time would depend on the machine that reads it.
const TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Reads a time such as `2026-01-31T12:00:00Z`. In milliseconds since the epoch; null for anything else. */
export function timeOf(text: string): number | null {
  const date = TIME.exec(text)?.[1]
  if (date === undefined) return null
  // Date.parse accepts 31 February as a day in March.
  const day = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(day) || !new Date(day).toISOString().startsWith(date)) return null
  const time = Date.parse(text)
  if (Number.isNaN(time)) return null
  // A zone may move the time out of the years 0000 to 9999, which RFC 3339 can't write.
  return TIME.test(new Date(time).toISOString()) ? time : null
}

// RFC 7519 §4.1.7: any string. A token id with control characters can be revoked only through its user.
const TOKEN_ID = /^[^\u0000-\u001f\u007f-\u009f]{1,1024}$/u

/** Accepts 1–1024 characters, no controls, no lone surrogates. */
export function isTokenId(text: string): boolean {
  return text.isWellFormed() && TOKEN_ID.test(text)
}

/**
 * Checks a user id as an operator wrote it. Revoking an impossible user would have no effect, and the operator would not notice.
 * @param text `issuer:subject`, split at the first colon
 * @param issuers the issuer keys of the configuration
 * @returns null if it is right; otherwise whether the form or the issuer is wrong, and which issuer was named
 */
export function userFault(text: string, issuers: readonly string[]): 'form' | { readonly issuer: string } | null {
  const colon = text.indexOf(':')
  if (colon < 1 || !isUserId(text.slice(colon + 1))) return 'form'
  const issuer = text.slice(0, colon)
  return issuers.includes(issuer) ? null : { issuer }
}

export function unknownIssuer(issuers: readonly string[]): string {
  return `The configuration has no issuer of this key. It has: ${issuers.join(', ')}.`
}

export function revocationOf(what: Revoked, list: readonly Revocation[]): Revocation | undefined {
  return list.find((one) =>
    'tokenId' in what ? one.kind === 'token' && one.tokenId === what.tokenId : one.kind === 'user' && one.userId === what.userId,
  )
}

/** Times are in RFC 3339 format; `before` is null for all tokens of the user, including future ones. */
export function shown(revocation: Revocation) {
  const revokedAt = new Date(revocation.revokedAt).toISOString()
  if (revocation.kind === 'token') return { tokenId: revocation.tokenId, revokedAt }
  const { userId: user, before } = revocation
  return { user, before: before === null ? null : new Date(before).toISOString(), revokedAt }
}

/** The subject of a revocation as one word for a log line: `token:…` or `user:issuer:subject`. */
export function wordFor(what: Revoked): string {
  return 'tokenId' in what ? `token:${what.tokenId}` : `user:${what.userId}`
}
