/** From the Authorization header to a principal: the gate that every request passes first (spec "Authentication" 1-5). */
import { TokenError, TOKEN_ERROR_CODES } from 'fast-jwt'
import { ANONYMOUS, EVERYBODY, userFromClaims, type Principal } from '../core/principal.ts'
import { valueAt } from '../core/pointer.ts'
import { isRefusal, refuse, type Reason, type Refusal } from '../core/reasons.ts'
import { bearerToken } from './bearer.ts'
import type { Issuer } from './issuer.ts'
import type { Algorithm, VerificationKey } from './key.ts'

/**
 * Finds out who is asking.
 * @param authorization the one Authorization header, undefined if there was none
 * @returns the principal, or a refusal: 401, 400 for a malformed id, 503 while keys can't be had
 */
export type Authenticate = (authorization: string | undefined) => Promise<Principal | Refusal>

/** Keys that are tried for a token without a key id: more would let a token cost more than a request should. */
const MAX_CANDIDATES = 8

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The last time that a date can hold (ECMA-262 §21.4.1.1), in seconds: what lies beyond is no end. */
const LAST_TIME = 8.64e12

/**
 * Makes the gate for a mode and its issuers.
 * @param onClientToken told the user id of a client that comes with a token of its own
 */
export function makeAuthenticate(
  mode: 'required' | 'optional' | 'off',
  issuers: readonly Issuer[],
  onClientToken: (userId: string) => void,
): Authenticate {
  if (mode === 'off') return () => Promise.resolve(EVERYBODY)
  const byIss = new Map(issuers.map((issuer) => [issuer.config.issuer, issuer]))
  return async (authorization) => {
    if (authorization === undefined && mode === 'optional') return ANONYMOUS
    const credential = bearerToken(authorization)
    if ('outcome' in credential) return credential
    return verify(credential.token, byIss, onClientToken)
  }
}

async function verify(
  token: string,
  byIss: ReadonlyMap<string, Issuer>,
  onClientToken: (userId: string) => void,
): Promise<Principal | Refusal> {
  const parts = readUnverified(token)
  if (parts === null) return refuse('token-malformed')
  const { header, claims } = parts
  // Nothing that a header can call critical is understood here (RFC 7515 §4.1.11); `b64` is one of them (RFC 7797).
  if ('crit' in header || 'b64' in header) return refuse('token-critical-extension')
  const issuer = typeof claims['iss'] === 'string' ? byIss.get(claims['iss']) : undefined
  if (issuer === undefined) return refuse('issuer-unknown')
  const algorithm = issuer.config.algorithms.find((name) => name === header['alg'])
  if (algorithm === undefined) return refuse('algorithm-not-allowed')
  const kid = header['kid']
  if (kid !== undefined && typeof kid !== 'string') return refuse('token-malformed')
  const found = await issuer.keys.find(kid)
  if (found === 'unavailable') return refuse('keys-unavailable')
  const keys = found.filter((key) => key.fits(algorithm)).slice(0, MAX_CANDIDATES)
  const verified = verifyWith(keys, algorithm, token)
  if ('outcome' in verified) {
    // `credential-expired` is said only of a token that is good in every other respect.
    return verified.reason === 'token-expired' && !audienceFits(issuer, claims) ? refuse('audience-mismatch') : verified
  }
  if (!audienceFits(issuer, verified.claims)) return refuse('audience-mismatch')
  const user = userFromClaims(issuer.key, verified.claims, issuer.config.claims)
  // No person signed in: the subject of such a token is the client itself (RFC 9068 §2.2, RFC 6749 §4.4).
  if (!isRefusal(user) && verified.claims['client_id'] === user.subject) onClientToken(user.id)
  return user
}

type Claims = Readonly<Record<string, unknown>>

/**
 * Header and claims before anything is verified. Only one spelling of each part counts (RFC 4648 §3.5), or one token would
 * have many; and only UTF-8 (RFC 7519 §7.2), or two names would be read as one, each unknown byte replaced by the same.
 */
function readUnverified(token: string): { readonly header: Claims; readonly claims: Claims } | null {
  const [head, body, signature, ...more] = token.split('.').map(canonicalBytes)
  if (!head || !body || !signature || more.length > 0) return null
  try {
    const [header, claims] = [parsed(head), parsed(body)]
    return isClaims(header) && isClaims(claims) ? { header, claims } : null
  } catch {
    return null
  }
}

/** What a part says, or null if it could be written in another way. */
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

function verifyWith(
  keys: readonly VerificationKey[],
  algorithm: Algorithm,
  token: string,
): { readonly claims: Claims } | Refusal {
  let refusal = refuse('key-unknown')
  for (const key of keys) {
    const result = attempt(key, algorithm, token, false)
    if (!('outcome' in result)) return hasEnd(result.claims) ? result : refuse('claim-missing')
    refusal = result
    if (result.reason === 'token-expired') {
      const otherwise = attempt(key, algorithm, token, true)
      return 'outcome' in otherwise ? otherwise : result
    }
    if (result.reason !== 'signature-invalid') return result
  }
  return refusal
}

/** True for a token that ends: `1e400` is read as infinity, and would be good for ever. */
function hasEnd(claims: Claims): boolean {
  const { exp } = claims
  return typeof exp === 'number' && Math.abs(exp) <= LAST_TIME
}

function attempt(
  key: VerificationKey,
  algorithm: Algorithm,
  token: string,
  ignoreExpiration: boolean,
): { readonly claims: Claims } | Refusal {
  try {
    return { claims: key.verifier(algorithm, ignoreExpiration)(token) }
  } catch (error) {
    return refuse(error instanceof TokenError ? (REASON_OF[error.code] ?? 'token-malformed') : 'token-malformed')
  }
}

const REASON_OF: Readonly<Record<string, Reason>> = {
  [TOKEN_ERROR_CODES.expired]: 'token-expired',
  [TOKEN_ERROR_CODES.inactive]: 'token-not-yet-valid',
  [TOKEN_ERROR_CODES.invalidSignature]: 'signature-invalid',
  [TOKEN_ERROR_CODES.missingRequiredClaim]: 'claim-missing',
  [TOKEN_ERROR_CODES.invalidAlgorithm]: 'algorithm-not-allowed',
}

/** True if the audience claim names one of the issuer's audiences: a string, or a list of strings (RFC 7519 §4.1.3). */
function audienceFits(issuer: Issuer, claims: Claims): boolean {
  const audience = valueAt(claims, issuer.config.audienceClaim)
  const named = Array.isArray(audience) ? audience : [audience]
  return named.every((one) => typeof one === 'string') && named.some((one) => issuer.config.audiences.includes(one))
}
