/** From verified claims to a user: an id that could be two people's is refused, roles of a wrong shape grant nothing. */
import { test } from 'tap'
import type { User } from '../../src/core/principal.ts'
import { gate, heard, rsaGate, rsaToken } from './gates.ts'
import { claims, PAIRS, pemOf, token, type Part } from './signing.ts'

for (const [name, sub] of [
  ['missing', undefined],
  ['empty', ''],
  ['null', null],
  ['a number', 42],
  ['a list', ['alice']],
  ['an object', { id: 'alice' }],
  ['longer than 255 characters', 'a'.repeat(256)],
  ['one with a line break', 'alice\nbob'],
  ['one with a NUL', 'alice\0'],
  ['one with a control of Latin-1', 'alice\u0085'],
  ['one with DEL', 'alice\u007f'],
] as const) {
  void test(`a user id that is ${name} is refused as malformed`, async (t) => {
    t.equal(await heard(rsaGate(t), rsaToken(claims({ sub }))), 'user-id-invalid: user-id-invalid')
  })
}

void test('a lone surrogate is no character', async (t) => {
  const text = JSON.stringify(claims({ sub: 'alice?' })).replace('alice?', String.raw`alice\ud800`)
  t.match(await heard(rsaGate(t), rsaToken(text)), 'user-id-invalid')
})

void test('any other string is an id as it stands', async (t) => {
  for (const sub of ['a', 'a'.repeat(255), ' alice ', 'auth0|5f7', 'a:b', 'Ålice', '\u{1f9f5}'.repeat(255), 'corp:alice']) {
    t.equal(await heard(rsaGate(t), rsaToken(claims({ sub }))), `corp:${sub}`)
  }
})

void test('a token that is malformed and whose id is too is 401: nobody is told about ids without a good token', async (t) => {
  t.match(await heard(rsaGate(t), rsaToken(claims({ sub: '', exp: 1 }))), 'credential-expired')
  t.match(await heard(rsaGate(t), rsaToken(claims({ sub: '', aud: 'other' }))), 'credential-invalid')
})

const userOf = async (authenticate: ReturnType<typeof rsaGate>, changes: Part): Promise<User> =>
  (await authenticate(`Bearer ${rsaToken(claims(changes))}`)) as User

void test('roles are a string or a list of strings', async (t) => {
  const authenticate = rsaGate(t)
  const roles = async (role: unknown) => (await userOf(authenticate, { role })).roles
  t.same(await roles('operator'), ['operator'])
  t.same(await roles('operator admin'), ['operator admin'], 'a string is one role')
  t.same(await roles(['a', 'b']), ['a', 'b'])
  for (const role of [undefined, null, '', 1, true, {}, { operator: true }, ['operator', 1], [['operator']], ['']])
    t.same(await roles(role), [])
})

void test('permissions are a list of strings or a string with spaces between them', async (t) => {
  const authenticate = rsaGate(t)
  const permissions = async (value: unknown) => (await userOf(authenticate, { permissions: value })).permissions
  t.same(await permissions('a b:c'), ['a', 'b:c'])
  t.same(await permissions(' a  b '), ['a', 'b'])
  t.same(await permissions(['a b', 'c']), ['a b', 'c'])
  for (const value of [undefined, null, '', ' ', 1, {}, ['a', null], [['a']]]) t.same(await permissions(value), [])
})

void test('claims are found where the pointers say, and never on a prototype', async (t) => {
  const authenticate = rsaGate(t, {
    claims: { id: '/act/id', name: '/profile/full', role: '/realm_access/roles', permissions: '/scope' },
  })
  const user = await userOf(authenticate, {
    act: { id: 'eve' },
    profile: { full: 'Eve' },
    realm_access: { roles: ['r'] },
    scope: 'x y',
  })
  t.match(user, {
    kind: 'user',
    id: 'corp:eve',
    issuer: 'corp',
    subject: 'eve',
    name: 'Eve',
    roles: ['r'],
    permissions: ['x', 'y'],
  })
  const prototype = rsaGate(t, { claims: { id: '/constructor/name' } })
  t.match(await heard(prototype, rsaToken(claims())), 'user-id-invalid')
})

void test('the same subject of two issuers is two users', async (t) => {
  const authenticate = gate(t, {
    corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) },
    other: { issuer: 'https://other.example', algorithms: ['ES256'], publicKey: pemOf(PAIRS.p256.publicKey) },
  })
  const kid = 'same'
  const foreign = claims({ iss: 'https://other.example' })
  t.equal(await heard(authenticate, rsaToken(claims(), { kid })), 'corp:alice')
  t.equal(await heard(authenticate, token({ alg: 'ES256', kid }, foreign, PAIRS.p256.privateKey)), 'other:alice')
  t.match(await heard(authenticate, token({ alg: 'ES256', kid }, claims(), PAIRS.p256.privateKey)), 'credential-invalid')
  t.match(await heard(authenticate, rsaToken(foreign, { kid })), 'credential-invalid', 'a key counts for its own issuer')
})
