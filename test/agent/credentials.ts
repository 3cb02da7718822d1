/** Credentials as an agent gets them: tokens of an issuer, and assertions of a gateway, made by hand. */
import { claims, jwkOf, PAIRS, signedAs, token, type Part } from '../../testing/support/signing.ts'

export const ISSUER = 'https://login.example.com/'
export const GATEWAY = 'https://chat.example.com'

/** What an agent is told about the issuer, and about the gateway. */
export const TRUST = {
  issuer: ISSUER,
  audience: 'chat',
  algorithms: ['RS256'],
  keys: [jwkOf(PAIRS.rsa.publicKey, { kid: 'k1', alg: 'RS256', use: 'sig' })],
} as const
export const ASSERTION_TRUST = {
  issuer: GATEWAY,
  audience: 'agents',
  keys: [jwkOf(PAIRS.p256.publicKey, { kid: 'g1', alg: 'ES256', use: 'sig' })],
} as const

const JOSE = { alg: 'RS256', kid: 'k1' }
const ASSERTION_JOSE = { alg: 'ES256', kid: 'g1', typ: 'threadwarden+jwt' }

/** A token of alice's; what is given goes over the usual, and undefined takes out. */
export function userToken(changes: Part = {}, header: Part = {}): string {
  const usual = claims({ name: 'Alice', role: 'member', permissions: ['threads:read'] })
  return token({ ...JOSE, ...header }, { ...usual, ...changes }, PAIRS.rsa.privateKey)
}

/** An assertion about alice in thread t1, likewise. */
export function assertion(changes: Part = {}, header: Part = {}): string {
  return token({ ...ASSERTION_JOSE, ...header }, assertionClaims(changes), PAIRS.p256.privateKey)
}

function assertionClaims(changes: Part): Part {
  const now = Math.floor(Date.now() / 1000)
  const who = { sub: 'corp:alice', name: 'Alice', role: ['member', 'tester'], permissions: ['threads:read'], idp: 'corp' }
  const what = { thread: 't1', route: 'agent/run', jti: crypto.randomUUID() }
  return { iss: GATEWAY, aud: 'agents', iat: now, exp: now + 60, ...who, ...what, ...changes }
}

/** A token signed by a key that isn't the issuer's, or in a way that isn't the issuer's. */
export const forged = {
  otherKey: () => token(JOSE, claims(), PAIRS.otherRsa.privateKey),
  /** The public key, which everybody has, taken for a shared secret. */
  confused: (secret: string) => token({ ...JOSE, alg: 'HS256' }, claims(), secret),
  confusedAssertion: (secret: string) => token({ ...ASSERTION_JOSE, alg: 'HS256' }, assertionClaims({}), secret),
  /** No signature, in whatever spelling. */
  unsigned: (alg: string) =>
    signedAs('RS256', JSON.stringify({ ...JOSE, alg }), claims(), PAIRS.rsa.privateKey).replace(/[^.]*$/, ''),
  unsignedAssertion: (alg: string) =>
    token({ ...ASSERTION_JOSE, alg: 'ES256' }, assertionClaims({}), PAIRS.p256.privateKey)
      .replace(/^[^.]*/, Buffer.from(JSON.stringify({ ...ASSERTION_JOSE, alg })).toString('base64url'))
      .replace(/[^.]*$/, ''),
  otherCurve: () => token({ ...ASSERTION_JOSE, alg: 'ES384' }, assertionClaims({}), PAIRS.p384.privateKey),
  otherGateway: () => token(ASSERTION_JOSE, assertionClaims({}), PAIRS.ed25519.privateKey),
} as const

/** What becomes of a credential: the user's id, or code and reason. */
export async function fate(verified: Promise<{ readonly user_id: string }>): Promise<string> {
  try {
    return (await verified).user_id
  } catch (error) {
    const { name, code, reason } = error as { name: string; code?: string; reason?: string }
    return [name, code, reason].filter((part) => part !== undefined).join(' ')
  }
}
