/** What of a token's claims is written down is what rules compare, and enough to decide by again. */
import { test } from 'tap'
import { claimPointersOf, claimsFrom, takeClaims } from '../../src/core/decide/claim-values.ts'
import { holdsOf, type ClaimTest } from '../../src/core/decide/rules.ts'
import type { Json } from '../../src/core/json/read.ts'
import { compiled, ruled } from '../../testing/support/policies.ts'
import { user } from '../../testing/support/callers.ts'

void test('the pointers of a policy are those that its rules compare, each once', (t) => {
  const policy = compiled(
    ruled([
      {
        routes: ['info'],
        allow: ['signed-in'],
        claims: [
          { at: '/tenant', equals: 'north' },
          { at: '/age', atLeast: 18 },
        ],
      },
      {
        routes: ['threads/list'],
        allow: ['signed-in'],
        unless: {
          claims: [
            { at: '/tenant', exists: false },
            { at: '/a~1b', exists: true },
          ],
        },
      },
    ]),
  )
  t.strictSame(policy.claimPointers, ['/age', '/a~1b', '/tenant'])
  t.strictSame(claimPointersOf(compiled(ruled([{ routes: ['info'], allow: ['signed-in'] }])).rules), [])
  t.end()
})

const CLAIMS = {
  sub: 'alice',
  tenant: 'north',
  email: 'alice@secret.example',
  groups: ['a', 'b', { secret: 'x' }, ['secret']],
  realm: { roles: ['r1'], secret: 'y' },
  'a/b': 1,
  'c~d': null,
  constructor: 'ours',
}

void test('the values of these are taken, and of objects nothing but that they are there', (t) => {
  const pointers = ['/tenant', '/groups', '/realm', '/realm/roles', '/a~1b', '/c~0d', '/gone', '/constructor', '/groups/2/secret']
  t.strictSame(takeClaims(CLAIMS, pointers), {
    '/tenant': 'north',
    '/groups': ['a', 'b', {}, []],
    '/realm': {},
    '/realm/roles': ['r1'],
    '/a~1b': 1,
    '/c~0d': null,
    '/constructor': 'ours',
    '/groups/2/secret': 'x',
  })
  t.strictSame(takeClaims(CLAIMS, ['/toString', '/tenant/0/x']), {}, 'nothing of a prototype')
  t.end()
})

void test('what was taken decides as the claims did', (t) => {
  const tests: ClaimTest[] = [
    '/tenant',
    '/groups',
    '/realm',
    '/realm/roles',
    '/realm/gone',
    '/groups/2',
    '/groups/1',
    '/a~1b',
    '/c~0d',
    '/gone',
  ].flatMap((at): ClaimTest[] => [
    { at, is: 'equal', to: 'north' },
    { at, is: 'in', list: [1, 2] },
    { at, is: 'containing', item: 'a' },
    { at, is: 'containing', item: 'r1' },
    { at, is: 'at-least', bound: 1 },
    { at, is: 'at-most', bound: 0 },
    { at, is: 'present', wanted: true },
    { at, is: 'present', wanted: false },
  ])
  const pointers = [...new Set(tests.map(({ at }) => at))]
  const again = claimsFrom(JSON.parse(JSON.stringify(takeClaims(CLAIMS, pointers))) as Record<string, Json>)
  const results = new Set<unknown>()
  for (const one of tests) {
    const before = holdsOf({ claims: [one] }, user('alice', { claims: CLAIMS }))
    results.add(before)
    t.equal(holdsOf({ claims: [one] }, user('alice', { claims: again })), before, JSON.stringify(one))
  }
  t.equal(results.size, 3, 'true, false and failed')
  t.end()
})

void test('names that are no pointers are refused, and none reaches a prototype', (t) => {
  for (const name of ['', 'tenant', '/a~2']) t.equal(claimsFrom({ [name]: 1 }), null, name)
  const claims = claimsFrom(JSON.parse('{"/__proto__/admin": true, "/__proto__": {}}') as Record<string, Json>)
  t.notOk('admin' in {})
  t.strictSame(Object.keys(claims as object), ['__proto__'])
  t.end()
})
