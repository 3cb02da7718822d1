/** One public key and what it may verify. What a token says of itself never widens that (RFC 8725 §3.1). */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { createVerifier } from 'fast-jwt'
import type { Claims } from './user.ts'

/** The signature algorithms with a public key. With a shared secret whoever can verify can sign, so there is none. */
export const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** What a signature is held against besides the key. */
export interface SignatureRules {
  readonly issuer: string
  readonly algorithms: readonly Algorithm[]
  /** In milliseconds. */
  readonly clockTolerance: number
}

/** A key that tokens can be verified with. */
export interface PublicKey {
  readonly kid: string | undefined
  /** True if this key may verify that algorithm. */
  fits(algorithm: Algorithm): boolean
  /** Verifies signature, `iss`, `exp` and `nbf`, and gives the claims, or throws fast-jwt's TokenError. */
  verify(token: string, algorithm: Algorithm, ignoreExpiration: boolean): Claims
}

/** RSA keys below this many bits are refused (RFC 7518 §3.3). */
const MIN_RSA_BITS = 2048
/** And below this exponent (FIPS 186-5 §A.1.1): with 1, anybody can sign. */
const MIN_RSA_EXPONENT = 65_537n
const CURVES: Readonly<Record<string, Algorithm>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/**
 * A key from a JWK (RFC 7517), or null if it can serve none of the algorithms.
 * @param jwk a member of a key set, of unknown shape
 */
export function keyFromJwk(jwk: unknown, rules: SignatureRules): PublicKey | null {
  if (typeof jwk !== 'object' || jwk === null) return null
  const { kid, kty, use, alg, key_ops: operations } = jwk as Claims
  if (kty === 'oct' || (use !== undefined && use !== 'sig')) return null
  // A key set that tells the private half has told everybody.
  if ('d' in jwk) return null
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return null
  if (kid !== undefined && typeof kid !== 'string') return null
  let key: KeyObject
  try {
    key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
  } catch {
    return null
  }
  return makeKey(
    kid,
    key,
    rules.algorithms.filter((algorithm) => alg === undefined || alg === algorithm),
    rules,
  )
}

/** A key from a PEM block with one public key, or null if it is none, or can serve none of the algorithms. */
export function keyFromPem(pem: string, rules: SignatureRules): PublicKey | null {
  if (pem.includes('PRIVATE KEY') || pem.split('-----BEGIN ').length !== 2) return null
  try {
    return makeKey(undefined, createPublicKey(pem), rules.algorithms, rules)
  } catch {
    return null
  }
}

function makeKey(
  kid: string | undefined,
  key: KeyObject,
  wanted: readonly Algorithm[],
  { issuer, clockTolerance }: SignatureRules,
): PublicKey | null {
  const can = algorithmsOf(key)
  const algorithms = wanted.filter((algorithm) => can.includes(algorithm))
  if (algorithms.length === 0) return null
  const pem = key.export({ type: 'spki', format: 'pem' }) as string
  const verifiers = new Map<string, (token: string) => unknown>()
  return {
    kid,
    fits: (algorithm) => algorithms.includes(algorithm),
    verify(token, algorithm, ignoreExpiration) {
      const name = `${algorithm} ${ignoreExpiration}`
      const verifier =
        verifiers.get(name) ??
        createVerifier({
          key: pem,
          algorithms: [algorithm],
          allowedIss: issuer,
          requiredClaims: ['iss', 'exp'],
          clockTolerance,
          ignoreExpiration,
          cache: false,
        })
      verifiers.set(name, verifier)
      return verifier(token) as Claims
    },
  }
}

/** The algorithms that a public key can serve, by its type, curve and size: none if it is too weak. */
function algorithmsOf(key: KeyObject): readonly Algorithm[] {
  switch (key.asymmetricKeyType) {
    case 'rsa': {
      const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
      const strong = modulusLength >= MIN_RSA_BITS && publicExponent >= MIN_RSA_EXPONENT && publicExponent % 2n === 1n
      return strong ? ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] : []
    }
    case 'ec': {
      const algorithm = CURVES[key.asymmetricKeyDetails?.namedCurve ?? '']
      return algorithm === undefined ? [] : [algorithm]
    }
    case 'ed25519':
      return ['EdDSA']
    default:
      return []
  }
}
