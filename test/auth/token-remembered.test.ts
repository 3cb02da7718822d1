/**
 * A token that was verified is not verified again while nothing of what made it good has changed: its keys, its end, the trust
 * in its issuer. How often it is verified is counted by a key that counts.
 *
 * CVE-2026-35039 (fast-jwt: a cache keyed by a part of the token gave the claims of one user to another).
 */
import { test, type Test } from 'tap'
import { makeAuthenticate } from '../../src/auth/authenticate.ts'
import type { Issuer } from '../../src/auth/issuer.ts'
import type { VerificationKey } from '../../src/jwt/key.ts'
import { readUnverified } from '../../src/jwt/unverified.ts'
import { gate, heard, ISSUER } from '../../testing/support/gates.ts'
import { FIRST, SECOND, startMisbehaving } from '../../testing/support/issuer-that-misbehaves.ts'
import { claims, PAIRS, pemOf, token, type Part } from '../../testing/support/signing.ts'
import { until } from '../../testing/support/until.ts'

const UNKNOWN = 'credential-invalid: key-unknown'
const signed = (changes: Part = {}, header: Part = {}) =>
  token({ alg: 'RS256', ...header }, claims(changes), PAIRS.rsa.privateKey)

/** The connection that everything comes by; undefined where each request comes by one of its own. */
let connection: object | undefined

/** Whatever is remembered, it is so for a connection as for all of them. */
function both(name: string, run: (t: Test) => Promise<void>): void {
  for (const one of [undefined, {}]) {
    void test(one === undefined ? name : `${name}, by one connection`, async (t) => {
      connection = one
      await run(t)
    })
  }
}

/** A gate whose only key takes every token and counts; its key-set version and the trust in it are the test's to change. */
function counting(t: Test, { tokenCache = 100, ...config }: Part & { readonly tokenCache?: number } = {}) {
  const made: Issuer[] = []
  gate(t, { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey), ...config } }, { made })
  const state = { verified: 0, keySetVersion: 1, trusted: true, now: Date.now() }
  const key: VerificationKey = {
    kid: undefined,
    signatureBytes: null,
    fits: () => true,
    verifier: () => (text) => {
      state.verified += 1
      return readUnverified(text)?.claims ?? {}
    },
  }
  const keys: Issuer['keys'] = {
    find: () => Promise.resolve(state.trusted ? [key] : 'unavailable'),
    ready: () => true,
    stale: () => false,
    get version() {
      return state.keySetVersion
    },
    trustedFrom: -Infinity,
    get trustedUntil() {
      return state.trusted ? Infinity : -Infinity
    },
    known: null,
    renew: () => {},
  }
  const authenticate = makeAuthenticate({
    mode: 'required',
    issuers: made.map((issuer) => ({ ...issuer, keys })),
    tokenCache,
    clock: () => state.now,
    onClientToken: () => {},
  })
  return { state, told: (bearer: string) => heard(authenticate, bearer, connection) }
}

both('a token that comes a hundred times is verified once', async (t) => {
  const { state, told } = counting(t)
  const [alice, bob] = [signed(), signed({ sub: 'bob' })]
  for (let at = 0; at < 100; at += 1) t.equal(await told(alice), 'corp:alice')
  t.equal(state.verified, 1)
  t.equal(await told(bob), 'corp:bob')
  t.equal(await told(alice), 'corp:alice')
  t.equal(state.verified, 2)
})

both('with a tokenCache of 0 it is verified each time, with one of 2 the third pushes out the first', async (t) => {
  const none = counting(t, { tokenCache: 0 })
  const alice = signed()
  for (let at = 0; at < 3; at += 1) await none.told(alice)
  t.equal(none.state.verified, 3)
  const two = counting(t, { tokenCache: 2 })
  for (const sub of ['a', 'b', 'c', 'c', 'b']) await two.told(signed({ sub, iat: 1, exp: 4102444800 }))
  t.equal(two.state.verified, 3)
  await two.told(signed({ sub: 'a', iat: 1, exp: 4102444800 }))
  t.equal(two.state.verified, 4)
})

both('it is verified again when keys were fetched, and refused when they are no longer trusted', async (t) => {
  const { state, told } = counting(t)
  const alice = signed()
  await told(alice)
  state.keySetVersion += 1
  t.equal(await told(alice), 'corp:alice')
  t.equal(state.verified, 2)
  state.trusted = false
  t.equal(await told(alice), 'keys-unavailable: keys-unavailable')
})

both('it is remembered until its end, whatever the tolerance of clocks', async (t) => {
  const { state, told } = counting(t, { clockTolerance: '10m' })
  const exp = Math.floor(state.now / 1000) + 60
  const alice = signed({ exp })
  await told(alice)
  state.now = exp * 1000 - 1
  await told(alice)
  t.equal(state.verified, 1)
  state.now += 1
  await told(alice)
  await told(alice)
  t.equal(state.verified, 3)
})

both('it is remembered until it is as old as maxTokenAge allows, and refused after that', async (t) => {
  const { state, told } = counting(t, { maxTokenAge: '5m', clockTolerance: '0s' })
  const iat = Math.floor(state.now / 1000)
  const alice = signed({ iat, exp: iat + 3600 })
  await told(alice)
  state.now = iat * 1000 + 300_000 - 1
  t.equal(await told(alice), 'corp:alice')
  t.equal(state.verified, 1)
  state.now += 2
  t.equal(await told(alice), 'credential-invalid: token-too-old')
})

both('a refusal is not remembered', async (t) => {
  const { state, told } = counting(t)
  const bad = signed({ aud: 'other' })
  for (let at = 0; at < 3; at += 1) t.equal(await told(bad), 'credential-invalid: audience-mismatch')
  t.equal(state.verified, 3)
})

both('an expired token that was remembered is expired', async (t) => {
  const running = Date.now
  const time = { now: running() }
  Date.now = () => time.now
  t.teardown(() => void (Date.now = running))
  const corp = { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey), clockTolerance: '0s' }
  const authenticate = gate(t, { corp }, { tokenCache: 10, now: () => time.now })
  const alice = signed({ exp: Math.floor(time.now / 1000) + 60 })
  t.equal(await heard(authenticate, alice, connection), 'corp:alice')
  time.now += 61_000
  t.equal(await heard(authenticate, alice, connection), 'credential-expired: token-expired')
})

both('a token that differs from a remembered one in its signature alone, or in its issuer, is another', async (t) => {
  const other = 'https://other.example'
  const ec = pemOf(PAIRS.p256.publicKey)
  const corp = { algorithms: ['ES256'], publicKey: ec }
  const authenticate = gate(t, { corp, other: { ...corp, issuer: other, publicKey: pemOf(PAIRS.rsa.publicKey), algorithms: ['RS256'] } }, { tokenCache: 10 }) // oxfmt-ignore
  const good = token({ alg: 'ES256' }, claims({ jti: 'one' }), PAIRS.p256.privateKey)
  const unsigned = good.slice(0, good.lastIndexOf('.') + 1)
  for (let at = 0; at < 2; at += 1) {
    t.equal(await heard(authenticate, good, connection), 'corp:alice')
    t.match(
      await heard(authenticate, `${unsigned}${Buffer.alloc(64, 1).toString('base64url')}`, connection),
      /^credential-invalid/,
    )
    t.match(await heard(authenticate, unsigned, connection), /^credential-invalid/)
    const elsewhere = token({ alg: 'ES256' }, claims({ jti: 'one', iss: other }), PAIRS.p256.privateKey)
    t.match(await heard(authenticate, elsewhere, connection), /^credential-invalid/)
    const theirs = token({ alg: 'RS256' }, claims({ jti: 'one', iss: other }), PAIRS.rsa.privateKey)
    t.equal(await heard(authenticate, theirs, connection), 'other:alice')
  }
})

both('a remembered token of a key that was taken back counts no more when keys were renewed', async (t) => {
  const issuer = await startMisbehaving(t)
  const made: Issuer[] = []
  const time = { now: 0 }
  const config = { corp: { issuer: ISSUER, algorithms: ['RS256'], jwksUri: `${issuer.url}/jwks`, keyCache: '1m', staleIfError: '2m' } } // oxfmt-ignore
  const authenticate = gate(t, config, { made, clock: () => time.now, tokenCache: 10 })
  const alice = signed({}, { kid: 'k1' })
  const told = () => heard(authenticate, alice, connection)
  t.equal(await told(), 'corp:alice')
  issuer.keys(SECOND)
  time.now = 60_001
  made[0]?.keys.renew()
  await until(async () => (await told()) !== 'corp:alice')
  t.equal(await told(), UNKNOWN)
  issuer.keys(FIRST)
  time.now += 5000
  t.equal(await told(), 'corp:alice')
  issuer.misbehave('answers 500')
  time.now += 120_000
  t.equal(await told(), 'corp:alice', 'for staleIfError')
  time.now += 5001
  t.equal(await told(), 'keys-unavailable: keys-unavailable', 'and not longer')
})
