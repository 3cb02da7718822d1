/**
 * Claims of another type than they should be: a role that merely holds the word, a list with one stray member, an object
 * that some reader flattens, an id that is a number or a list. Type juggling turns each into a yes somewhere. Here a claim
 * of the wrong shape grants nothing, and an id that is no clean string is an error of its own, 400.
 *
 * RFC 8725 §3.11 and RFC 7519 §4.1.2 (`sub` is a string); CVE-2020-26160 (jwt-go: a list of audiences read as an empty
 * text) is the same mistake with another claim.
 */
import { test } from 'tap'
import type { Authenticated } from '../../src/auth/authenticate.ts'
import type { User } from '../../src/core/decide/principal.ts'
import { heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded } from '../../testing/support/guarded.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { claims, PAIRS, pemOf, type Part } from '../../testing/support/signing.ts'

const CORP = { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } }

const userOf = async (authenticate: ReturnType<typeof rsaGate>, changes: Part): Promise<User> =>
  ((await authenticate(`Bearer ${rsaToken(claims(changes))}`)) as Authenticated).principal as User

/** Claims that make an operator, the honest way. */
const OPERATORS: readonly Part[] = [
  { role: 'operator' },
  { role: ['operator'] },
  { role: ['member', 'operator'] },
  { permissions: 'threads:operate' },
  { permissions: 'threads:read threads:operate' },
  { permissions: ['threads:operate'] },
]

/** Texts that are not the role, though a reader who splits, trims, folds or searches would find it in them. */
// oxfmt-ignore
const NEARLY = [
  'not-operator operator', 'operator member', 'member operator', 'operator,member', 'operator ', ' operator', 'Operator', 'OPERATOR', 'operators', 'operato', 'co-operator',
  'operator\n', 'operator\t', 'operator\0', '\ufeffoperator', 'operator\u200b', '\u043eperator', 'oper\u0430tor', '["operator"]', '{"operator":true}', '*', '.*', 'operator|member',
]

/** The honest claims in shapes that grant nothing. */
const MISSHAPEN: readonly Part[] = [
  ...NEARLY.map((role) => ({ role })),
  ...NEARLY.map((role) => ({ role: [role] })),
  ...[['operator', 1], [1, 'operator'], ['operator', null], [null, 'operator'], ['operator', ['x']], ['operator', {}], ['operator', true]].map((role) => ({ role })), // oxfmt-ignore
  ...[[['operator']], { operator: true }, { 0: 'operator', length: 1 }, { role: 'operator' }, { toString: 'operator' }, [{ name: 'operator' }]].map((role) => ({ role })), // oxfmt-ignore
  ...[true, 1, 0, -1, null, '', [], {}, [''], [[]]].map((role) => ({ role })),
  // The name of the claim is to the letter, and in no other place.
  { roles: 'operator' },
  { Role: 'operator' },
  { 'role ': 'operator' },
  { '/role': 'operator' },
  { realm_access: { role: 'operator' } },
  { user: { role: 'operator' } },
  { operator: true },
  { isOperator: true, admin: true },
  { scope: 'threads:operate' },
  { scp: ['threads:operate'] },
  ...[['read threads:operate'], ['threads:operate '], ['threads:operate', 1], [['threads:operate']], { 'threads:operate': true }, { 0: 'threads:operate' }].map((permissions) => ({ permissions })), // oxfmt-ignore
  ...['threads:operates', 'Threads:Operate', 'threads:operate,x', 'threads', 'threads:*', 'threads:operate\tx', 'x\nthreads:operate', 'threads\u00a0threads:operate\u00a0x', '"threads:operate"', 'threads: operate', true, 1, null, {}].map((permissions) => ({ permissions })), // oxfmt-ignore
  // The role of one claim is no permission of the other.
  { permissions: 'operator' },
  { role: 'threads:operate' },
]

void testFirstPair('an operator route opens only for operators, not for claims that look similar', async (t, pair) => {
  const { gateway, upstream } = await guarded(t, CORP, { pair })
  const clear = async (changes: Part | string) => {
    const token = rsaToken(typeof changes === 'string' ? changes : claims(changes))
    const { status, body } = await gateway.ask({ method: 'POST', target: '/api/copilotkit/threads/clear', token })
    return `${status} ${/"code":"([^"]*)"/.exec(body)?.[1] ?? ''}`
  }
  for (const changes of [{}, ...MISSHAPEN]) t.equal(await clear(changes), '403 not-allowed', JSON.stringify(changes))
  const text = JSON.stringify(claims({ role: 'member' }))
  for (const more of ['"__proto__":{"role":"operator"}', '"constructor":{"prototype":{"role":"operator"}}'])
    t.equal(await clear(text.replace('"role":"member"', more)), '403 not-allowed', more)
  t.equal(await clear(text.replace('"role"', '"role":"operator","role"')), '403 not-allowed', 'the last of two counts')
  t.equal(upstream.beginnings(), 0, 'the upstream got nothing')
  for (const changes of OPERATORS) t.equal(await clear(changes), '200 ', JSON.stringify(changes))
  t.equal(upstream.requests.length, OPERATORS.length)
  t.match(upstream.requests[0], { method: 'POST', target: '/api/copilotkit/threads/clear' })
})

/** Ids that are none. */
const BAD_IDS: readonly (readonly [name: string, sub: unknown])[] = [
  ['missing', undefined],
  ['empty', ''],
  ['null', null],
  ['a number', 42],
  ['zero', 0],
  ['true', true],
  ['a list', ['alice']],
  ['an empty list', []],
  ['a list of two', ['alice', 'bob']],
  ['a list in a list', [['alice']]],
  ['an object', { id: 'alice' }],
  ['an object that turns into text', { toString: 'alice', valueOf: 'alice' }],
  ['an empty object', {}],
  ['longer than 255 characters', 'a'.repeat(256)],
  ['longer than 255 characters beyond the basic plane', '\u{1f9f5}'.repeat(256)],
  ['one with a line break', 'alice\nbob'],
  ['one with a carriage return', 'alice\rbob'],
  ['one with a line break at its end', 'alice\n'],
  ['one with a tab', 'alice\tbob'],
  ['one with a NUL', 'alice\0'],
  ['one with an escape', 'alice\u001b[31m'],
  ['one with a control of Latin-1', 'alice\u0085'],
  ['one with DEL', 'alice\u007f'],
  ['nothing but a control', '\u0001'],
]

for (const [name, sub] of BAD_IDS) {
  void test(`a user id that is ${name} is refused as malformed`, async (t) => {
    t.equal(await heard(rsaGate(t), rsaToken(claims({ sub }))), 'user-id-invalid: user-id-invalid')
  })
}

const SURROGATES = [String.raw`alice\ud800`, String.raw`\udc00alice`, String.raw`\udc00\ud800`, String.raw`al\ud83dice`]

void test('a lone surrogate is no character', async (t) => {
  for (const sub of SURROGATES) {
    const text = JSON.stringify(claims({ sub: 'SUB' })).replace('SUB', sub)
    t.match(await heard(rsaGate(t), rsaToken(text)), 'user-id-invalid', sub)
  }
})

void testFirstPair(
  'over the real gateway a malformed id is 400 on every route, and nothing reaches the upstream',
  async (t, pair) => {
    const { gateway, upstream } = await guarded(t, CORP, { pair })
    const answer = async (method: string, target: string, token: string) => {
      const { status, body } = await gateway.ask({ method, target: `/api/copilotkit${target}`, token })
      return `${status} ${/"code":"([^"]*)"/.exec(body)?.[1] ?? ''}`
    }
    const texts = SURROGATES.map((sub) => JSON.stringify(claims({ sub: 'SUB', role: 'operator' })).replace('SUB', sub))
    for (const payload of [...BAD_IDS.map(([, sub]) => claims({ sub, role: 'operator' })), ...texts]) {
      for (const [method, target] of [
        ['GET', '/info'],
        ['POST', '/threads/clear'],
        ['GET', '/threads/t1/messages'],
        ['GET', '/nowhere'],
      ] as const) {
        t.equal(
          await answer(method, target, rsaToken(payload)),
          '400 user-id-invalid',
          `${method} ${target} ${JSON.stringify(payload)}`,
        )
      }
    }
    t.equal(upstream.beginnings(), 0)
    t.equal(await answer('GET', '/info', rsaToken(claims())), '200 ')
    t.equal(upstream.requests.length, 1)
  },
)

void test('any other string is an id as it stands', async (t) => {
  const ids = ['a', 'a'.repeat(255), ' alice ', 'auth0|5f7', 'a:b', 'Ålice', '\u{1f9f5}'.repeat(255), 'corp:alice', '42', 'null', '[object Object]'] // oxfmt-ignore
  for (const sub of ids) t.equal(await heard(rsaGate(t), rsaToken(claims({ sub }))), `corp:${sub}`)
})

void test('a token that is malformed and whose id is too is 401: nobody is told about ids without a good token', async (t) => {
  t.match(await heard(rsaGate(t), rsaToken(claims({ sub: '', exp: 1 }))), 'credential-expired')
  t.match(await heard(rsaGate(t), rsaToken(claims({ sub: '', aud: 'other' }))), 'credential-invalid')
})

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

void test('a name is a string or none', async (t) => {
  const authenticate = rsaGate(t)
  t.equal((await userOf(authenticate, { name: 'Alice' })).name, 'Alice')
  for (const name of [undefined, null, 1, true, ['Alice'], { first: 'Alice' }])
    t.equal((await userOf(authenticate, { name })).name, undefined)
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
  for (const act of ['eve', ['eve'], null, { sub: 'eve' }, [{ id: 'eve' }]])
    t.match(await heard(authenticate, rsaToken(claims({ act }))), 'user-id-invalid', JSON.stringify(act))
  for (const id of ['/constructor/name', '/__proto__/id', '/toString/name', '/sub/constructor/name']) {
    const prototype = rsaGate(t, { claims: { id } })
    t.match(await heard(prototype, rsaToken(claims())), 'user-id-invalid', id)
  }
})

void test('what every object has is no claim of anybody, even where some library put it there', async (t) => {
  const authenticate = rsaGate(t)
  const inherited = { role: 'operator', permissions: 'threads:operate', name: 'Eve', sub: 'eve' }
  t.teardown(() => {
    for (const name of Object.keys(inherited)) Reflect.deleteProperty(Object.prototype, name)
  })
  for (const [name, value] of Object.entries(inherited))
    Object.defineProperty(Object.prototype, name, { value, configurable: true, writable: true })
  t.match(await userOf(authenticate, {}), { id: 'corp:alice', name: undefined, roles: [], permissions: [] })
  t.equal(await heard(authenticate, rsaToken(claims({ sub: undefined }))), 'user-id-invalid: user-id-invalid')
})
