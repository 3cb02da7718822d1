/**
 * Tokens of another kind, signed with the issuer's own key and for this audience: logout tokens, DPoP proofs, security events,
 * assertions of a gateway. An issuer signs all of them with one key, so that only `typ` tells them apart.
 *
 * RFC 8725 §2.8 and §3.11-3.12; RFC 7519 §5.1, RFC 7515 §4.1.9, RFC 9068 §2.1.
 */
import { test } from 'tap'
import { makeVerifier } from '../../src/sdk/agent/index.ts'
import { fate as fateOfToken, TRUST, userToken } from '../agent/credentials.ts'
import { gate, heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { startOpaque } from '../../testing/support/issuer-of-opaque-tokens.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { testUnbridged } from '../../testing/support/pairs.ts'
import { claims, jwkOf, PAIRS, pemOf, signedAs, token } from '../../testing/support/signing.ts'

const REFUSAL = 'credential-invalid: token-type'

/** What access tokens are called, in every way in which RFC 7515 lets it be written. */
const USUAL = [
  ...[undefined, 'JWT', 'jwt', 'Jwt', 'at+jwt', 'AT+JWT', 'at+JWT'],
  ...['application/jwt', 'application/at+jwt', 'Application/AT+jwt', 'APPLICATION/JWT'],
]

const KELVIN = '\u212a'

/** What is no access token, and what is no type. */
const OTHERS: readonly unknown[] = [
  ...['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'token-introspection+jwt', 'oauth-authz-req+jwt', 'entity-statement+jwt'],
  ...['kb+jwt', 'vc+jwt', 'rt+jwt', 'id+jwt', 'client-authentication+jwt', 'threadwarden+jwt', 'application/logout+jwt', 'LOGOUT+JWT'],
  ...['JWS', 'JOSE', 'JWE', '', ' ', 'JWT ', ' JWT', 'JWT\0', 'J WT', 'at jwt', 'at+jwt;v=1', 'at%2Bjwt', 'text/jwt', '/jwt'],
  ...['application/', 'application/application/jwt', 'application//jwt', 'x/application/jwt', 'JWT,at+jwt', '["JWT"]'],
  ...['ＪＷＴ', 'at\uff0bjwt', 'toString', '__proto__', 'none', '*', 'x'.repeat(2000)],
  ...[null, true, false, 0, 1, 1e400, [], ['JWT'], ['at+jwt', 'JWT'], {}, { 0: 'JWT' }, { toString: 'JWT' }],
] // oxfmt-ignore

void testUnbridged('a token of another kind reaches nothing, however well it is signed', async (t, pair) => {
  const authenticate = rsaGate(t)
  const { fate, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  for (const typ of USUAL) {
    t.equal(await heard(authenticate, rsaToken(claims(), { typ })), 'corp:alice', String(typ))
    t.equal(await fate(rsaToken(claims(), { typ })), PASSED, String(typ))
  }
  const before = upstream.requests.length
  for (const typ of OTHERS) {
    t.equal(await heard(authenticate, rsaToken(claims(), { typ })), REFUSAL, JSON.stringify(typ))
    t.equal(await fate(rsaToken(claims(), { typ })), REFUSED, JSON.stringify(typ))
  }
  // Of two, JSON readers take the last.
  const twice = signedAs('RS256', '{"alg":"RS256","typ":"JWT","typ":"logout+jwt"}', claims(), PAIRS.rsa.privateKey)
  t.equal(await heard(authenticate, twice), REFUSAL)
  t.equal(await heard(authenticate, rsaToken(claims({ typ: 'JWT' }), { typ: 'logout+jwt' })), REFUSAL, 'no claim stands for it')
  t.equal(upstream.requests.length, before)
})

void test('an issuer may have types of its own, and then has those alone', async (t) => {
  const authenticate = rsaGate(t, { tokenTypes: ['Application/Chat+JWT', 'k+jwt'] })
  for (const typ of ['chat+jwt', 'CHAT+jwt', 'application/chat+jwt', 'K+JWT'])
    t.equal(await heard(authenticate, rsaToken(claims(), { typ })), 'corp:alice', typ)
  for (const typ of [undefined, 'JWT', 'at+jwt', 'chat', `${KELVIN}+jwt`, '', null, ['chat+jwt']])
    t.equal(await heard(authenticate, rsaToken(claims(), { typ })), REFUSAL, JSON.stringify(typ))
  for (const tokenTypes of [[], [''], ['a/b'], ['application/'], [' jwt'], ['*'], 'JWT', null, [null], ['application/a/b']])
    t.throws(() => rsaGate(t, { tokenTypes }), JSON.stringify(tokenTypes))
})

void test('each issuer has the types that it is configured with', async (t) => {
  const corp = { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey), tokenTypes: ['chat+jwt'] }
  const partner = { ...corp, issuer: 'https://partner.example/', tokenTypes: undefined }
  const authenticate = gate(t, { corp, partner })
  const ofPartner = claims({ iss: 'https://partner.example/' })
  t.equal(await heard(authenticate, rsaToken(claims(), { typ: 'chat+jwt' })), 'corp:alice')
  t.equal(await heard(authenticate, rsaToken(ofPartner, { typ: 'chat+jwt' })), REFUSAL)
  t.equal(await heard(authenticate, rsaToken(ofPartner, { typ: 'JWT' })), 'partner:alice')
})

void test('a token of another type does not find the cached result of a good one', async (t) => {
  const authenticate = rsaGate(t, {}, { tokenCache: 100 })
  const connection = {}
  const good = rsaToken(claims({ iat: 1000, exp: 4102444800 }))
  for (let at = 0; at < 2; at += 1) t.equal(await heard(authenticate, good, connection), 'corp:alice')
  // The same claims, and then the same signature, too.
  const other = rsaToken(claims({ iat: 1000, exp: 4102444800 }), { typ: 'logout+jwt' })
  const mixed = other.replace(/[^.]*$/, good.split('.')[2] ?? '')
  for (let at = 0; at < 2; at += 1) {
    for (const bad of [other, mixed]) {
      t.equal(await heard(authenticate, bad, connection), REFUSAL)
      t.equal(await heard(authenticate, bad), REFUSAL)
    }
  }
  t.equal(await heard(authenticate, good, connection), 'corp:alice')
})

void test('no key is fetched for it, and an issuer that is asked about tokens is not asked', async (t) => {
  const server = await startKeyServer(t)
  server.answers.set('/jwks', { body: { keys: [{ ...jwkOf(PAIRS.rsa.publicKey), kid: 'k1' }] } })
  const fetching = gate(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } })
  const signed = (typ: string | undefined) => token({ alg: 'RS256', kid: 'k1', typ }, claims(), PAIRS.rsa.privateKey)
  t.equal(await heard(fetching, signed('logout+jwt')), REFUSAL)
  t.same(server.asked, [])
  t.equal(await heard(fetching, signed('JWT')), 'corp:alice')
  const { told, questions } = await startOpaque(t, { algorithms: undefined })
  t.equal(await told(signed('logout+jwt')), REFUSAL)
  t.same(questions(), [])
  t.equal(await told(signed('JWT')), 'corp:alice')
  t.equal(await told('opaque'), 'corp:alice', 'what is no JWT has no type')
})

void test('an agent holds tokens to the same types', async (t) => {
  const verify = makeVerifier(TRUST)
  const told = (of: typeof verify, typ: unknown) => fateOfToken(of({ authorization: `Bearer ${userToken({}, { typ })}` }))
  for (const typ of USUAL) t.equal(await told(verify, typ), 'alice', String(typ))
  for (const typ of OTHERS)
    t.equal(await told(verify, typ), 'NotAuthenticated credential-invalid token-type', JSON.stringify(typ))
  const own = makeVerifier({ ...TRUST, tokenTypes: ['application/Chat+JWT'] })
  t.equal(await told(own, 'chat+jwt'), 'alice')
  t.equal(await told(own, 'Application/CHAT+jwt'), 'alice')
  for (const typ of [undefined, 'JWT', 'at+jwt', 'chat', null, ['chat+jwt']])
    t.equal(await told(own, typ), 'NotAuthenticated credential-invalid token-type', JSON.stringify(typ))
})
