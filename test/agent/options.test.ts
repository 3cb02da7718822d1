/** Options that would not hold are refused when the agent starts, and not when somebody is at the door. */
// `as never`: the options and headers of plain JavaScript, which no type excludes.
import { test } from 'tap'
import { makeAssertionVerifier, makeVerifier } from '../../src/sdk/agent/index.ts'
import { jwkOf, PAIRS, pemOf, type Part } from '../../testing/support/signing.ts'
import { ASSERTION_TRUST, TRUST, userToken } from './credentials.ts'

const PRIVATE = PAIRS.rsa.privateKey.export({ type: 'pkcs8', format: 'pem' })

const REFUSED: readonly (readonly [changes: Part, message: RegExp])[] = [
  [{ issuer: undefined }, /^issuer/],
  [{ issuer: '' }, /^issuer/],
  [{ audience: '' }, /^audience/],
  [{ audience: [] }, /^audience/],
  [{ audience: ['chat', undefined] }, /^audience/],
  [{ audience: undefined }, /^audience: must be/],
  [{ audience: new String('chat') }, /^audience/],
  [{ algorithms: undefined }, /^algorithms/],
  [{ algorithms: [] }, /^algorithms/],
  [{ algorithms: 'RS256' }, /^algorithms/],
  ...['none', 'HS256', 'HS512', 'rs256'].map((one) => [{ algorithms: ['RS256', one] }, /is none with a public key/] as const),
  [{ keys: undefined }, /give exactly one/],
  [{ discovery: true }, /give exactly one/],
  [{ discovery: 'false', keys: undefined }, /^discovery/],
  [{ keys: pemOf(PAIRS.rsa.publicKey) }, /^keys: must be a list/],
  [{ jwksUri: 'https://keys.example.com/' }, /give exactly one/],
  [{ keys: [] }, /^keys/],
  [{ keys: [jwkOf(PAIRS.p256.publicKey)] }, /^keys/],
  [{ keys: [...TRUST.keys, jwkOf(PAIRS.p256.publicKey)] }, /^keys/],
  [{ keys: [jwkOf(PAIRS.rsa.privateKey)] }, /^keys/],
  [{ keys: [PRIVATE] }, /^keys/],
  [{ keys: [pemOf(PAIRS.rsa.publicKey) + pemOf(PAIRS.rsa.publicKey)] }, /^keys/],
  [{ keys: ['-----BEGIN PUBLIC KEY-----'] }, /^keys/],
  [{ keys: undefined, jwksUri: 'http://keys.example.com/' }, /^jwksUri: must be https/],
  [{ keys: undefined, jwksUri: 'file:///keys' }, /^jwksUri: must be https/],
  [{ keys: undefined, jwksUri: 'https://user:secret@keys.example.com/' }, /^jwksUri: must be https/],
  [{ keys: undefined, jwksUri: 1 }, /^jwksUri: must be https/],
  [{ keys: undefined, discovery: true, issuer: 'login' }, /^issuer: must be https/],
  [{ clockTolerance: -1 }, /^clockTolerance/],
  [{ clockTolerance: Infinity }, /^clockTolerance/],
  [{ clockTolerance: NaN }, /^clockTolerance/],
  [{ clockTolerance: 300_001 }, /^clockTolerance/],
  [{ clockTolerance: '30s' }, /^clockTolerance/],
  [{ clockTolerance: '300000' }, /^clockTolerance/],
  [{ clockTolerance: true }, /^clockTolerance/],
  [{ scopes: 'a' }, /^scopes: is no option/],
  [{ claims: { id: 'sub' } }, /^claims\.id/],
  [{ claims: { role: '/a~' } }, /^claims\.role/],
  [{ claims: { id: undefined } }, /^claims\.id/],
  [{ claims: { ids: '/oid' } }, /^claims\.ids: is no option/],
  [{ claims: Object.create({ ids: '/oid' }) }, /^claims\.ids: is no option/],
  [{ claims: undefined }, /^claims/],
  [{ claims: null }, /^claims: must be an object/],
  [{ issuerKey: 'corp:' }, /^issuerKey/],
  [{ issuerKey: '' }, /^issuerKey/],
  [{ issuerKey: undefined }, /^issuerKey/],
  [{ issuerKey: ['corp'] }, /^issuerKey/],
  [{ tokenTypes: undefined }, /^tokenTypes/],
  [{ tokenTypes: 'JWT' }, /^tokenTypes/],
  ...[[], [''], ['a/b'], ['application/'], ['*'], ['at+jwt', ''], [null]].map(
    (tokenTypes) => [{ tokenTypes }, /^tokenTypes/] as const,
  ),
  ...['threadwarden+jwt', 'Application/Threadwarden+JWT'].map((one) => [{ tokenTypes: [one] }, /of assertions/] as const),
]

for (const [at, [changes, message]] of REFUSED.entries()) {
  void test(`options ${at + 1}: ${String(message)}`, (t) => {
    t.throws(() => makeVerifier({ ...TRUST, ...changes }), { name: 'TypeError', message })
    t.end()
  })
}

void test('so are those of an assertion', (t) => {
  for (const [changes, message] of [
    [{ header: '' }, /^header/],
    [{ header: 'x y' }, /^header/],
    [{ header: 1 }, /^header/],
    ...[undefined, null, 'Legal', 'a b', ['legal'], 1].map((scope) => [{ scope }, /^scope/] as const),
    [{ keys: undefined }, /give exactly one/],
    [{ keys: [jwkOf(PAIRS.p384.publicKey)] }, /^keys/],
    [{ clockTolerance: 400_000 }, /^clockTolerance/],
    [{ scopes: 'a' }, /^scopes: is no option/],
  ] as const) {
    t.throws(() => makeAssertionVerifier({ ...ASSERTION_TRUST, ...changes } as never), { name: 'TypeError', message })
  }
  t.end()
})

void test('options that are inherited count, and their names do', async (t) => {
  const inherited = (options: Part): never => Object.create(options) as never
  t.throws(() => makeAssertionVerifier(inherited({ ...ASSERTION_TRUST, scop: 'a' })), { message: /^scop: is no option/ })
  t.throws(() => makeVerifier(inherited({ ...TRUST, issuerKeys: 'corp' })), { message: /^issuerKeys: is no option/ })
  t.throws(() => makeVerifier(null as never), { name: 'TypeError', message: /^options: must be an object/ })
  const claims = inherited({ id: '/name' })
  const verify = makeVerifier(inherited({ ...TRUST, issuerKey: 'corp', claims }))
  t.match(await verify({ authorization: `Bearer ${userToken()}` }), { user_id: 'corp:Alice' })
})

void test('who asks without headers hears so', async (t) => {
  for (const headers of [undefined, null, 'Bearer a']) {
    for (const verify of [makeVerifier(TRUST), makeAssertionVerifier(ASSERTION_TRUST)]) {
      await t.rejects(verify(headers as never), { name: 'TypeError', message: /^headers: must be/ })
    }
  }
})
