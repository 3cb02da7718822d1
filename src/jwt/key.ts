/** One verification key and what it may verify. A token's own header never widens that (RFC 8725 §3.1). */
import { createPublicKey, type JsonWebKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { createVerifier } from 'fast-jwt'
import { algorithmsFor, type Algorithm } from './algorithms.ts'
import type { Claims } from './claims.ts'

export interface VerifierRules {
  readonly issuer: string
  /** In milliseconds. */
  readonly clockTolerance: number
}

/** Throws fast-jwt's TokenError. */
export type Verifier = (token: string) => Claims

export interface VerificationKey {
  readonly kid: string | undefined
  /**
   * Null where the verifier checks it. An RSA signature is as long as the modulus (RFC 8017 §8.1.2, §8.2.2), but OpenSSL accepts a
   * PSS signature without its leading zeros, which would be a second spelling of one token.
   */
  readonly signatureBytes: number | null
  fits(algorithm: Algorithm): boolean
  verifier(algorithm: Algorithm, expiry: 'checked' | 'ignored'): Verifier
}

/** Smaller RSA keys are refused (RFC 7518 §3.3). */
const MIN_RSA_BITS = 2048
/** Smaller exponents are refused, too (FIPS 186-5 §A.1.1): with 1, anybody can sign. */
const MIN_RSA_EXPONENT = 65_537n

function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): readonly Algorithm[] {
  const { modulusLength = 0, publicExponent = 0n, namedCurve } = details ?? {}
  const isStrong = modulusLength >= MIN_RSA_BITS && publicExponent >= MIN_RSA_EXPONENT && publicExponent % 2n === 1n
  return type === 'rsa' && !isStrong ? [] : algorithmsFor(type === 'ec' ? namedCurve : type)
}

/** @param material a public key in PEM, or a shared secret */
export function makeKey(
  material: string | Buffer,
  key: Pick<VerificationKey, 'kid' | 'signatureBytes'> & { readonly algorithms: readonly Algorithm[] },
  rules: VerifierRules,
): VerificationKey {
  const verifiers = new Map<string, Verifier>()
  return {
    kid: key.kid,
    signatureBytes: key.signatureBytes,
    fits: (algorithm) => key.algorithms.includes(algorithm),
    verifier(algorithm, expiry) {
      const name = `${algorithm} ${expiry}`
      let verifier = verifiers.get(name)
      if (verifier === undefined) {
        verifier = createVerifier({
          key: material,
          algorithms: [algorithm],
          allowedIss: rules.issuer,
          // The audience is not checked here, because it may be in another claim.
          requiredClaims: ['iss', 'exp'],
          clockTolerance: rules.clockTolerance,
          ignoreExpiration: expiry === 'ignored',
          cache: false,
        }) as Verifier
        verifiers.set(name, verifier)
      }
      return verifier
    },
  }
}

/**
 * @returns the one public key in the text; null if it can serve none of the algorithms
 * @throws Error if the text is anything else
 */
export function keyFromPem(pem: string, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey | null {
  if (pem.includes('PRIVATE KEY')) throw new Error('holds a private key: give the gateway the public one only')
  if (pem.split('-----BEGIN ').length !== 2) throw new Error('must hold exactly one PEM block')
  const key = publicKeyIn(pem)
  if (key === null) throw new Error('holds no public key in PEM form')
  return makePublicKey(undefined, key, algorithms, rules)
}

/**
 * @param jwk a member of a key set (RFC 7517), of unknown shape
 * @returns null if it can serve none of the algorithms
 */
export function keyFromJwk(jwk: unknown, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey | null {
  if (typeof jwk !== 'object' || jwk === null) return null
  const { kid, kty, use, alg, key_ops: operations } = jwk as Claims
  if (kty === 'oct' || (use !== undefined && use !== 'sig')) return null
  // A key set that contains the private half has published it.
  if ('d' in jwk) return null
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return null
  if (kid !== undefined && typeof kid !== 'string') return null
  const key = publicKeyIn({ key: jwk as JsonWebKey, format: 'jwk' })
  const wanted = algorithms.filter((algorithm) => alg === undefined || alg === algorithm)
  return key === null ? null : makePublicKey(kid, key, wanted, rules)
}

function publicKeyIn(source: string | JsonWebKeyInput): KeyObject | null {
  try {
    return createPublicKey(source)
  } catch {
    return null
  }
}

function makePublicKey(
  kid: string | undefined,
  key: KeyObject,
  wanted: readonly Algorithm[],
  rules: VerifierRules,
): VerificationKey | null {
  const algorithms = algorithmsOf(key).filter((algorithm) => wanted.includes(algorithm))
  if (algorithms.length === 0) return null
  const bits = key.asymmetricKeyType === 'rsa' ? key.asymmetricKeyDetails?.modulusLength : undefined
  const signatureBytes = bits === undefined ? null : Math.ceil(bits / 8)
  return makeKey(key.export({ type: 'spki', format: 'pem' }), { kid, signatureBytes, algorithms }, rules)
}
