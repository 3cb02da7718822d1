/** Who is asking: claims become a user, and claims of a wrong shape grant nothing. */
import { test } from 'tap'
import { ANONYMOUS, EVERYBODY, userFromClaims } from '../../src/core/decide/principal.ts'

const POINTERS = { id: '/sub', name: '/name', role: '/realm/roles', permissions: '/scope', groups: '/teams' }
const user = (claims: object) => userFromClaims('corp', { sub: 'a:b', ...claims }, POINTERS)

void test('a user is what the claims at the pointers say, under the key of the issuer', (t) => {
  const claims = {
    name: 'Alice',
    realm: { roles: ['x', '', 'y z'] },
    scope: ['p', 'q r', ''],
    teams: ['x', 'y z'],
    roles: ['root'],
    groups: ['root'],
  }
  t.strictSame(user(claims), {
    kind: 'user',
    id: 'corp:a:b',
    issuer: 'corp',
    subject: 'a:b',
    name: 'Alice',
    roles: ['x', 'y z'],
    permissions: ['p', 'q r'],
    groups: ['corp:x', 'corp:y z'],
    claims: { sub: 'a:b', ...claims },
  })
  t.end()
})

void test('a role may be one text, permissions may stand between spaces', (t) => {
  t.match(user({ realm: { roles: 'x y' }, scope: 'p q  r ' }), { roles: ['x y'], permissions: ['p', 'q', 'r'] })
  t.end()
})

void test('claims of a wrong shape grant nothing', (t) => {
  const nothing = {
    kind: 'user',
    id: 'corp:a:b',
    issuer: 'corp',
    subject: 'a:b',
    name: undefined,
    roles: [],
    permissions: [],
    groups: [],
  }
  const seen = (claims: object) => ({ ...user(claims), claims: undefined, unreadable: undefined })
  const expected = { ...nothing, claims: undefined, unreadable: undefined }
  t.strictSame(seen({}), expected, 'no claims')
  for (const wrong of [{ a: 1 }, 5, true, null, ['x', 5], [5, 'x'], [['x']], '', [''], []])
    t.strictSame(seen({ realm: { roles: wrong }, scope: wrong, teams: wrong, name: [wrong] }), expected, JSON.stringify(wrong))
  for (const name of [5, null, true, ['Alice'], { a: 1 }]) t.strictSame(seen({ name }), expected, JSON.stringify(name))
  t.end()
})

void test('groups are qualified by their issuer: one name from two issuers is two groups', (t) => {
  const groups = (issuer: string, teams: unknown): unknown =>
    (userFromClaims(issuer, { sub: 'alice', teams }, POINTERS) as { groups?: unknown }).groups
  t.strictSame(groups('corp', ['staff', 'a:b']), ['corp:staff', 'corp:a:b'])
  t.strictSame(groups('partner', ['staff']), ['partner:staff'])
  t.strictSame(groups('corp', ['staff', 'a', 'staff']), ['corp:staff', 'corp:a'], 'one that is named twice is one')
  t.strictSame(groups('corp', 'staff of all'), ['corp:staff of all'], 'one text is one group, spaces and all')
  t.end()
})

void test('what no group can be called is left out, and a list with something else in it names none', (t) => {
  const groups = (teams: unknown): unknown => (user({ teams }) as { groups?: unknown }).groups
  const long = 'x'.repeat(256)
  for (const name of ['', long, 'a\nb', 'a\u0000', 'a\u0085', '\ud800']) {
    t.strictSame(groups(name), [], JSON.stringify(name))
    t.strictSame(groups([name, 'staff']), ['corp:staff'], JSON.stringify(name))
  }
  t.strictSame(groups('x'.repeat(255)), [`corp:${'x'.repeat(255)}`])
  for (const wrong of [5, true, null, undefined, { staff: true }, ['staff', 5], ['staff', null], [['staff']], ['staff', {}]]) {
    t.strictSame(groups(wrong), [], JSON.stringify(wrong))
  }
  t.end()
})

void test('a claim that says what a user may, and that nobody can read, is known as such', (t) => {
  const unreadable = (claims: object): unknown => (user(claims) as { unreadable?: unknown }).unreadable
  for (const wrong of [{ a: 1 }, 5, true, ['x', 5], [null], [['x']]]) {
    t.strictSame(unreadable({ realm: { roles: wrong } }), ['role'], JSON.stringify(wrong))
    t.strictSame(unreadable({ scope: wrong }), ['permissions'], JSON.stringify(wrong))
  }
  for (const fine of [undefined, null, '', 'x', [], ['x']])
    t.equal(unreadable({ realm: { roles: fine }, scope: fine }), undefined)
  t.end()
})

void test('an id that is missing or malformed is an error of its own', (t) => {
  const refusal = { outcome: 'refused', reason: 'user-id-invalid', code: 'user-id-invalid' }
  for (const sub of [undefined, null, '', 5, ['a'], { a: 1 }, 'a\nb', 'x'.repeat(256)])
    t.match(user({ sub }), refusal, JSON.stringify(sub))
  t.end()
})

// What the ownership table, logs and files hold for ever.
void test('callers without a credential are one owner, “anonymous”, in both modes that have them', (t) => {
  t.strictSame(ANONYMOUS, { kind: 'anonymous', id: 'anonymous', standsForAll: false })
  t.strictSame(EVERYBODY, { kind: 'anonymous', id: 'anonymous', standsForAll: true })
  t.end()
})
