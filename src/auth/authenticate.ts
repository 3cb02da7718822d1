/** Turns a bearer token into a principal, before any other check (docs/contributing/specification-map.md, "Authentication" 1-5). */
import { takesHeader } from '../config/issuer-schema.ts'
import type { Credential } from '../core/decide/credential.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../core/decide/principal.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { isTooLong, tokenIn, looksLikeJwt, readUnverified } from '../jwt/unverified.ts'
import { type Claims, typeFits } from '../jwt/claims.ts'
import { verifySigned } from '../jwt/verify.ts'
import { audienceFits, userOf } from './claim-rules.ts'
import type { Issuer } from './issuer.ts'
import { makeTokenCache, type Lasting } from './token-cache.ts'

export interface Authenticated {
  readonly outcome: 'authenticated'
  readonly principal: Principal
  readonly credential: Credential | null
  /** Null without a credential. */
  readonly sentIn: 'header' | 'cookie' | null
}

/** The header, or the cookie of this name. */
export type Place = 'header' | { readonly cookie: string }

/**
 * The caller, or a refusal: 401, 400, or 503 without keys. Synchronous if cached; `connection` saves computing a digest.
 * @param place of the token, if not every issuer accepts it there
 */
export type Authenticate = (
  authorization: string | undefined,
  connection?: object,
  place?: Place,
) => Authenticated | Refusal | Promise<Authenticated | Refusal>

interface AuthenticateParts {
  readonly mode: 'required' | 'optional' | 'off'
  readonly issuers: readonly Issuer[]
  readonly tokenCache: number
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly onClientToken: (userId: string) => void
}

interface CachedResult extends Lasting {
  readonly authenticated: Authenticated
  readonly isClient: boolean
  readonly issuer: Issuer
  /** Null where the issuer was asked instead. */
  readonly keysVersion: number | null
}

export function makeAuthenticate(parts: AuthenticateParts): Authenticate {
  if (parts.mode === 'off') return () => withoutCredential(EVERYBODY)
  const { clock } = parts
  const byIss = new Map(parts.issuers.map((issuer) => [issuer.config.issuer, issuer]))
  const opaque = parts.issuers.find((issuer) => issuer.introspection !== null)
  const cache = makeTokenCache<CachedResult>(parts.tokenCache)
  // The header itself is kept no longer than its connection.
  const latest = new WeakMap<object, { readonly authorization: string; readonly known: CachedResult }>()
  const findCached = (authorization: string, connection: object | undefined): CachedResult | null => {
    const now = clock()
    // An expired result stays expired, even if the clock is set back.
    if (connection !== undefined && latest.get(connection)?.authorization === authorization) latest.delete(connection)
    const known = isTooLong(authorization) ? null : cache.get(authorization, now)
    if (known === null || !isValid(known, now)) return null
    if (connection !== undefined) latest.set(connection, { authorization, known })
    return known
  }

  const issuerOf = (token: string) => {
    if (!looksLikeJwt(token)) return opaque === undefined ? refuse('token-malformed') : { issuer: opaque, unverified: null }
    const unverified = readUnverified(token)
    if (unverified === null) return refuse('token-malformed')
    const { iss } = unverified.claims
    const issuer = typeof iss === 'string' ? byIss.get(iss) : undefined
    return issuer === undefined ? refuse('issuer-unknown') : { issuer, unverified }
  }

  const verify = async (authorization: string | undefined, place: Place | undefined): Promise<Authenticated | Refusal> => {
    const credential = bearerToken(authorization)
    if ('outcome' in credential) return credential
    const { token } = credential
    const found = issuerOf(token)
    if ('outcome' in found) return found
    const { issuer, unverified } = found
    // Before the issuer is asked: it must not get the sessions of others.
    if (!accepts(issuer, place)) return refuse('credential-place')
    // Checked before any key is fetched and before the issuer is asked.
    if (unverified !== null && !typeFits(unverified.header['typ'], issuer.config.tokenTypes)) return refuse('token-type')
    const asked = usesIntrospection(issuer, token)
    // A fetch meanwhile gives the keys another version.
    const keysVersion = asked ? null : issuer.keys.version
    const verified =
      unverified === null || asked ? await issuer.introspection?.ask(token) : await signedClaims(issuer, token, unverified.header)
    if (verified === undefined) return refuse('algorithm-not-allowed')
    if ('outcome' in verified) return verified
    const user = userOf(issuer.key, issuer.config, verified.claims, clock(), issuer.clockTolerance)
    if (isRefusal(user)) return user
    const { user: principal, credential: own, end, isClient } = user
    const authenticated: Authenticated = { outcome: 'authenticated', principal, credential: own, sentIn: 'header' }
    // An introspection answer is valid for a configured time, a signed token until its end.
    const until = asked ? Math.min(end, clock() + (issuer.introspection?.cacheFor ?? 0)) : end
    const result: CachedResult = { authenticated, isClient, issuer, keysVersion, until }
    if (until > clock() && authorization !== undefined) cache.put(authorization, result)
    if (isClient) parts.onClientToken(principal.id)
    return authenticated
  }

  return (authorization, connection, place) => {
    if (authorization === undefined)
      return parts.mode === 'optional' ? withoutCredential(ANONYMOUS) : verify(authorization, place)
    const last = connection === undefined ? undefined : latest.get(connection)
    const isKnown = last?.authorization === authorization && isValid(last.known, clock())
    const known = isKnown ? last.known : findCached(authorization, connection)
    if (known === null || (place !== undefined && !accepts(known.issuer, place))) return verify(authorization, place)
    if (known.isClient) parts.onClientToken(known.authenticated.principal.id)
    return known.authenticated
  }
}

function accepts({ config: { credential } }: Issuer, place: Place | undefined): boolean {
  if (place === undefined) return true
  return place === 'header' ? takesHeader(credential) : credential.cookie === place.cookie
}

/** False for a result of older keys, and for keys that are no longer trusted: the token must be verified again. */
function isValid({ issuer: { keys }, keysVersion, until }: CachedResult, now: number): boolean {
  if (now >= until) return false
  if (keysVersion === null) return true
  return keysVersion === keys.version && now >= keys.trustedFrom && now <= keys.trustedUntil
}

async function signedClaims(
  { config, keys }: Issuer,
  token: string,
  header: Claims,
): Promise<{ readonly claims: Claims } | Refusal> {
  const result = await verifySigned(token, header, config.algorithms ?? [], keys)
  if (typeof result === 'string') return refuse(result)
  if (result.isExpired) return refuse(audienceFits(config, result.claims) ? 'token-expired' : 'audience-mismatch')
  return result
}

function usesIntrospection({ config }: Issuer, token: string): boolean {
  return !looksLikeJwt(token) || config.algorithms === undefined
}

function withoutCredential(principal: Principal): Authenticated {
  return { outcome: 'authenticated', principal, credential: null, sentIn: null }
}

export function bearerToken(authorization: string | undefined): { readonly token: string } | Refusal {
  if (authorization === undefined) return refuse('credential-missing')
  const read = tokenIn(authorization, 'Bearer ')
  return typeof read === 'string' ? refuse(read) : read
}
