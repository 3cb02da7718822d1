/** The signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1). */

const PUBLIC_KEYS = {
  RS256: 'rsa',
  RS384: 'rsa',
  RS512: 'rsa',
  PS256: 'rsa',
  PS384: 'rsa',
  PS512: 'rsa',
  ES256: 'prime256v1',
  ES384: 'secp384r1',
  ES512: 'secp521r1',
  EdDSA: 'ed25519',
} as const

/** Each algorithm's shortest secret, in bits (RFC 7518 §3.2). */
export const SECRET_BITS = { HS256: 256, HS384: 384, HS512: 512 } as const

export type PublicKeyAlgorithm = keyof typeof PUBLIC_KEYS
export type SecretAlgorithm = keyof typeof SECRET_BITS
export type Algorithm = PublicKeyAlgorithm | SecretAlgorithm

export const PUBLIC_KEY_ALGORITHMS = Object.keys(PUBLIC_KEYS) as readonly PublicKeyAlgorithm[]
export const ALGORITHMS: readonly Algorithm[] = [...PUBLIC_KEY_ALGORITHMS, ...(Object.keys(SECRET_BITS) as SecretAlgorithm[])]

export function algorithmsFor(key: string | undefined): readonly PublicKeyAlgorithm[] {
  return PUBLIC_KEY_ALGORITHMS.filter((algorithm) => PUBLIC_KEYS[algorithm] === key)
}

export function isSecretAlgorithm(algorithm: Algorithm): algorithm is SecretAlgorithm {
  return algorithm in SECRET_BITS
}
