/** Tokens made by hand with node:crypto, so that no library which the gateway uses decides what can be sent to it. */
import { constants, createHmac, generateKeyPairSync, sign as signBytes, type KeyObject } from 'node:crypto'

/** What stands in header or payload. */
export type Part = Readonly<Record<string, unknown>>

const base64url = (value: string | Buffer): string => Buffer.from(value).toString('base64url')

/** Key pairs of this process: making an RSA one takes longer than most tests. */
export const PAIRS = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  otherRsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  p521: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  ed25519: generateKeyPairSync('ed25519'),
} as const

/** A public key as it stands in a PEM file. */
export function pemOf(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }) as string
}

/** A public key as it stands in a key set. */
export function jwkOf(key: KeyObject, more: Part = {}): Part {
  return { ...key.export({ format: 'jwk' }), ...more }
}

/** Signs bytes by the rules of RFC 7518 §3, EdDSA by RFC 8037. */
export function signature(alg: unknown, input: string, key: KeyObject | string | Buffer): Buffer {
  const hash = `sha${String(alg).slice(2)}`
  if (typeof key === 'string' || Buffer.isBuffer(key)) return createHmac(hash, key).update(input).digest()
  if (key.asymmetricKeyType === 'ed25519') return signBytes(null, Buffer.from(input), key)
  if (key.asymmetricKeyType === 'ec') return signBytes(hash, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
  return signBytes(hash, Buffer.from(input), { key, ...(String(alg).startsWith('PS') ? pss : {}) })
}

/**
 * A token.
 * @param header what it says of itself, `alg` included
 * @param claims an object, or the text of the payload as it is
 * @param key a private key, or a shared secret
 */
export function token(header: Part, claims: Part | string, key: KeyObject | string | Buffer): string {
  return signedAs(header['alg'], JSON.stringify(header), claims, key)
}

/**
 * A token whose header is written by hand, so that it may lie about how the token is signed.
 * @param alg how it is signed
 * @param header the text of the header
 * @param claims an object, or the text of the payload as it is
 * @param key a private key, or a shared secret
 */
export function signedAs(alg: unknown, header: string, claims: Part | string | Buffer, key: KeyObject | string | Buffer): string {
  const payload = typeof claims === 'string' || Buffer.isBuffer(claims) ? claims : JSON.stringify(claims)
  const input = `${base64url(header)}.${base64url(payload)}`
  return `${input}.${base64url(signature(alg, input, key))}`
}

/** A token whose three parts are given as bytes. */
export function assembled(header: string | Buffer, payload: string | Buffer, signed: Buffer): string {
  return `${base64url(header)}.${base64url(payload)}.${base64url(signed)}`
}

/** One time for all claims of a process: a token that is made twice is the same token, also when a second ends in between. */
const NOW = Math.floor(Date.now() / 1000)

/** Good claims, with these over them; undefined takes one out. */
export function claims(changes: Part = {}): Part {
  return { iss: 'https://login.example.com/', aud: 'chat', sub: 'alice', iat: NOW, exp: NOW + 3600, ...changes }
}
