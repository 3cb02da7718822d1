/** The rules for verified claims, the same for signed and opaque tokens. */
import type { IssuerConfig } from '../config/schema.ts'
import type { Credential } from '../core/decide/credential.ts'
import { valueAt } from '../core/json/pointer.ts'
import { userFromClaims, type User } from '../core/decide/principal.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { includesAudience, timeIn, type Claims } from '../jwt/claims.ts'
import { smallest } from '../core/json/extremes.ts'

export interface Verified {
  readonly user: User
  readonly credential: Credential
  /** Milliseconds since the epoch; infinite if the token has no end. */
  readonly end: number
  /** True if no person signed in: the subject is the client itself (RFC 9068 §2.2, RFC 6749 §4.4). */
  readonly isClient: boolean
}

/** `now` is in milliseconds since the epoch, the clock `tolerance` in milliseconds. */
export function userOf(key: string, config: IssuerConfig, claims: Claims, now: number, tolerance: number): Verified | Refusal {
  if (!audienceFits(config, claims)) return refuse('audience-mismatch')
  for (const [pointer, wanted] of Object.entries(config.requiredClaims)) {
    if (!isAsWanted(valueAt(claims, pointer), wanted)) return refuse('claim-missing')
  }
  const issuedAt = timeIn(claims['iat'])
  const { maxTokenAge } = config
  if (maxTokenAge !== undefined) {
    if (issuedAt === undefined) return refuse('claim-missing')
    if (now - issuedAt > maxTokenAge + tolerance) return refuse('token-too-old')
    // A token issued in the future would never become too old.
    if (issuedAt - now > tolerance) return refuse('token-not-yet-valid')
  }
  const user = userFromClaims(key, claims, config.claims)
  if (isRefusal(user)) return user
  const ends = [timeIn(claims['exp']), ...(maxTokenAge === undefined || issuedAt === undefined ? [] : [issuedAt + maxTokenAge])]
  const end = smallest(ends.filter((one) => one !== undefined))
  const tokenId = claims['jti']
  return {
    user,
    credential: {
      tokenId: typeof tokenId === 'string' ? tokenId : undefined,
      // A future issue time is ignored: otherwise a revocation of all tokens before a time would miss this token.
      issuedAt: issuedAt !== undefined && issuedAt - now > tolerance ? undefined : issuedAt,
      expiresAt: end === Infinity ? undefined : end + tolerance,
    },
    end,
    isClient: claims['client_id'] === user.subject,
  }
}

export function audienceFits(config: IssuerConfig, claims: Claims): boolean {
  return includesAudience(valueAt(claims, config.audienceClaim), config.audiences)
}

/** Pointers to the claims that a token of the issuer must have, and that these claims lack. */
export function lackedClaims(claims: Claims, config: IssuerConfig): readonly string[] {
  const { audienceClaim, requiredClaims, maxTokenAge } = config
  const needed = ['/iss', audienceClaim, config.claims.id, '/exp', ...(maxTokenAge === undefined ? [] : ['/iat'])]
  return [...new Set([...needed, ...Object.keys(requiredClaims)])].filter((pointer) => {
    const value = valueAt(claims, pointer)
    return value === undefined || value === null
  })
}

/** Null accepts any value, a list any of its values; an absent claim never matches. */
function isAsWanted(value: unknown, wanted: IssuerConfig['requiredClaims'][string]): boolean {
  if (value === undefined || value === null) return false
  if (wanted === null) return true
  return Array.isArray(wanted) ? wanted.some((one) => one === value) : wanted === value
}
