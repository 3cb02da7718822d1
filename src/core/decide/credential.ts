/** What a verified credential says about itself: how long it is valid, and by what it can be revoked. */

/** A token that the gateway verified, or that an issuer vouched for. */
export interface Credential {
  /** Its `jti` (RFC 7519 §4.1.7), if it has one. */
  readonly tokenId: string | undefined
  /** Milliseconds since the epoch; undefined if the token does not say. */
  readonly issuedAt: number | undefined
  /** End of validity, clock tolerance included, in milliseconds since the epoch; undefined if the token does not say. */
  readonly expiresAt: number | undefined
}

/** Times are milliseconds since the epoch. */
export type Revocation =
  /** One token, of any issuer. */
  | { readonly kind: 'token'; readonly tokenId: string; readonly revokedAt: number }
  /** A user's tokens: those issued before a time, or all if `before` is null. */
  | { readonly kind: 'user'; readonly userId: string; readonly before: number | null; readonly revokedAt: number }
