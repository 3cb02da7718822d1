/** One verification key and what it may verify. A token's own header never widens that (RFC 8725 §3.1). */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { createVerifier } from 'fast-jwt'
import { algorithmsFor, type Algorithm } from './algorithms.ts'
import type { Claims } from './claims.ts'

export interface VerifierRules {
  readonly issuer: string
  /** In milliseconds. */
  readonly clockTolerance: number
}

/** @throws fast-jwt's TokenError */
export type Verifier = (token: string) => Claims

export interface VerificationKey {
  readonly kid: string | undefined
  /**
   * Length of each signature in bytes; null where the verifier checks it. An RSA signature is as long as the modulus (RFC 8017
   * §8.1.2 step 1, §8.2.2 step 1). OpenSSL accepts a PSS signature without its leading zeros, which would be a second spelling of
   * one token.
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

export function makeKey(
  kid: string | undefined,
  algorithms: readonly Algorithm[],
  material: string | Buffer,
  rules: VerifierRules,
  signatureBytes: number | null,
): VerificationKey {
  const verifiers = new Map<string, Verifier>()
  return {
    kid,
    signatureBytes,
    fits: (algorithm) => algorithms.includes(algorithm),
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
 * Reads a key from a PEM file with one public key.
 * @throws Error with the problem
 */
export function keyFromPem(pem: string, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey {
  if (pem.includes('PRIVATE KEY')) throw new Error('holds a private key: give the gateway the public one only')
  if (pem.split('-----BEGIN ').length !== 2) throw new Error('must hold exactly one PEM block')
  let key: KeyObject
  try {
    key = createPublicKey(pem)
  } catch {
    throw new Error('holds no public key in PEM form')
  }
  const fitting = algorithmsOf(key)
  const misfits = algorithms.filter((algorithm) => !fitting.includes(algorithm))
  if (misfits.length > 0) throw new Error(`holds a key that cannot serve ${misfits.join(', ')}`)
  return makeKey(undefined, algorithms, spki(key), rules, signatureBytesOf(key))
}

/**
 * Reads a key from a JWK (RFC 7517); null if it can serve none of the algorithms.
 * @param jwk a member of a key set, of unknown shape
 */
export function keyFromJwk(jwk: unknown, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey | null {
  if (typeof jwk !== 'object' || jwk === null) return null
  const { kid, kty, use, alg, key_ops: operations } = jwk as Claims
  if (kty === 'oct' || (use !== undefined && use !== 'sig')) return null
  // A key set that contains the private half has published it.
  if ('d' in jwk) return null
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return null
  if (kid !== undefined && typeof kid !== 'string') return null
  let key: KeyObject
  try {
    key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
  } catch {
    return null
  }
  const fitting = algorithmsOf(key).filter(
    (algorithm) => algorithms.includes(algorithm) && (alg === undefined || alg === algorithm),
  )
  return fitting.length === 0 ? null : makeKey(kid, fitting, spki(key), rules, signatureBytesOf(key))
}

function signatureBytesOf(key: KeyObject): number | null {
  const bits = key.asymmetricKeyType === 'rsa' ? key.asymmetricKeyDetails?.modulusLength : undefined
  return bits === undefined ? null : Math.ceil(bits / 8)
}

function spki(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }) as string
}
