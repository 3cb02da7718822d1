/** The forwarded token in an agent: which is good, and that every other is refused for the reason that it has. */
import { test } from 'tap'
import { makeVerifier } from '../../src/sdk/agent/index.ts'
import { jwkOf, PAIRS, pemOf, token } from '../../testing/support/signing.ts'
import { assertion, fate, forged, ISSUER, TRUST, userToken } from './credentials.ts'

const verify = makeVerifier(TRUST)
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
const now = Math.floor(Date.now() / 1000)

void test('a good token gives the user of the specification', async (t) => {
  const alice = { user_id: 'alice', name: 'Alice', role: 'member', roles: ['member'], permissions: ['threads:read'] }
  for (const headers of [
    bearer(userToken()),
    new Headers(bearer(userToken())),
    { AUTHORIZATION: `Bearer ${userToken()}` },
    { authorization: [`Bearer ${userToken()}`], host: ['agent'], 'x-nothing': undefined },
  ])
    t.same(await verify(headers), alice)
})

void test('with the key of the issuer the id is the one that the gateway has', async (t) => {
  const user = await makeVerifier({ ...TRUST, issuerKey: 'corp' })(bearer(userToken()))
  t.equal(user.user_id, 'corp:alice')
})

void test('claims may be elsewhere', async (t) => {
  const claims = { id: '/email', role: '/realm_access/roles', permissions: '/https:~1~1example.com~1scope' }
  const verifyElsewhere = makeVerifier({ ...TRUST, claims })
  const more = { email: 'a@example.com', realm_access: { roles: ['x', 'y'] }, 'https://example.com/scope': 'a b ' }
  t.same(await verifyElsewhere(bearer(userToken(more))), {
    ...{ user_id: 'a@example.com', name: 'Alice', role: 'x', roles: ['x', 'y'], permissions: ['a', 'b'] },
  })
})

void test('nothing can widen a user afterwards', async (t) => {
  const user = await verify(bearer(userToken()))
  t.throws(() => (user.permissions as string[]).push('threads:operate'), TypeError)
  t.throws(() => (user.roles as string[]).push('admin'), TypeError)
  t.throws(() => Object.assign(user, { user_id: 'bob' }), TypeError)
})

const REFUSED: readonly (readonly [name: string, token: () => string, fate: string])[] = [
  ['expired', () => userToken({ exp: now - 60 }), 'credential-expired token-expired'],
  ['expired and for another', () => userToken({ exp: now - 60, aud: 'x' }), 'credential-invalid audience-mismatch'],
  ['without an end', () => userToken({ exp: undefined }), 'credential-invalid claim-missing'],
  ['with an end that is text', () => userToken({ exp: `${now + 60}` }), 'credential-invalid token-malformed'],
  ['not yet good', () => userToken({ nbf: now + 60 }), 'credential-invalid token-not-yet-valid'],
  ['for another audience', () => userToken({ aud: 'mail' }), 'credential-invalid audience-mismatch'],
  ['without an audience', () => userToken({ aud: undefined }), 'credential-invalid audience-mismatch'],
  ['with an audience that is no text', () => userToken({ aud: ['chat', 1] }), 'credential-invalid audience-mismatch'],
  ['of another issuer', () => userToken({ iss: 'https://evil.example.com/' }), 'credential-invalid issuer-unknown'],
  ['of nearly the issuer', () => userToken({ iss: ISSUER.slice(0, -1) }), 'credential-invalid issuer-unknown'],
  ['of a list of issuers', () => userToken({ iss: [ISSUER] }), 'credential-invalid issuer-unknown'],
  ['of no issuer', () => userToken({ iss: undefined }), 'credential-invalid issuer-unknown'],
  ['signed by another', forged.otherKey, 'credential-invalid signature-invalid'],
  ['with another key id', () => userToken({}, { kid: 'k2' }), 'credential-invalid key-unknown'],
  ['with a key id that is no text', () => userToken({}, { kid: 1 }), 'credential-invalid token-malformed'],
  ['signed in another way', () => userToken({}, { alg: 'PS256' }), 'credential-invalid algorithm-not-allowed'],
  ['signed with the public key', () => forged.confused(pemOf(PAIRS.rsa.publicKey)), 'credential-invalid algorithm-not-allowed'],
  ...['none', 'None', 'NONE', ''].map(
    (alg) => [`unsigned by "${alg}"`, () => forged.unsigned(alg), 'credential-invalid algorithm-not-allowed'] as const,
  ),
  ['without its signature', () => forged.unsigned('RS256'), 'credential-invalid signature-invalid'],
  ['with a critical extension', () => userToken({}, { crit: ['x'], x: 1 }), 'credential-invalid token-critical-extension'],
  ['with an unencoded payload', () => userToken({}, { b64: false }), 'credential-invalid token-critical-extension'],
  ['without a subject', () => userToken({ sub: undefined }), 'credential-invalid user-id-invalid'],
  ['with a number for a subject', () => userToken({ sub: 1 }), 'credential-invalid user-id-invalid'],
  ['with a line break in the subject', () => userToken({ sub: 'a\nb' }), 'credential-invalid user-id-invalid'],
  ['that is an assertion', () => assertion(), 'credential-invalid token-type'],
  [
    'of the issuer and the type of assertions',
    () => userToken({}, { typ: 'application/Threadwarden+JWT' }),
    'credential-invalid token-type',
  ],
  ['of two parts', () => userToken().replace(/\.[^.]*$/, ''), 'credential-invalid token-malformed'],
  ['of four parts', () => `${userToken()}.x`, 'credential-invalid token-malformed'],
  ['with another spelling', () => `${userToken()}=`, 'credential-invalid token-malformed'],
  ['with a list for a header', () => userToken().replace(/^[^.]*/, 'W10'), 'credential-invalid token-malformed'],
  ['too long', () => userToken({ more: 'x'.repeat(8192) }), 'credential-invalid token-too-long'],
]

for (const [name, make, expected] of REFUSED) {
  void test(`a token ${name} is refused`, async (t) => {
    t.equal(await fate(verify(bearer(make()))), `NotAuthenticated ${expected}`)
  })
}

const HEADERS: readonly (readonly [name: string, headers: () => Parameters<typeof verify>[0], fate: string])[] = [
  ['no header', () => ({}), 'credential-missing credential-missing'],
  ['no header of fetch', () => new Headers(), 'credential-missing credential-missing'],
  ['a header of nothing', () => ({ authorization: undefined }), 'credential-missing credential-missing'],
  ['an empty header', () => ({ authorization: '' }), 'credential-invalid scheme-not-bearer'],
  ['another scheme', () => ({ authorization: `Basic ${userToken()}` }), 'credential-invalid scheme-not-bearer'],
  ['the scheme in lower case', () => ({ authorization: `bearer ${userToken()}` }), 'credential-invalid scheme-not-bearer'],
  ['two spaces', () => ({ authorization: `Bearer  ${userToken()}` }), 'credential-invalid token-malformed'],
  ['two values', () => ({ authorization: [`Bearer ${userToken()}`, 'Bearer x'] }), 'credential-invalid header-repeated'],
  [
    'two spellings of the name',
    () => ({ authorization: `Bearer ${userToken()}`, Authorization: `Bearer ${userToken()}` }),
    'credential-invalid header-repeated',
  ],
  [
    'two headers of fetch',
    () =>
      new Headers([
        ['authorization', `Bearer ${userToken()}`],
        ['authorization', `Bearer ${userToken()}`],
      ]),
    'credential-invalid token-malformed',
  ],
]

for (const [name, headers, expected] of HEADERS) {
  void test(`${name} is refused`, async (t) => {
    t.equal(await fate(verify(headers())), `NotAuthenticated ${expected}`)
  })
}

void test('an inherited header is none', async (t) => {
  const headers = Object.create(bearer(userToken())) as Record<string, string>
  t.match(await fate(verify(headers)), /credential-missing/)
})

const TYPES: readonly (readonly [claims: Record<string, unknown>, user: object])[] = [
  [
    { role: 1, permissions: 1 },
    { roles: [], permissions: [] },
  ],
  [
    { role: ['admin', 1], permissions: ['threads:operate', null] },
    { roles: [], permissions: [] },
  ],
  [
    { role: { admin: true }, permissions: { 'threads:operate': true } },
    { roles: [], permissions: [] },
  ],
  [
    { role: '', permissions: '' },
    { roles: [], permissions: [] },
  ],
  [
    { role: [['admin']], permissions: [['threads:operate']] },
    { roles: [], permissions: [] },
  ],
  [
    { role: undefined, permissions: undefined },
    { roles: [], permissions: [] },
  ],
  [
    { role: 'a b', permissions: 'a b' },
    { role: 'a b', roles: ['a b'], permissions: ['a', 'b'] },
  ],
]

for (const [changes, user] of TYPES) {
  void test(`${JSON.stringify(changes)} grants ${JSON.stringify(user)}`, async (t) => {
    t.same(await verify(bearer(userToken({ ...changes, name: 1 }))), { user_id: 'alice', ...user })
  })
}

void test('a clock may differ by the tolerance and no more', async (t) => {
  const strict = makeVerifier({ ...TRUST, clockTolerance: 0 })
  const late = userToken({ exp: now - 10 })
  t.equal(await fate(verify(bearer(late))), 'alice')
  t.match(await fate(strict(bearer(late))), /credential-expired/)
})

void test('keys are JWKs or PEM, and each serves what it can', async (t) => {
  const both = makeVerifier({
    ...TRUST,
    algorithms: ['RS256', 'EdDSA', 'ES512'],
    keys: [pemOf(PAIRS.rsa.publicKey), jwkOf(PAIRS.ed25519.publicKey, { kid: 'e' }), jwkOf(PAIRS.p521.publicKey)],
  })
  const claims = { iss: ISSUER, aud: 'chat', sub: 'alice', exp: now + 60 }
  t.equal(await fate(both(bearer(userToken()))), 'alice')
  t.equal(await fate(both(bearer(token({ alg: 'EdDSA', kid: 'e' }, claims, PAIRS.ed25519.privateKey)))), 'alice')
  t.equal(await fate(both(bearer(token({ alg: 'ES512' }, claims, PAIRS.p521.privateKey)))), 'alice')
  t.match(await fate(both(bearer(token({ alg: 'EdDSA', kid: 'k1' }, claims, PAIRS.ed25519.privateKey)))), /key-unknown/)
})

void test('no message holds a part of the token', async (t) => {
  const bad = forged.otherKey()
  await t.rejects(verify(bearer(bad)), { message: 'the credential is not valid (signature-invalid)' })
  const error: unknown = await verify(bearer(bad)).catch((caught: unknown) => caught)
  for (const part of bad.split('.')) t.notOk(JSON.stringify([error, String((error as Error).stack)]).includes(part))
})
