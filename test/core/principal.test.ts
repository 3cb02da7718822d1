/** Who is asking: claims become a user, and claims of a wrong shape grant nothing. */
import { test } from 'tap'
import { ANONYMOUS, EVERYBODY, userFromClaims } from '../../src/core/principal.ts'

const POINTERS = { id: '/sub', name: '/name', role: '/realm/roles', permissions: '/scope' }
const user = (claims: object) => userFromClaims('corp', { sub: 'a:b', ...claims }, POINTERS)

void test('a user is what the claims at the pointers say, under the key of the issuer', (t) => {
  const claims = { name: 'Alice', realm: { roles: ['x', '', 'y z'] }, scope: ['p', 'q r', ''], roles: ['root'] }
  t.strictSame(user(claims), {
    kind: 'user',
    id: 'corp:a:b',
    issuer: 'corp',
    subject: 'a:b',
    name: 'Alice',
    roles: ['x', 'y z'],
    permissions: ['p', 'q r'],
    claims: { sub: 'a:b', ...claims },
  })
  t.end()
})

void test('a role may be one text, permissions may stand between spaces', (t) => {
  t.match(user({ realm: { roles: 'x y' }, scope: 'p q  r ' }), { roles: ['x y'], permissions: ['p', 'q', 'r'] })
  t.end()
})

void test('claims of a wrong shape grant nothing', (t) => {
  const nothing = { kind: 'user', id: 'corp:a:b', issuer: 'corp', subject: 'a:b', name: undefined, roles: [], permissions: [] }
  const seen = (claims: object) => ({ ...user(claims), claims: undefined, unreadable: undefined })
  const expected = { ...nothing, claims: undefined, unreadable: undefined }
  t.strictSame(seen({}), expected, 'no claims')
  for (const wrong of [{ a: 1 }, 5, true, null, ['x', 5], [5, 'x'], [['x']], '', [''], []])
    t.strictSame(seen({ realm: { roles: wrong }, scope: wrong, name: [wrong] }), expected, JSON.stringify(wrong))
  for (const name of [5, null, true, ['Alice'], { a: 1 }]) t.strictSame(seen({ name }), expected, JSON.stringify(name))
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
