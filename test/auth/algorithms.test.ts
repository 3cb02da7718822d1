/**
 * A key verifies what the configuration lets it and nothing that a token says of itself (RFC 8725 §3.1): good tokens of
 * every kind of key pass, and every confusion of algorithms is credential-invalid.
 */
import { test } from 'tap'
import { gate, heard, rsaGate, rsaToken } from './gates.ts'
import { claims, PAIRS, pemOf, token } from './signing.ts'

const SECRET = 'a secret of 64 bytes, which is what HS512 asks for: 0123456789abc'

for (const [algorithm, pair] of [
  ['RS256', PAIRS.rsa],
  ['RS384', PAIRS.rsa],
  ['RS512', PAIRS.rsa],
  ['PS256', PAIRS.rsa],
  ['PS384', PAIRS.rsa],
  ['PS512', PAIRS.rsa],
  ['ES256', PAIRS.p256],
  ['ES384', PAIRS.p384],
  ['EdDSA', PAIRS.ed25519],
] as const) {
  void test(`${algorithm} by a public key file`, async (t) => {
    const authenticate = gate(t, { corp: { algorithms: [algorithm], publicKey: pemOf(pair.publicKey) } })
    const good = token({ alg: algorithm }, claims(), pair.privateKey)
    t.equal(await heard(authenticate, good), 'corp:alice')
    const [header, payload, signature = ''] = good.split('.')
    const forged = Buffer.from(JSON.stringify(claims({ sub: 'bob' }))).toString('base64url')
    const invalid = 'credential-invalid: signature-invalid'
    t.equal(await heard(authenticate, `${header}.${forged}.${signature}`), invalid, 'another payload')
    t.equal(await heard(authenticate, `${header}.${payload}.${signature.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`), invalid)
    t.match(await heard(authenticate, `${header}.${payload}.`), /^credential-invalid/, 'no signature')
  })
}

for (const algorithm of ['HS256', 'HS384', 'HS512']) {
  void test(`${algorithm} by a secret file, without the newline at its end`, async (t) => {
    for (const secret of [SECRET, `${SECRET}\n`, `${SECRET}\r\n`]) {
      const authenticate = gate(t, { corp: { algorithms: [algorithm], secret } })
      t.equal(await heard(authenticate, token({ alg: algorithm }, claims(), SECRET)), 'corp:alice')
      t.equal(
        await heard(authenticate, token({ alg: algorithm }, claims(), `${SECRET}!`)),
        'credential-invalid: signature-invalid',
      )
    }
  })
}

void test('an algorithm that is not configured is refused, though the key could serve it', async (t) => {
  const authenticate = rsaGate(t)
  for (const alg of ['RS384', 'RS512', 'PS256']) {
    t.equal(
      await heard(authenticate, token({ alg }, claims(), PAIRS.rsa.privateKey)),
      'credential-invalid: algorithm-not-allowed',
    )
  }
  t.equal(
    await heard(authenticate, token({ alg: 'ES256' }, claims(), PAIRS.p256.privateKey)),
    'credential-invalid: algorithm-not-allowed',
  )
})

void test('a token signed with the public key as if it were a secret is refused', async (t) => {
  const pem = pemOf(PAIRS.rsa.publicKey)
  const authenticate = gate(t, { corp: { algorithms: ['RS256', 'PS256'], publicKey: pem } })
  for (const secret of [pem, pem.trim(), `${pem.trim()}\n`]) {
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      t.equal(await heard(authenticate, token({ alg }, claims(), secret)), 'credential-invalid: algorithm-not-allowed')
    }
    const relabelled = token({ alg: 'HS256' }, claims(), secret).replace(
      /^[^.]+/,
      Buffer.from('{"alg":"RS256"}').toString('base64url'),
    )
    t.equal(await heard(authenticate, relabelled), 'credential-invalid: signature-invalid')
  }
})

void test('a token without an algorithm is refused', async (t) => {
  const authenticate = rsaGate(t)
  const payload = Buffer.from(JSON.stringify(claims())).toString('base64url')
  const signature = rsaToken(claims()).split('.')[2] ?? ''
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '', undefined, null, ['RS256'], 0, 'rs256']) {
    const header = Buffer.from(JSON.stringify({ alg })).toString('base64url')
    t.match(await heard(authenticate, `${header}.${payload}.`), /^credential-invalid/, `${String(alg)} without a signature`)
    t.match(await heard(authenticate, `${header}.${payload}.${signature}`), /^credential-invalid/, `${String(alg)} with one`)
  }
})

void test('a good signature of another key is refused', async (t) => {
  const authenticate = rsaGate(t)
  const other = token({ alg: 'RS256' }, claims(), PAIRS.otherRsa.privateKey)
  t.equal(await heard(authenticate, other), 'credential-invalid: signature-invalid')
})
