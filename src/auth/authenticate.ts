/** From the Authorization header to a principal: the gate that every request passes first (spec "Authentication" 1-5). */
import type { Credential } from '../core/credential.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../core/principal.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { bearerToken } from './bearer.ts'
import { userOf, type Verified } from './claim-rules.ts'
import type { Issuer } from './issuer.ts'
import { verifySigned } from './signed-token.ts'
import { makeTokenCache, type TokenCache } from './token-cache.ts'
import { looksLikeJwt, readUnverified } from './unverified.ts'

/** Who is asking, and with what; no credential for who came without one. */
export interface Authenticated {
  readonly outcome: 'authenticated'
  readonly principal: Principal
  readonly credential: Credential | null
}

/**
 * Finds out who is asking.
 * @param authorization the one Authorization header, undefined if there was none
 * @returns who it is, or a refusal: 401, 400 for a malformed id, 503 while keys can't be had
 */
export type Authenticate = (authorization: string | undefined) => Promise<Authenticated | Refusal>

/** What the gate is made of. */
export interface AuthenticateParts {
  readonly mode: 'required' | 'optional' | 'off'
  readonly issuers: readonly Issuer[]
  /** How many verified tokens are remembered. */
  readonly tokenCache: number
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Told the user id of a client that comes with a token of its own. */
  readonly onClientToken: (userId: string) => void
}

/** Makes the gate for a mode and its issuers. */
export function makeAuthenticate(parts: AuthenticateParts): Authenticate {
  if (parts.mode === 'off') return () => Promise.resolve(without(EVERYBODY))
  const byIss = new Map(parts.issuers.map((issuer) => [issuer.config.issuer, issuer]))
  const opaque = parts.issuers.find((issuer) => issuer.introspection !== null)
  const cache = makeTokenCache(parts.tokenCache)

  /** The issuer that a token is for, by what it says and nothing else, before any key is looked up. */
  const issuerOf = (token: string) => {
    if (!looksLikeJwt(token)) return opaque === undefined ? refuse('token-malformed') : { issuer: opaque, unverified: null }
    const unverified = readUnverified(token)
    if (unverified === null) return refuse('token-malformed')
    const { iss } = unverified.claims
    const issuer = typeof iss === 'string' ? byIss.get(iss) : undefined
    return issuer === undefined ? refuse('issuer-unknown') : { issuer, unverified }
  }

  return async (authorization) => {
    if (authorization === undefined && parts.mode === 'optional') return without(ANONYMOUS)
    const credential = bearerToken(authorization)
    if ('outcome' in credential) return credential
    const { token } = credential
    const found = issuerOf(token)
    if ('outcome' in found) return found
    const { issuer, unverified } = found
    const verified = await remembered(cache, issuer, token, parts.clock, async () => {
      const result =
        unverified === null || isAsked(issuer, token)
          ? await issuer.introspection?.ask(token)
          : await verifySigned(issuer, token, unverified)
      if (result === undefined) return refuse('algorithm-not-allowed')
      if ('outcome' in result) return result
      return userOf(issuer.key, issuer.config, result.claims, parts.clock(), issuer.clockTolerance)
    })
    if (isRefusal(verified)) return verified
    if (verified.isClient) parts.onClientToken(verified.user.id)
    return { outcome: 'authenticated', principal: verified.user, credential: verified.credential }
  }
}

/** What is remembered of a token, or what `verify` makes of it, to be remembered as long as it may. */
async function remembered(
  cache: TokenCache,
  issuer: Issuer,
  token: string,
  clock: () => number,
  verify: () => Promise<Verified | Refusal>,
): Promise<Verified | Refusal> {
  const { key, keys, introspection } = issuer
  const asked = isAsked(issuer, token)
  // Keys that are fetched anew, or no longer trusted, are another generation: what was found with the old ones is forgotten.
  const generation = asked ? key : `${key} ${keys.generation()}`
  const known = asked || keys.trusted() ? cache.get(token, generation, clock()) : null
  if (known !== null) return known
  const verified = await verify()
  if (isRefusal(verified)) return verified
  // An answer of the issuer's is of now; what it signed is good to its end.
  const longest = asked ? Math.min(verified.end, clock() + (introspection?.cacheFor ?? 0)) : verified.end
  if (longest > clock()) cache.put(token, generation, verified, longest)
  return verified
}

/** True where the issuer is asked about a token, in place of its keys. */
function isAsked({ config }: Issuer, token: string): boolean {
  return !looksLikeJwt(token) || config.algorithms === undefined
}

function without(principal: Principal): Authenticated {
  return { outcome: 'authenticated', principal, credential: null }
}
