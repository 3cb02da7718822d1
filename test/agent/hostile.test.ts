/** Tokens and keys that are well formed, signed and still not to be believed. */
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import { makeVerifier } from '../../src/sdk/agent/index.ts'
import { assembled, jwkOf, PAIRS, signature, signedAs, token, type Part } from '../../testing/support/signing.ts'
import { fate, ISSUER, TRUST, userToken } from './credentials.ts'

const HEADER = '{"alg":"RS256","kid":"k1"}'
const verify = makeVerifier(TRUST)
const judged = (jwt: string, by = verify) => fate(by({ authorization: `Bearer ${jwt}` }))
const signedText = (text: string | Buffer) => signedAs('RS256', HEADER, text, PAIRS.rsa.privateKey)
const claimsText = (sub: string, exp: string) => `{"iss":"${ISSUER}","aud":"chat","sub":"${sub}","exp":${exp}}`

void test('a token that never ends is refused', async (t) => {
  t.equal(await judged(signedText(claimsText('alice', '8640000000000'))), 'alice', 'this one ends, some day')
  for (const exp of ['1e400', '8640000000001', '1e300']) {
    t.equal(await judged(signedText(claimsText('alice', exp))), 'NotAuthenticated credential-invalid claim-missing', exp)
  }
})

void test('a name that is no UTF-8 is nobody’s', async (t) => {
  const bytes = Buffer.from(claimsText('alic#', '8640000000000'))
  bytes[bytes.indexOf('#')] = 0xff
  t.equal(await judged(signedText(bytes)), 'NotAuthenticated credential-invalid token-malformed')
  const marked = Buffer.from(`\ufeff${claimsText('alice', '8640000000000')}`)
  t.equal(await judged(signedText(marked)), 'NotAuthenticated credential-invalid token-malformed', 'nor is it one with a mark')
})

for (const alg of ['RS256', 'PS256'] as const) {
  void test(`${alg}: a signature without its leading zero is refused: it would be a second spelling of its token`, async (t) => {
    const by = makeVerifier({ ...TRUST, algorithms: [alg], keys: [jwkOf(PAIRS.rsa.publicKey)] })
    const header = JSON.stringify({ alg })
    let payload = ''
    let good = Buffer.from([1])
    for (let at = 0; good[0] !== 0; at += 1) {
      payload = JSON.stringify({ iss: ISSUER, aud: 'chat', sub: 'alice', exp: 8.64e12, jti: String(at) })
      good = Buffer.from(signature(alg, assembled(header, payload, Buffer.alloc(0)).slice(0, -1), PAIRS.rsa.privateKey))
    }
    t.equal(await judged(assembled(header, payload, good), by), 'alice')
    const short = assembled(header, payload, good.subarray(1))
    t.equal(await judged(short, by), 'NotAuthenticated credential-invalid signature-invalid')
  })
}

void test('a token without a key id is tried with eight keys, and no more', async (t) => {
  const others = Array.from({ length: 8 }, (_, at) => jwkOf(PAIRS.otherRsa.publicKey, { kid: `o${at}` }))
  const last = jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' })
  const unnamed = () => userToken({}, { kid: undefined })
  t.equal(await judged(unnamed(), makeVerifier({ ...TRUST, keys: [...others.slice(1), last] })), 'alice')
  const many = makeVerifier({ ...TRUST, keys: [...others, last] })
  t.equal(await judged(unnamed(), many), 'NotAuthenticated credential-invalid signature-invalid')
  t.equal(await judged(userToken(), many), 'alice', 'with its id it is found')
})

void test('a key serves the algorithm that it names alone', async (t) => {
  const keys = [jwkOf(PAIRS.rsa.publicKey, { kid: 'k1', alg: 'PS256' })]
  const by = makeVerifier({ ...TRUST, algorithms: ['RS256', 'PS256'], keys })
  t.equal(await judged(userToken(), by), 'NotAuthenticated credential-invalid key-unknown')
  t.equal(await judged(userToken({}, { alg: 'PS256' }), by), 'alice')
})

const short = generateKeyPairSync('rsa', { modulusLength: 1024 })
const low = generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 3 })
const UNFIT: readonly (readonly [name: string, jwk: Part])[] = [
  ['a short RSA key', jwkOf(short.publicKey)],
  ['an RSA key with the exponent 3', jwkOf(low.publicKey)],
  ['an RSA key with the exponent 1', { ...jwkOf(PAIRS.rsa.publicKey), e: 'AQ' }],
  ['a key for encryption', jwkOf(PAIRS.rsa.publicKey, { use: 'enc' })],
  ['a key that only signs', jwkOf(PAIRS.rsa.publicKey, { key_ops: ['sign'] })],
  ['a key whose id is a number', jwkOf(PAIRS.rsa.publicKey, { kid: 1 })],
  ['a secret', { kty: 'oct', k: 'eHg' }],
  ['nonsense', { kty: 'RSA' }],
]

for (const [name, jwk] of UNFIT) {
  void test(`${name} is no key`, (t) => {
    t.throws(() => makeVerifier({ ...TRUST, keys: [jwk] }), { message: /^keys/ })
    t.end()
  })
}

void test('a key of one curve verifies nothing of another', async (t) => {
  const keys = [jwkOf(PAIRS.p384.publicKey, { kid: 'k1' })]
  const by = makeVerifier({ ...TRUST, algorithms: ['ES256', 'ES384'], keys })
  const claims = { iss: ISSUER, aud: 'chat', sub: 'alice', exp: 8.64e12 }
  t.equal(await judged(token({ alg: 'ES384', kid: 'k1' }, claims, PAIRS.p384.privateKey), by), 'alice')
  const other = token({ alg: 'ES256', kid: 'k1' }, claims, PAIRS.p256.privateKey)
  t.equal(await judged(other, by), 'NotAuthenticated credential-invalid key-unknown')
})
