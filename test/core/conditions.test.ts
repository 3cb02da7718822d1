/** What a policy asks of a caller: each comparison by type, and that nothing is ever compared with something of another type. */
import { test } from 'tap'
import { holdsOf, unmetOf, type CallerConditions, type ClaimTest } from '../../src/core/decide/rules.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { user } from '../../testing/support/callers.ts'

type Comparison = ClaimTest extends infer T ? (T extends unknown ? Omit<T, 'at'> : never) : never
type Outcome = boolean | 'failed'

/** Whether a user with this claim meets the comparison. */
function compared(comparison: Comparison, claim: unknown): Outcome {
  const test = { at: '/claim', ...comparison } as ClaimTest
  return holdsOf({ claims: [test] }, user('alice', { claims: claim === undefined ? {} : { claim } }))
}

// oxfmt-ignore
const COMPARISONS: readonly (readonly [Comparison, readonly (readonly [claim: unknown, Outcome])[]])[] = [
  [{ is: 'equal', to: 'a' }, [
    ['a', true], ['A', false], ['a ', false], ['', false], [undefined, false],
    [1, 'failed'], [true, 'failed'], [null, 'failed'], [['a'], 'failed'], [{ a: 1 }, 'failed'],
  ]],
  [{ is: 'equal', to: 1 }, [[1, true], [1.5, false], [0, false], [undefined, false], ['1', 'failed'], [true, 'failed'], [[1], 'failed']]],
  [{ is: 'equal', to: false }, [[false, true], [true, false], [undefined, false], [0, 'failed'], ['', 'failed'], ['false', 'failed'], [null, 'failed']]],
  [{ is: 'in', list: ['a', 'b'] }, [
    ['a', true], ['b', true], ['c', false], ['ab', false], [undefined, false],
    [1, 'failed'], [null, 'failed'], [['a'], 'failed'], [['a', 'b'], 'failed'],
  ]],
  [{ is: 'in', list: [1, 2] }, [[2, true], [3, false], ['2', 'failed'], [false, 'failed']]],
  [{ is: 'in', list: [true] }, [[true, true], [false, false], [1, 'failed'], ['true', 'failed']]],
  [{ is: 'containing', item: 'a' }, [
    [['a'], true], [['b', 'a'], true], [['b'], false], [[], false], [['ab'], false], [undefined, false],
    ['a', 'failed'], ['b a', 'failed'], [['a', 1], 'failed'], [[1, 'a'], 'failed'], [['a', null], 'failed'], [[['a']], 'failed'],
    [null, 'failed'], [{ 0: 'a', length: 1 }, 'failed'],
  ]],
  [{ is: 'containing', item: 1 }, [[[2, 1], true], [[2], false], [['1'], 'failed'], [[true], 'failed']]],
  [{ is: 'containing', item: true }, [[[false, true], true], [[false], false], [[1], 'failed']]],
  [{ is: 'at-least', bound: 3 }, [
    [3, true], [3.1, true], [4, true], [2.9, false], [-4, false], [undefined, false],
    ['4', 'failed'], [true, 'failed'], [null, 'failed'], [[4], 'failed'],
  ]],
  [{ is: 'at-most', bound: 3 }, [
    [3, true], [2.9, true], [-4, true], [3.1, false], [undefined, false],
    ['2', 'failed'], [false, 'failed'], [null, 'failed'], [[], 'failed'],
  ]],
  [{ is: 'present', wanted: true }, [[undefined, false], [null, true], [false, true], [0, true], ['', true], [[], true], [{}, true]]],
  [{ is: 'present', wanted: false }, [[undefined, true], [null, false], [false, false], ['', false]]],
]

for (const [comparison, cases] of COMPARISONS) {
  void test(`a claim is compared by type: ${JSON.stringify(comparison)}`, (t) => {
    for (const [claim, outcome] of cases) t.equal(compared(comparison, claim), outcome, JSON.stringify(claim))
    t.end()
  })
}

void test('claims are found by pointer, nested, and never on a prototype', (t) => {
  const claims = { realm: { roles: ['x', 'y'], 'a/b': { 'c~d': 5 } }, list: [{ id: 'first' }] }
  const meets = (at: string, comparison: Comparison) => holdsOf({ claims: [{ at, ...comparison }] }, user('alice', { claims }))
  t.equal(meets('/realm/roles', { is: 'containing', item: 'y' }), true)
  t.equal(meets('/realm/roles/0', { is: 'equal', to: 'x' }), true)
  t.equal(meets('/realm/a~1b/c~0d', { is: 'at-least', bound: 5 }), true)
  t.equal(meets('/list/0/id', { is: 'in', list: ['first'] }), true)
  t.equal(meets('/realm/a', { is: 'equal', to: 'x' }), false, 'no part of a name')
  for (const at of [
    '/constructor',
    '/toString/name',
    '/realm/hasOwnProperty',
    '/__proto__',
    '/realm/roles/length',
    '/list/0/id/length',
  ]) {
    t.equal(meets(at, { is: 'present', wanted: true }), false, at)
  }
  t.equal(holdsOf({ claims: [{ at: '/sub', is: 'present', wanted: false }] }, user('alice', { claims: null })), true)
  t.end()
})

void test('all claims have to be met, and one of a wrong type is not hidden by another that differs', (t) => {
  const alice = user('alice', { claims: { tenant: 'acme', level: 3 } })
  const tenant = (to: string): ClaimTest => ({ at: '/tenant', is: 'equal', to })
  const level = (bound: number): ClaimTest => ({ at: '/level', is: 'at-least', bound })
  const failing: ClaimTest = { at: '/level', is: 'equal', to: '3' }
  t.equal(unmetOf({ claims: [tenant('acme'), level(3)] }, alice), null)
  t.equal(unmetOf({ claims: [tenant('acme'), level(4)] }, alice), 'claim')
  t.equal(unmetOf({ claims: [tenant('other'), level(3)] }, alice), 'claim')
  for (const claims of [
    [tenant('other'), failing],
    [failing, tenant('other')],
    [tenant('acme'), failing],
  ]) {
    t.equal(unmetOf({ claims }, alice), 'failed')
  }
  t.end()
})

void test('one role of those named is enough', (t) => {
  const roles = (...has: string[]) => unmetOf({ roles: ['support', 'lead'] }, user('alice', { roles: has }))
  t.equal(roles('lead'), null)
  t.equal(roles('other', 'support'), null)
  for (const has of [[], ['Support'], ['support lead'], ['supp']]) t.equal(roles(...has), 'role', JSON.stringify(has))
  t.equal(unmetOf({ roles: ['admin'] }, user('alice', { permissions: ['admin'] })), 'role', 'a permission is no role')
  t.end()
})

void test('permissions: one of any, every one of all, and both where both are named', (t) => {
  const asked = (permissions: NonNullable<CallerConditions['permissions']>, ...has: string[]) =>
    unmetOf({ permissions }, user('alice', { permissions: has }))
  t.equal(asked({ any: ['a', 'b'] }, 'b'), null)
  t.equal(asked({ any: ['a', 'b'] }, 'c'), 'permission')
  t.equal(asked({ all: ['a', 'b'] }, 'b', 'c', 'a'), null)
  t.equal(asked({ all: ['a', 'b'] }, 'a'), 'permission')
  t.equal(asked({ any: ['a', 'b'], all: ['c'] }, 'a', 'c'), null)
  t.equal(asked({ any: ['a', 'b'], all: ['c'] }, 'a'), 'permission')
  t.equal(asked({ any: ['a', 'b'], all: ['c'] }, 'c'), 'permission')
  t.equal(unmetOf({ permissions: { any: ['a'] } }, user('alice', { roles: ['a'] })), 'permission', 'a role is no permission')
  t.end()
})

void test('roles or permissions that nobody can read meet nothing, and are no reason to say that they do not', (t) => {
  const odd = (part: 'role' | 'permissions') => ({ ...user('alice'), unreadable: [part] })
  t.equal(unmetOf({ roles: ['x'] }, odd('role')), 'failed')
  t.equal(unmetOf({ permissions: { any: ['x'] } }, odd('permissions')), 'failed')
  t.equal(unmetOf({ permissions: { all: ['x'] } }, odd('permissions')), 'failed')
  t.equal(unmetOf({ roles: ['x'] }, odd('permissions')), 'role', 'only what is asked of them counts')
  t.equal(unmetOf({ permissions: { any: ['x'] } }, odd('role')), 'permission')
  t.equal(unmetOf({ issuers: ['other'], roles: ['x'] }, odd('role')), 'issuer', 'a rule that is not about them fails for nobody')
  t.equal(unmetOf({ roles: ['x'], permissions: { any: ['y'] } }, odd('role')), 'permission')
  t.equal(holdsOf({ roles: ['x'] }, odd('role')), 'failed')
  t.equal(unmetOf({}, odd('role')), null)
  t.end()
})

void test('issuers are those of the user', (t) => {
  t.equal(unmetOf({ issuers: ['partner', 'corp'] }, user('alice')), null)
  t.equal(unmetOf({ issuers: ['corp'] }, user('alice', { issuer: 'partner' })), 'issuer')
  t.end()
})

void test('the first part that is not met is named: claims come last', (t) => {
  const conditions: CallerConditions = {
    issuers: ['corp'],
    roles: ['lead'],
    permissions: { any: ['p'] },
    claims: [{ at: '/level', is: 'at-least', bound: 1 }],
  }
  const claims = { level: 'high' }
  t.equal(unmetOf(conditions, user('alice', { issuer: 'partner', claims })), 'issuer')
  t.equal(unmetOf(conditions, user('alice', { claims })), 'role')
  t.equal(unmetOf(conditions, user('alice', { roles: ['lead'], claims })), 'permission')
  t.equal(unmetOf(conditions, user('alice', { roles: ['lead'], permissions: ['p'], claims })), 'failed')
  t.equal(unmetOf(conditions, user('alice', { roles: ['lead'], permissions: ['p'], claims: { level: 1 } })), null)
  t.end()
})

void test('who is not signed in meets only the empty condition', (t) => {
  const conditions: readonly (readonly [CallerConditions, string])[] = [
    [{ issuers: ['corp'] }, 'issuer'],
    [{ roles: ['lead'] }, 'role'],
    [{ permissions: { any: ['p'] } }, 'permission'],
    [{ permissions: {} }, 'permission'],
    [{ claims: [{ at: '/x', is: 'present', wanted: false }] }, 'claim'],
    [{ claims: [] }, 'claim'],
  ]
  for (const principal of [ANONYMOUS, EVERYBODY] satisfies Principal[]) {
    t.equal(unmetOf({}, principal), null)
    t.equal(holdsOf({}, principal), true)
    for (const [condition, unmet] of conditions) {
      t.equal(unmetOf(condition, principal), unmet, JSON.stringify(condition))
      t.equal(holdsOf(condition, principal), false)
    }
  }
  t.end()
})

void test('nothing is asked where nothing is named', (t) => {
  t.equal(unmetOf({}, user('alice', { claims: undefined })), null)
  t.end()
})
