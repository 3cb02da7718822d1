/** Reads the shared secret of an issuer that signs with HMAC. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { largest } from '../core/json/extremes.ts'
import { SECRET_BITS, type SecretAlgorithm } from '../jwt/algorithms.ts'
import { makeKey, type VerificationKey, type VerifierRules } from '../jwt/key.ts'

/**
 * A newline at the end of `file`, which editors add, is not part of the secret.
 * @throws Error if the secret is shorter than the hash (RFC 7518 §3.2), or a key that others may know: with an issuer's public
 *   key as the secret, anyone could sign (CVE-2026-34950)
 */
export function keyFromSecret(file: Buffer, algorithms: readonly SecretAlgorithm[], rules: VerifierRules): VerificationKey {
  const secret = withoutNewline(file)
  const bits = largest(algorithms.map((algorithm) => SECRET_BITS[algorithm]))
  if (secret.length * 8 < bits) throw new Error(`holds ${secret.length} bytes: HS${bits} needs ${bits / 8} at least`)
  // The last byte of a key may look like a newline.
  if (isKeyMaterial(secret) || isKeyMaterial(file))
    throw new Error('holds a key or certificate, which others may know: a secret is random bytes')
  return makeKey(secret, { kid: undefined, signatureBytes: null, algorithms }, rules)
}

function withoutNewline(bytes: Buffer): Buffer {
  const end = bytes.at(-1) === 0x0a ? (bytes.at(-2) === 0x0d ? -2 : -1) : undefined
  return bytes.subarray(0, end)
}

/** Public and private keys, certificates and key sets, also in base64 or hexadecimal. */
function isKeyMaterial(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  const wrapped = [bytes, Buffer.from(text, 'base64'), Buffer.from(text.trim(), 'hex')]
  return wrapped.some((one) => isKeyText(one.toString('utf8')) || isKeyText(one.toString('utf16le')) || isDer(one))
}

function isKeyText(text: string): boolean {
  const bare = text.replace(/^\ufeff/, '').trim()
  return bare.includes('-----BEGIN ') || /^(?:ssh|ecdsa)-/.test(bare) || isJwk(bare)
}

function isJwk(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

function isDer(bytes: Buffer): boolean {
  const readers = [
    () => createPublicKey({ key: bytes, format: 'der', type: 'spki' }),
    () => createPublicKey({ key: bytes, format: 'der', type: 'pkcs1' }),
    () => createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' }),
    () => createPrivateKey({ key: bytes, format: 'der', type: 'pkcs1' }),
    () => new X509Certificate(bytes),
  ]
  return readers.some((read) => {
    try {
      read()
      return true
    } catch {
      return false
    }
  })
}
