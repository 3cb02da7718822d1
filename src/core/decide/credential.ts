/** What a verified credential says of itself, besides of whom it speaks: how long it is good, and by what it can be revoked. */

/** A token that was verified, or that an issuer vouched for. */
export interface Credential {
  /** Its `jti` (RFC 7519 §4.1.7), if it has one. */
  readonly tokenId: string | undefined
  /** When it was issued, in milliseconds since the epoch; undefined if it doesn't say. */
  readonly issuedAt: number | undefined
  /** When it is taken no longer, clock tolerance included, in milliseconds since the epoch; undefined if it doesn't say. */
  readonly expiresAt: number | undefined
}

/** Something that was revoked. Times are milliseconds since the epoch. */
export type Revocation =
  /** One token, of whatever issuer. */
  | { readonly kind: 'token'; readonly tokenId: string; readonly revokedAt: number }
  /** A user's tokens: all, or those that were issued before a time. */
  | { readonly kind: 'user'; readonly userId: string; readonly before: number | null; readonly revokedAt: number }
