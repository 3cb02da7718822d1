/** What a verified credential says about itself: how long it is valid, and by what it can be revoked. */

/** A verified token. Times are milliseconds since the epoch; undefined if the token does not say. */
export interface Credential {
  /** `jti` (RFC 7519 §4.1.7). */
  readonly tokenId: string | undefined
  readonly issuedAt: number | undefined
  /** Includes the clock tolerance. */
  readonly expiresAt: number | undefined
}

/** Times are milliseconds since the epoch. */
export type Revocation =
  | { readonly kind: 'token'; readonly tokenId: string; readonly revokedAt: number }
  /** Tokens issued before a time, or all tokens if `before` is null. */
  | { readonly kind: 'user'; readonly userId: string; readonly before: number | null; readonly revokedAt: number }
