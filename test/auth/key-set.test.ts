/** Members of a key set serve what they are for and strong enough for; the others are as if they were not there. */
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import { gate, heard } from './gates.ts'
import { startKeyServer } from './key-server.ts'
import { claims, jwkOf, PAIRS, token, type Part } from './signing.ts'

const WEAK = generateKeyPairSync('rsa', { modulusLength: 1024 })
const GOOD = jwkOf(PAIRS.p256.publicKey, { kid: 'good' })
const rsa = (more: Part) => jwkOf(PAIRS.rsa.publicKey, { kid: 'k', ...more })
const refused = 'credential-invalid: key-unknown'

for (const [name, jwk, answer] of [
  ['says nothing of its use', rsa({}), 'corp:alice'],
  ['is for signatures', rsa({ use: 'sig', key_ops: ['verify'], alg: 'RS256' }), 'corp:alice'],
  ['is for encryption', rsa({ use: 'enc' }), refused],
  ['is for another operation', rsa({ key_ops: ['encrypt'] }), refused],
  ['is for another algorithm', rsa({ alg: 'RS512' }), refused],
  ['has another key id', rsa({ kid: 'K' }), refused],
  ['has no key id', rsa({ kid: undefined }), refused],
  ['has a key id that is no string', rsa({ kid: 7 }), refused],
  ['is a shared secret', { kty: 'oct', kid: 'k', k: 'AAAA' }, refused],
  ['is too weak', jwkOf(WEAK.publicKey, { kid: 'k' }), refused],
  ['is of another type', jwkOf(PAIRS.p256.publicKey, { kid: 'k' }), refused],
  ['is no key', { kty: 'RSA', kid: 'k' }, refused],
  ['is nothing', null, refused],
] as const) {
  void test(`a key that ${name}: ${answer}`, async (t) => {
    const server = await startKeyServer(t)
    server.answers.set('/jwks', { body: { keys: [jwk, GOOD] } })
    const authenticate = gate(t, { corp: { issuer: server.url, algorithms: ['RS256', 'ES256'] } })
    const pair = name === 'is too weak' ? WEAK : PAIRS.rsa
    t.equal(await heard(authenticate, token({ alg: 'RS256', kid: 'k' }, claims({ iss: server.url }), pair.privateKey)), answer)
    const other = token({ alg: 'ES256', kid: 'good' }, claims({ iss: server.url }), PAIRS.p256.privateKey)
    t.equal(await heard(authenticate, other), 'corp:alice', 'and spoils no other key')
  })
}

void test('two keys with the same id are both tried', async (t) => {
  const server = await startKeyServer(t)
  server.keys(jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k' }), rsa({}))
  const authenticate = gate(t, { corp: { issuer: server.url, algorithms: ['RS256'] } })
  t.equal(
    await heard(authenticate, token({ alg: 'RS256', kid: 'k' }, claims({ iss: server.url }), PAIRS.rsa.privateKey)),
    'corp:alice',
  )
})

void test('the same key id of two issuers is two keys', async (t) => {
  const [a, b] = [await startKeyServer(t), await startKeyServer(t)]
  a.keys(rsa({}))
  b.keys(jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k' }))
  const authenticate = gate(t, { a: { issuer: a.url, algorithms: ['RS256'] }, b: { issuer: b.url, algorithms: ['RS256'] } })
  const signed = (iss: string, pair: typeof PAIRS.rsa) => token({ alg: 'RS256', kid: 'k' }, claims({ iss }), pair.privateKey)
  t.equal(await heard(authenticate, signed(a.url, PAIRS.rsa)), 'a:alice')
  t.equal(await heard(authenticate, signed(b.url, PAIRS.otherRsa)), 'b:alice')
  t.match(await heard(authenticate, signed(a.url, PAIRS.otherRsa)), 'credential-invalid')
  t.match(await heard(authenticate, signed(b.url, PAIRS.rsa)), 'credential-invalid')
})
