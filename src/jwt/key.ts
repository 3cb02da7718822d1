/** One verification key and what it may verify. A token's own header never widens that (RFC 8725 §3.1). */
import { createPublicKey, type JsonWebKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { createVerifier } from 'fast-jwt'
import { algorithmsFor, type Algorithm } from './algorithms.ts'
import type { Claims } from './claims.ts'

export interface VerifierRules {
  readonly issuer: string
  /** Milliseconds. */
  readonly clockTolerance: number
}

/** Throws fast-jwt's TokenError. */
export type Verifier = (token: string) => Claims

export interface VerificationKey {
  readonly kid: string | undefined
  /** Null where the verifier checks it. OpenSSL accepts PSS without leading zeros, a second spelling (RFC 8017 §8.1.2, §8.2.2). */
  readonly signatureBytes: number | null
  fits(algorithm: Algorithm): boolean
  verifier(algorithm: Algorithm, expiry: 'checked' | 'ignored'): Verifier
}

/** Weaker RSA keys are refused (RFC 7518 §3.3, FIPS 186-5 §A.1.1): with the exponent 1, anyone can sign. */
const MIN_RSA_BITS = 2048
const MIN_RSA_EXPONENT = 65_537n

function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): readonly Algorithm[] {
  const { modulusLength = 0, publicExponent = 0n, namedCurve } = details ?? {}
  const isStrong = modulusLength >= MIN_RSA_BITS && publicExponent >= MIN_RSA_EXPONENT && publicExponent % 2n === 1n
  return type === 'rsa' && !isStrong ? [] : algorithmsFor(type === 'ec' ? namedCurve : type)
}

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
          // The audience is not checked here: it may be in another claim.
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

/** Null if the key serves none of the algorithms. @throws Error unless the text is exactly one public key */
export function keyFromPem(pem: string, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey | null {
  if (pem.includes('PRIVATE KEY')) throw new Error('holds a private key: give the gateway the public one only')
  if (pem.split('-----BEGIN ').length !== 2) throw new Error('must hold exactly one PEM block')
  const key = publicKeyIn(pem)
  if (key === null) throw new Error('holds no public key in PEM form')
  return makePublicKey(undefined, key, algorithms, rules)
}

/** `jwk` is a key-set member (RFC 7517) of unknown shape. Null if it serves none of the algorithms. */
export function keyFromJwk(jwk: unknown, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey | null {
  if (typeof jwk !== 'object' || jwk === null) return null
  const { kid, kty, use, alg, key_ops: operations } = jwk as Claims
  if (kty === 'oct' || (use !== undefined && use !== 'sig')) return null
  // A key set with the private half has published it.
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
