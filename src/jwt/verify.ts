/** Verifies the signature, issuer and times of a JWT. A token's own header never widens what it may be (RFC 8725 §3.1). */
import { TokenError, TOKEN_ERROR_CODES } from 'fast-jwt'
import type { Algorithm } from './algorithms.ts'
import { timeIn, type Claims } from './claims.ts'
import type { VerificationKey } from './key.ts'
import type { KeySource } from './key-source.ts'

/** Limits the cost of a token without a key id. */
const MAX_CANDIDATES = 8

export type InvalidToken =
  | 'token-malformed'
  | 'token-critical-extension'
  | 'algorithm-not-allowed'
  | 'key-unknown'
  | 'signature-invalid'
  | 'claim-missing'
  | 'token-not-yet-valid'
  | 'token-expired'

/** Expiry is no refusal yet: `credential-expired` is reported only for a token that is valid in every other respect. */
export interface SignedToken {
  readonly claims: Claims
  readonly isExpired: boolean
}

/** The caller must check the audience and further claims. */
export async function verifySigned(
  token: string,
  header: Claims,
  algorithms: readonly Algorithm[],
  keys: KeySource,
): Promise<SignedToken | InvalidToken | 'keys-unavailable'> {
  // No critical header is supported (RFC 7515 §4.1.11); `b64` is one of them (RFC 7797).
  if ('crit' in header || 'b64' in header) return 'token-critical-extension'
  const algorithm = algorithms.find((name) => name === header['alg'])
  if (algorithm === undefined) return 'algorithm-not-allowed'
  const kid = header['kid']
  if (kid !== undefined && typeof kid !== 'string') return 'token-malformed'
  const found = await keys.find(kid)
  if (found === 'unavailable') return 'keys-unavailable'
  const candidates = found.filter((key) => key.fits(algorithm)).slice(0, MAX_CANDIDATES)
  return verifyWith(candidates, algorithm, token)
}

function verifyWith(keys: readonly VerificationKey[], algorithm: Algorithm, token: string): SignedToken | InvalidToken {
  let invalid: InvalidToken = 'key-unknown'
  for (const key of keys) {
    const first = attempt(key, algorithm, token, 'checked')
    const isExpired = first === 'token-expired'
    const result = isExpired ? attempt(key, algorithm, token, 'ignored') : first
    if (typeof result === 'object') return timeIn(result['exp']) === undefined ? 'claim-missing' : { claims: result, isExpired }
    if (result !== 'signature-invalid') return result
    invalid = result
  }
  return invalid
}

function attempt(
  key: VerificationKey,
  algorithm: Algorithm,
  token: string,
  expiry: 'checked' | 'ignored',
): Claims | InvalidToken {
  if (key.signatureBytes !== null && signatureBytesIn(token) !== key.signatureBytes) return 'signature-invalid'
  // Node 24 throws and catches errors inside for each key with options, and fast-jwt always gives some. Their stack traces take a
  // third of the verification. An assignment would fail where an agent's process has frozen its intrinsics.
  const { stackTraceLimit } = Error
  Reflect.set(Error, 'stackTraceLimit', 0)
  try {
    return key.verifier(algorithm, expiry)(token)
  } catch (error) {
    return error instanceof TokenError ? (INVALID[error.code] ?? 'token-malformed') : 'token-malformed'
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  }
}

/** Base64url without padding (RFC 7515 §2). */
function signatureBytesIn(token: string): number {
  return Math.floor(((token.length - token.lastIndexOf('.') - 1) * 3) / 4)
}

const INVALID: Readonly<Record<string, InvalidToken>> = {
  [TOKEN_ERROR_CODES.expired]: 'token-expired',
  [TOKEN_ERROR_CODES.inactive]: 'token-not-yet-valid',
  [TOKEN_ERROR_CODES.invalidSignature]: 'signature-invalid',
  [TOKEN_ERROR_CODES.missingRequiredClaim]: 'claim-missing',
  [TOKEN_ERROR_CODES.invalidAlgorithm]: 'algorithm-not-allowed',
}
