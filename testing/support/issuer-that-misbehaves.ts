/** An issuer that misbehaves on purpose: each way by its name, to be switched on and off while a gate is asking. */
import { generateKeyPairSync } from 'node:crypto'
import type { Test } from 'tap'
import { startKeyServer, type Answer, type KeyServer } from './key-server.ts'
import { jwkOf, PAIRS } from './signing.ts'
import { deferred } from './until.ts'

/** The key that the tokens of these tests are signed with, and the one that comes after it. */
export const FIRST = jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' })
export const SECOND = jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k2' })

const OTHER = Array.from({ length: 3 }, () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey)

/** The ways in which it gives no keys. A slow one is not among them: it does give some, as late as the test likes. */
export const WAYS: Readonly<Record<string, Answer>> = {
  'hangs up': { hangUp: true },
  'answers 500': { status: 500, body: { keys: [FIRST, SECOND] } },
  'answers 429': { status: 429, headers: { 'retry-after': '0' }, body: { keys: [FIRST, SECOND] } },
  'answers 401': { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: { keys: [FIRST, SECOND] } },
  redirects: { status: 307, headers: { location: '/elsewhere' } },
  'sends too much': { body: { keys: [FIRST, SECOND], more: 'x'.repeat(600 * 1024) } },
  'sends too many keys': { body: { keys: Array(101).fill(FIRST) } },
  'sends nothing': { body: '' },
  'sends garbage': { body: '<html>' },
  'sends half of it': { body: JSON.stringify({ keys: [FIRST, SECOND] }).slice(0, -1) },
  'has an empty set': { body: { keys: [] } },
  'has no set': { body: {} },
  'has a set of the wrong type': { body: { keys: { 0: FIRST, length: 1 } } },
  'has members of the wrong type': { body: { keys: [null, 1, 'k1', [FIRST], { kty: 'RSA', kid: 'k1' }] } },
  'has keys of the wrong type': { body: { keys: OTHER.map((key, at) => jwkOf(key, { kid: `k${at}` })) } },
}

/** The issuer. */
export interface Misbehaving extends KeyServer {
  /** How often its key set was asked for. */
  readonly fetches: () => number
  /** From now on it does what this name in WAYS says. */
  misbehave(way: string): void
  /** From now on it says nothing until it is let go. */
  holdBack(): { readonly letGo: (answer?: Answer) => void }
}

/** Starts it, well-behaved, with the first key. */
export async function startMisbehaving(t: Test): Promise<Misbehaving> {
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const elsewhere: Answer = { body: { keys: [FIRST, SECOND] } }
  server.answers.set('/elsewhere', elsewhere)
  return {
    ...server,
    fetches: () => server.fetched.filter((path) => path === '/jwks').length,
    misbehave(way) {
      const answer = WAYS[way]
      if (answer === undefined) throw new Error(`no way of misbehaving: ${way}`)
      server.answers.set('/jwks', answer)
    },
    holdBack() {
      const held = deferred<Answer>()
      server.answers.set('/jwks', () => held.promise)
      return { letGo: (answer = elsewhere) => held.resolve(answer) }
    },
  }
}
