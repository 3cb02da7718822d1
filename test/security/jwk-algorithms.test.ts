/**
 * A key of a key set that says too little or the wrong thing: without `alg`, the token's own would decide; a shared secret
 * among public keys would be everybody's; a key for encryption, too weak, or on another curve has no business here. A
 * member serves only the configured algorithms that fit its type, curve and size, and else is as if it were not there.
 *
 * CVE-2026-22817 (Hono: the header's `alg` where the JWK has none); RFC 7517 §4.2-4.4, RFC 7518 §3.3-3.4, RFC 8725 §3.1.
 */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { test } from 'tap'
import { gate, heard } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { claims, jwkOf, PAIRS, signedAs, token, type Part } from '../../testing/support/signing.ts'

const WEAK = generateKeyPairSync('rsa', { modulusLength: 1024 })
const SHORT = generateKeyPairSync('rsa', { modulusLength: 2040 })
const KOBLITZ = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
const GOOD = jwkOf(PAIRS.p384.publicKey, { kid: 'good' })
const rsa = (more: Part) => jwkOf(PAIRS.rsa.publicKey, { kid: 'k', ...more })
const ec = (more: Part) => jwkOf(PAIRS.p256.publicKey, { kid: 'k', ...more })
const ed = (more: Part) => jwkOf(PAIRS.ed25519.publicKey, { kid: 'k', ...more })
const KID = { kid: 'k' }
const PASSES = 'corp:alice'
const refused = 'credential-invalid: key-unknown'

/** The number of a JWK with zeros before it, which make it longer and the key no stronger. */
const padded = (value: unknown): string =>
  Buffer.concat([Buffer.alloc(128), Buffer.from(String(value), 'base64url')]).toString('base64url')

/** A token's algorithm and the private key, where they are not RS256 and the usual. */
type By = readonly [algorithm: string, key: KeyObject]
const ES256: By = ['ES256', PAIRS.p256.privateKey]
const EDDSA: By = ['EdDSA', PAIRS.ed25519.privateKey]

const MEMBERS: readonly (readonly [name: string, jwk: unknown, answer: string, by?: By])[] = [
  ['says nothing of its use', rsa({}), PASSES],
  ['is for signatures', rsa({ use: 'sig', key_ops: ['verify'], alg: 'RS256' }), PASSES],
  ['may do more than that', rsa({ key_ops: ['sign', 'verify'] }), PASSES],
  ['has members that nobody knows', rsa({ x5t: 'abc', exp: 1, nbf: 'x', revoked: true }), PASSES],
  ['is on a curve', ec({}), PASSES, ES256],
  ['is of Ed25519', ed({}), PASSES, EDDSA],

  ['is for encryption', rsa({ use: 'enc' }), refused],
  ['is for signatures in capitals', rsa({ use: 'SIG' }), refused],
  ['has a use that is a list', rsa({ use: ['sig'] }), refused],
  ['has a use that is null', rsa({ use: null }), refused],
  ['has an empty use', rsa({ use: '' }), refused],
  ['is for another operation', rsa({ key_ops: ['encrypt'] }), refused],
  ['is for signing', rsa({ key_ops: ['sign'] }), refused],
  ['is for no operation', rsa({ key_ops: [] }), refused],
  ['has operations that are no list', rsa({ key_ops: 'verify' }), refused],
  ['has operations in another list', rsa({ key_ops: [['verify']] }), refused],
  ['has operations that are null', rsa({ key_ops: null }), refused],
  ['has operations in capitals', rsa({ key_ops: ['VERIFY'] }), refused],

  ['is for another algorithm', rsa({ alg: 'RS512' }), refused],
  ['is for PSS', rsa({ alg: 'PS256' }), refused],
  ['is for an HMAC', rsa({ alg: 'HS256' }), refused],
  ['is for none', rsa({ alg: 'none' }), refused],
  ['is for encryption by its algorithm', rsa({ alg: 'RSA-OAEP-256' }), refused],
  ['has an algorithm in small letters', rsa({ alg: 'rs256' }), refused],
  ['has an empty algorithm', rsa({ alg: '' }), refused],
  ['has an algorithm that is null', rsa({ alg: null }), refused],
  ['has a list of algorithms', rsa({ alg: ['RS256'] }), refused],
  ['is for the algorithm of another type', rsa({ alg: 'ES256' }), refused],
  ['is on a curve, for RSA', ec({ alg: 'RS256' }), refused, ES256],
  ['is on a curve, for that of another', ec({ alg: 'ES384' }), refused, ES256],
  ['is of Ed25519, for a curve', ed({ alg: 'ES256' }), refused, EDDSA],

  ['has another key id', rsa({ kid: 'K' }), refused],
  ['has a key id that ends with a space', rsa({ kid: 'k ' }), refused],
  ['has no key id', rsa({ kid: undefined }), refused],
  ['has a key id that is no string', rsa({ kid: 7 }), refused],
  ['has a key id in a list', rsa({ kid: ['k'] }), refused],
  ['has a key id that is null', rsa({ kid: null }), refused],

  ['is a shared secret', { kty: 'oct', kid: 'k', k: 'AAAA' }, refused],
  ['is a shared secret with the numbers of a public key', rsa({ kty: 'oct', k: 'AAAA' }), refused],
  ['is too weak', jwkOf(WEAK.publicKey, KID), refused, ['RS256', WEAK.privateKey]],
  ['has the exponent 1, with which anybody signs', rsa({ e: 'AQ' }), refused],
  ['has the exponent 3', rsa({ e: 'Aw' }), refused],
  ['has an even exponent', rsa({ e: 'AQAC' }), refused],
  ['tells its private half', jwkOf(PAIRS.rsa.privateKey, KID), refused],
  ['tells the private half of a curve', jwkOf(PAIRS.p256.privateKey, KID), refused, ES256],
  ['is a byte too short', jwkOf(SHORT.publicKey, KID), refused, ['RS256', SHORT.privateKey]],
  [
    'is too weak behind zeros',
    jwkOf(WEAK.publicKey, { ...KID, n: padded(WEAK.publicKey.export({ format: 'jwk' }).n) }),
    refused,
    ['RS256', WEAK.privateKey],
  ],
  ['is on a curve that no algorithm of ours has', jwkOf(KOBLITZ.publicKey, KID), refused, ['ES256', KOBLITZ.privateKey]],
  ['is on that curve and calls it another', jwkOf(KOBLITZ.publicKey, { ...KID, crv: 'P-256' }), refused, ES256],
  ['names another curve than its point is on', ec({ crv: 'P-384' }), refused, ES256],
  ['is a point on no curve', ec({ y: Buffer.alloc(32, 1).toString('base64url') }), refused, ES256],
  ['is half a point', ec({ y: undefined }), refused, ES256],
  ['is of X25519', jwkOf(generateKeyPairSync('x25519').publicKey, KID), refused, EDDSA],
  ['is of Ed448', jwkOf(generateKeyPairSync('ed448').publicKey, KID), refused, EDDSA],
  ['calls itself Ed448', ed({ crv: 'Ed448' }), refused, EDDSA],
  ['calls a curve an octet key pair', ec({ kty: 'OKP', crv: 'Ed25519' }), refused, ES256],
  ['is of another type', ec({}), refused],
  ['has its type in small letters', rsa({ kty: 'rsa' }), refused],
  ['has no type', rsa({ kty: undefined }), refused],
  ['has a type in a list', rsa({ kty: ['RSA'] }), refused],
  ['is no key', { kty: 'RSA', kid: 'k' }, refused],
  ['has numbers that are none', rsa({ n: 7 }), refused],
  ['has an empty number', rsa({ n: '' }), refused],
  ['is only a certificate', { kty: 'RSA', kid: 'k', x5c: ['MIIB'] }, refused],
  ['is a list', [rsa({})], refused],
  ['is text', JSON.stringify(rsa({})), refused],
  ['is nothing', null, refused],
]

/** What makes these none is their id alone. */
const ONLY_BY_NAME = ['has another key id', 'has a key id that ends with a space', 'has no key id']

for (const [name, jwk, answer, by = ['RS256', PAIRS.rsa.privateKey]] of MEMBERS) {
  void test(`a key that ${name}: ${answer}`, async (t) => {
    const server = await startKeyServer(t)
    server.answers.set('/jwks', { body: { keys: [jwk, GOOD] } })
    const algorithms = ['RS256', 'ES256', 'ES384', 'EdDSA']
    const authenticate = gate(t, { corp: { issuer: server.url, algorithms } })
    const [alg, key] = by
    t.equal(await heard(authenticate, token({ alg, kid: 'k' }, claims({ iss: server.url }), key)), answer)
    // Without a key id every key of the set is a candidate; what is no key for this stays none.
    const unnamed = await heard(authenticate, token({ alg }, claims({ iss: server.url }), key))
    t.equal(unnamed, ONLY_BY_NAME.includes(name) ? PASSES : answer, 'without a key id')
    const other = token({ alg: 'ES384', kid: 'good' }, claims({ iss: server.url }), PAIRS.p384.privateKey)
    t.equal(await heard(authenticate, other), PASSES, 'and spoils no other key')
  })
}

void test('a key without an algorithm serves the configured ones that fit it, one with an algorithm that one', async (t) => {
  const server = await startKeyServer(t)
  server.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'any' }), jwkOf(PAIRS.otherRsa.publicKey, { kid: 'one', alg: 'PS256' }))
  const authenticate = gate(t, { corp: { algorithms: ['RS256', 'PS256'], jwksUri: `${server.url}/jwks` } })
  const told = (alg: string, kid: string) =>
    heard(authenticate, token({ alg, kid }, claims(), (kid === 'any' ? PAIRS.rsa : PAIRS.otherRsa).privateKey))
  t.equal(await told('RS256', 'any'), PASSES)
  t.equal(await told('PS256', 'any'), PASSES)
  t.equal(await told('PS256', 'one'), PASSES)
  t.equal(await told('RS256', 'one'), refused)
  t.equal(await told('RS512', 'any'), 'credential-invalid: algorithm-not-allowed')
})

void test('two keys with the same id are both tried', async (t) => {
  const server = await startKeyServer(t)
  server.keys(jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k' }), rsa({}))
  const authenticate = gate(t, { corp: { issuer: server.url, algorithms: ['RS256'] } })
  const told = (pair: typeof PAIRS.rsa) =>
    heard(authenticate, token({ alg: 'RS256', kid: 'k' }, claims({ iss: server.url }), pair.privateKey))
  t.equal(await told(PAIRS.rsa), PASSES)
  t.equal(await told(PAIRS.otherRsa), PASSES)
})

void testFirstPair('over the real gateway, a shared secret in a key set signs nothing', async (t, pair) => {
  const server = await startKeyServer(t)
  const secret = Buffer.alloc(64, 7)
  const k = secret.toString('base64url')
  server.keys({ kty: 'oct', kid: 's', k, alg: 'HS256', use: 'sig' }, { kty: 'oct', kid: 'r', k, alg: 'RS256' }, rsa({}))
  const { fate, upstream } = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
  t.equal(await fate(token({ alg: 'RS256', kid: 'k' }, claims(), PAIRS.rsa.privateKey)), PASSED)
  for (const kid of ['s', 'r', 'k', undefined]) {
    t.equal(await fate(token({ alg: 'HS256', kid }, claims(), secret)), REFUSED, `HS256 by ${String(kid)}`)
    const relabelled = signedAs('HS256', JSON.stringify({ alg: 'RS256', kid }), claims(), secret)
    t.equal(await fate(relabelled), REFUSED, `HS256, called RS256, by ${String(kid)}`)
    t.equal(await fate(token({ alg: 'RS256', kid }, claims(), PAIRS.otherRsa.privateKey)), REFUSED)
  }
  t.equal(upstream.requests.length, 1)
})
