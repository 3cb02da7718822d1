/** People who are signed in, without an identity provider: an RSA key made here, its public half in a file. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { makeFolder } from './gateway.ts'

/** One key pair a process: making one takes longer than most tests. */
const PAIR = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})

/** The public key as an issuer would publish it. */
export const JWK = { ...createPublicKey(PAIR.publicKey).export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'k1' }

export const ISSUER = 'https://login.example.com/'
export const AUDIENCE = 'agent-chat'

/** Whoever signs tokens. */
export interface Signer {
  /** What stands in the configuration under `authentication`. */
  readonly authentication: { readonly issuers: Record<string, unknown> }
  /** A token of `corp:<subject>`; `claims` go over the usual ones, and undefined takes one out. */
  sign(subject: string, claims?: Record<string, unknown>): string
  /** Every token that was signed here. */
  readonly signed: readonly string[]
  remove(): void
}

/** Makes the signer, with the public key in a folder of its own. */
export function makeSigner(): Signer {
  const { folder, remove } = makeFolder()
  const publicKeyFile = join(folder, 'issuer.pem')
  writeFileSync(publicKeyFile, PAIR.publicKey)
  const signer = createSigner({
    key: createPrivateKey(PAIR.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
    algorithm: 'RS256',
  })
  const signed: string[] = []
  return {
    authentication: { issuers: { corp: { issuer: ISSUER, audiences: [AUDIENCE], algorithms: ['RS256'], publicKeyFile } } },
    sign(subject, claims = {}) {
      const now = Math.floor(Date.now() / 1000)
      const token = signer({ iss: ISSUER, aud: AUDIENCE, sub: subject, iat: now, exp: now + 3600, ...claims })
      signed.push(token)
      return token
    },
    signed,
    remove,
  }
}
