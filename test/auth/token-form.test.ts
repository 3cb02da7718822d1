/** A token is three parts of which each is read in one way; what its header asks for beyond the algorithm is not done. */
import { createServer } from 'node:http'
import { test } from 'tap'
import { heard, rsaGate, rsaToken } from './gates.ts'
import { claims, jwkOf, PAIRS, pemOf, token } from './signing.ts'

const encoded = (text: string): string => Buffer.from(text).toString('base64url')

void test('whatever is not three parts of JSON objects is refused', async (t) => {
  const authenticate = rsaGate(t)
  const [header = '', payload = '', signature = ''] = rsaToken(claims()).split('.')
  for (const bad of [
    header,
    `${header}.${payload}`,
    `${header}.${payload}.${signature}.`,
    `${header}.${payload}.${signature}.a.b`,
    '..',
    `.${payload}.${signature}`,
    `${header}..${signature}`,
    `${encoded('[]')}.${payload}.${signature}`,
    `${encoded('null')}.${payload}.${signature}`,
    `${encoded('{')}.${payload}.${signature}`,
    rsaToken('[]'),
    rsaToken('null'),
    rsaToken('"alice"'),
    rsaToken('{"iss":'),
    rsaToken(''),
  ]) {
    t.match(await heard(authenticate, bad), /^credential-invalid/, bad.slice(0, 60))
  }
})

for (const [name, header] of [
  ['crit', { crit: ['exp'] }],
  ['an empty crit', { crit: [] }],
  ['a crit that is null', { crit: null }],
  ['b64', { b64: false }],
  ['b64 that changes nothing', { b64: true }],
  ['crit and b64', { crit: ['b64'], b64: false }],
] as const) {
  void test(`a header with ${name} is refused, however well it is signed`, async (t) => {
    const answer = await heard(rsaGate(t), rsaToken(claims(), header))
    t.equal(answer, 'credential-invalid: token-critical-extension')
  })
}

void test('keys that a token brings along or points to are not used, and nothing is fetched', async (t) => {
  let fetched = 0
  const server = createServer((_, answer) => {
    fetched += 1
    answer.end(JSON.stringify({ keys: [jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k' })] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/jwks`
  const authenticate = rsaGate(t)
  const chain = [pemOf(PAIRS.otherRsa.publicKey).replace(/-----.*?-----|\n/g, '')]
  const temptations = { jku: url, x5u: url, jwk: jwkOf(PAIRS.otherRsa.publicKey), x5c: chain, kid: url }
  const signedBy = (pair: typeof PAIRS.rsa, header: object) => token({ alg: 'RS256', ...header }, claims(), pair.privateKey)
  for (const [name, value] of Object.entries(temptations)) {
    const answer = await heard(authenticate, signedBy(PAIRS.otherRsa, { [name]: value }))
    t.equal(answer, 'credential-invalid: signature-invalid', name)
  }
  t.equal(await heard(authenticate, signedBy(PAIRS.rsa, temptations)), 'corp:alice', 'and they hinder no good token')
  t.equal(fetched, 0)
})

void test('a key id that is no string is refused', async (t) => {
  for (const kid of [1, null, ['k'], {}])
    t.equal(await heard(rsaGate(t), rsaToken(claims(), { kid })), 'credential-invalid: token-malformed')
})
