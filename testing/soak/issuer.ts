/** An issuer of tokens with a key set that is fetched, whose keys are rotated. */
import { generateKeyPair } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { createSigner } from 'fast-jwt'
import { ISSUER } from '../bench/requests/tokens.ts'

/** A token, and when it ends, in milliseconds since 1970. */
export interface Token {
  readonly text: string
  readonly ends: number
}

/** The issuer. */
export interface SoakIssuer {
  readonly jwksUri: string
  /** Gives a token that is good for so many milliseconds, or that was over so long ago if it is less than none. */
  token(subject: string, life: number): Token
  /** The same, signed with a key that is nobody's, under the id of the one that is used. */
  forged(subject: string, life: number): Token
  /** Signs with a new key from now on. Those before stay published for as long as a token of theirs is used. */
  rotate(): Promise<void>
  stop(): void
}

interface Key {
  readonly kid: string
  readonly jwk: object
  readonly pem: string
}

/** Keys that are published: of older ones every token has long been over. */
const PUBLISHED = 3

const makePair = promisify(generateKeyPair)

/** Starts it. */
export async function startIssuer(): Promise<SoakIssuer> {
  let made = 0
  const makeKey = async (): Promise<Key> => {
    const kid = `k${(made += 1)}`
    const { publicKey, privateKey } = await makePair('rsa', { modulusLength: 2048 })
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }
    return { kid, jwk, pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
  }
  let published: readonly Key[] = [await makeKey()]
  const nobodys = await makeKey()
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ keys: published.map(({ jwk }) => jwk) }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const signerOf = (pem: string, kid: string) => createSigner({ key: pem, algorithm: 'RS256', kid })
  let sign = signerOf(published[0]!.pem, published[0]!.kid)
  const tokenBy = (signer: typeof sign, sub: string, life: number): Token => {
    const exp = Math.floor((Date.now() + life) / 1000)
    const { issuer: iss, audiences } = ISSUER
    const iat = Math.min(exp, Math.floor(Date.now() / 1000)) - 1
    const text = signer({ sub, name: sub, role: 'member', permissions: ['chat'], iss, aud: audiences[0], iat, exp })
    return { text, ends: 1000 * exp }
  }
  return {
    jwksUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    token: (subject, life) => tokenBy(sign, subject, life),
    forged: (subject, life) => tokenBy(signerOf(nobodys.pem, published[0]!.kid), subject, life),
    async rotate() {
      const next = await makeKey()
      published = [next, ...published].slice(0, PUBLISHED)
      sign = signerOf(next.pem, next.kid)
    },
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
