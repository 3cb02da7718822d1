/** Tokens of an issuer that is nothing but a key, made here, with its public half in a file. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createSigner } from 'fast-jwt'

/** What the configuration says of the issuer, besides its key. */
export const ISSUER = { issuer: 'https://issuer.test', audiences: ['agents'], algorithms: ['RS256'] } as const

/** Its key in the configuration: with the subject it makes the user id. */
export const ISSUER_KEY = 'corp'

/** Gives a token of a subject who is in these groups, good for a day. */
export type MakeToken = (subject: string, groups?: readonly string[]) => string

/**
 * Makes the issuer.
 * @param publicKeyFile where the public key goes, as PEM
 */
export function makeIssuer(publicKeyFile: string): MakeToken {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  writeFileSync(publicKeyFile, publicKey)
  const sign = createSigner({ key: privateKey, algorithm: 'RS256', kid: 'k1' })
  const now = Math.floor(Date.now() / 1000)
  const { issuer: iss, audiences } = ISSUER
  const standing = { name: 'Alice', role: 'member', permissions: ['chat'], iss, aud: audiences[0], iat: now, exp: now + 86_400 }
  return (sub, groups) => sign({ sub, ...standing, ...(groups === undefined ? {} : { groups }) })
}
