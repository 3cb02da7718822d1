/** Verifies a JWT with the keys of its issuer. A token's own header never widens what it may be (RFC 8725 §3.1). */
import { TokenError, TOKEN_ERROR_CODES } from 'fast-jwt'
import { refuse, type Reason, type Refusal } from '../core/reasons.ts'
import { audienceFits, timeIn } from './claim-rules.ts'
import type { Issuer } from './issuer.ts'
import type { Algorithm } from '../jwt/algorithms.ts'
import type { VerificationKey } from '../jwt/key.ts'
import type { Claims, Unverified } from '../jwt/unverified.ts'

/** Most keys tried for a token without a key id: more would let a token cost more than a request should. */
const MAX_CANDIDATES = 8

/**
 * @param issuer the issuer that the token names
 * @param parts the token, split
 * @returns its claims; a refusal: 401, or 503 while keys can't be had
 */
export async function verifySigned(
  issuer: Issuer,
  token: string,
  { header, claims }: Unverified,
): Promise<{ readonly claims: Claims } | Refusal> {
  // The gateway understands no critical header (RFC 7515 §4.1.11); `b64` is one of them (RFC 7797).
  if ('crit' in header || 'b64' in header) return refuse('token-critical-extension')
  const algorithm = issuer.config.algorithms?.find((name) => name === header['alg'])
  if (algorithm === undefined) return refuse('algorithm-not-allowed')
  const kid = header['kid']
  if (kid !== undefined && typeof kid !== 'string') return refuse('token-malformed')
  const found = await issuer.keys.find(kid)
  if (found === 'unavailable') return refuse('keys-unavailable')
  const keys = found.filter((key) => key.fits(algorithm)).slice(0, MAX_CANDIDATES)
  const verified = verifyWith(keys, algorithm, token)
  if (!('outcome' in verified)) return verified
  // `credential-expired` is reported only for a token that is valid in every other respect.
  return verified.reason === 'token-expired' && !audienceFits(issuer.config, claims) ? refuse('audience-mismatch') : verified
}

function verifyWith(
  keys: readonly VerificationKey[],
  algorithm: Algorithm,
  token: string,
): { readonly claims: Claims } | Refusal {
  let refusal = refuse('key-unknown')
  for (const key of keys) {
    const result = attempt(key, algorithm, token, false)
    if (!('outcome' in result)) return timeIn(result.claims['exp']) === undefined ? refuse('claim-missing') : result
    refusal = result
    if (result.reason === 'token-expired') {
      const otherwise = attempt(key, algorithm, token, true)
      return 'outcome' in otherwise ? otherwise : result
    }
    if (result.reason !== 'signature-invalid') return result
  }
  return refusal
}

function attempt(
  key: VerificationKey,
  algorithm: Algorithm,
  token: string,
  ignoreExpiration: boolean,
): { readonly claims: Claims } | Refusal {
  if (key.signatureBytes !== null && signatureBytesIn(token) !== key.signatureBytes) return refuse('signature-invalid')
  try {
    return { claims: key.verifier(algorithm, ignoreExpiration)(token) }
  } catch (error) {
    return refuse(error instanceof TokenError ? (REASON_OF[error.code] ?? 'token-malformed') : 'token-malformed')
  }
}

/** The bytes in the last part of a token: base64url without padding (RFC 7515 §2). */
function signatureBytesIn(token: string): number {
  return Math.floor(((token.length - token.lastIndexOf('.') - 1) * 3) / 4)
}

const REASON_OF: Readonly<Record<string, Reason>> = {
  [TOKEN_ERROR_CODES.expired]: 'token-expired',
  [TOKEN_ERROR_CODES.inactive]: 'token-not-yet-valid',
  [TOKEN_ERROR_CODES.invalidSignature]: 'signature-invalid',
  [TOKEN_ERROR_CODES.missingRequiredClaim]: 'claim-missing',
  [TOKEN_ERROR_CODES.invalidAlgorithm]: 'algorithm-not-allowed',
}
