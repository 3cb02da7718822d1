/** Verifies one token with rules that are fixed before it is read (RFC 8725), the same that the gateway holds tokens to. */
import { TokenError, TOKEN_ERROR_CODES } from 'fast-jwt'
import { NotAuthenticated } from './errors.ts'
import type { Algorithm, PublicKey, SignatureRules } from './key.ts'
import type { KeySource } from './key-source.ts'
import type { Claims } from './user.ts'

/** The `typ` of an assertion. Explicit types keep one kind of token from being taken for another (RFC 8725 §3.11). */
export const ASSERTION_TYPE = 'threadwarden+jwt'

/** What a token is held to. */
export interface TokenRules extends SignatureRules {
  readonly audiences: readonly string[]
  /** An assertion has its own type, and nothing else may have it. */
  readonly kind: 'token' | 'assertion'
  /** The types of which a token must have one, as typeName writes them; undefined for those that access tokens have. */
  readonly tokenTypes?: readonly string[] | undefined
  /** The `scope` that an assertion must have; undefined for any. */
  readonly scope?: string | undefined
}

/** The types that access tokens have (RFC 7519 §5.1, RFC 9068 §2.1); a token without `typ` is accepted beside them. */
const USUAL_TYPES: readonly string[] = ['jwt', 'at+jwt']

/** Keys that are tried for a token without a key id: more would let a token cost more than a request should. */
const MAX_CANDIDATES = 8
/** The last time that a date can hold (ECMA-262 §21.4.1.1), in seconds: what lies beyond is no end. */
const LAST_TIME = 8.64e12
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Verifies a token.
 * @returns its claims
 * @throws {NotAuthenticated} if it is not good
 * @throws {KeysUnavailable} if the keys can't be had
 */
export async function verifyToken(token: string, rules: TokenRules, source: KeySource): Promise<Claims> {
  const { header, claims } = readUnverified(token)
  // Nothing that a header can call critical is understood here (RFC 7515 §4.1.11); `b64` is one of them (RFC 7797).
  if ('crit' in header || 'b64' in header) throw invalid('token-critical-extension')
  if (!typeFits(header['typ'], rules)) throw invalid('token-type')
  if (claims['iss'] !== rules.issuer) throw invalid('issuer-unknown')
  const algorithm = rules.algorithms.find((name) => name === header['alg'])
  if (algorithm === undefined) throw invalid('algorithm-not-allowed')
  const kid = header['kid']
  if (kid !== undefined && typeof kid !== 'string') throw invalid('token-malformed')
  const keys = (await source.find(kid)).filter((key) => key.fits(algorithm)).slice(0, MAX_CANDIDATES)
  return verifyWith(keys, algorithm, token, rules)
}

function verifyWith(keys: readonly PublicKey[], algorithm: Algorithm, token: string, rules: TokenRules): Claims {
  let failure = invalid('key-unknown')
  for (const key of keys) {
    const result = attempt(key, algorithm, token, false)
    if (!(result instanceof NotAuthenticated)) return checkedClaims(result, rules)
    failure = result
    if (result.reason === 'token-expired') {
      // `credential-expired` is said only of a token that is good in every other respect.
      const otherwise = attempt(key, algorithm, token, true)
      if (otherwise instanceof NotAuthenticated) throw otherwise
      checkedClaims(otherwise, rules)
      throw new NotAuthenticated('credential-expired', 'token-expired')
    }
    if (result.reason !== 'signature-invalid') break
  }
  throw failure
}

function attempt(key: PublicKey, algorithm: Algorithm, token: string, ignoreExpiration: boolean): Claims | NotAuthenticated {
  try {
    return key.verify(token, algorithm, ignoreExpiration)
  } catch (error) {
    return invalid(error instanceof TokenError ? (REASON_OF[error.code] ?? 'token-malformed') : 'token-malformed')
  }
}

const REASON_OF: Readonly<Record<string, string>> = {
  [TOKEN_ERROR_CODES.expired]: 'token-expired',
  [TOKEN_ERROR_CODES.inactive]: 'token-not-yet-valid',
  [TOKEN_ERROR_CODES.invalidSignature]: 'signature-invalid',
  [TOKEN_ERROR_CODES.missingRequiredClaim]: 'claim-missing',
  [TOKEN_ERROR_CODES.invalidAlgorithm]: 'algorithm-not-allowed',
}

/** What the signature alone does not say: that the token ends (`1e400` is read as infinity), and for whom it is. */
function checkedClaims(claims: Claims, { audiences, scope }: TokenRules): Claims {
  const { exp, aud } = claims
  if (typeof exp !== 'number' || Math.abs(exp) > LAST_TIME) throw invalid('claim-missing')
  // RFC 7519 §4.1.3: a string, or a list of strings.
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const fits = named.every((one) => typeof one === 'string') && named.some((one) => audiences.includes(one))
  if (!fits) throw invalid('audience-mismatch')
  if (scope !== undefined && claims['scope'] !== scope) throw invalid('scope-mismatch')
  return claims
}

function typeFits(typ: unknown, { kind, tokenTypes }: TokenRules): boolean {
  if (kind === 'assertion') return typ === ASSERTION_TYPE
  if (typ === undefined) return tokenTypes === undefined
  return typeof typ === 'string' && (tokenTypes ?? USUAL_TYPES).includes(typeName(typ))
}

/** A type in the form in which two are compared: RFC 7515 §4.1.9 lets `application/` be left out, and case does not count. */
export function typeName(text: string): string {
  // ASCII alone: U+212A, the Kelvin sign, has `k` as its lower case.
  return text.replace(/[A-Z]/g, (one) => one.toLowerCase()).replace(/^application\//, '')
}

/**
 * Header and claims before anything is verified. Only one spelling of each part counts (RFC 4648 §3.5), or one token would
 * have many; and only UTF-8 (RFC 7519 §7.2), or two names would be read as one, each unknown byte replaced by the same.
 */
function readUnverified(token: string): { readonly header: Claims; readonly claims: Claims } {
  const parts = token.split('.')
  const [head, body, signature] = parts.map((part) => Buffer.from(part, 'base64url'))
  if (parts.length !== 3 || !head || !body || !signature) throw invalid('token-malformed')
  if (token !== [head, body, signature].map((bytes) => bytes.toString('base64url')).join('.')) throw invalid('token-malformed')
  return { header: parsed(head), claims: parsed(body) }
}

function parsed(bytes: Buffer): Claims {
  let value: unknown
  try {
    value = JSON.parse(UTF8.decode(bytes))
  } catch {
    throw invalid('token-malformed')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('token-malformed')
  return value as Claims
}

function invalid(reason: string): NotAuthenticated {
  return new NotAuthenticated('credential-invalid', reason)
}
