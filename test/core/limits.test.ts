/** Who counts together: no two tenants, groups, issuers or users share a counter by the letters of their names. */
import { test } from 'tap'
import { budgetUses, countersOf, type SharedBy, type TokenBudget } from '../../src/core/decide/limits.ts'
import { ANONYMOUS, type User } from '../../src/core/decide/principal.ts'

function user(issuer: string, claims: object, groups: readonly string[] = []): User {
  const id = `${issuer}:u`
  return { kind: 'user', id, issuer, subject: 'u', name: undefined, roles: [], permissions: [], groups, claims }
}

const TENANT: SharedBy = { kind: 'claim', at: '/tenant' }

const counters = (by: SharedBy | undefined, principal: User, caller = principal.id): readonly string[] =>
  countersOf(by, principal, caller)

void test('counters of different kinds, issuers, claims and values differ', (t) => {
  const all = [
    counters(undefined, user('corp', {})),
    counters(TENANT, user('corp', { tenant: 'acme' })),
    counters(TENANT, user('partner', { tenant: 'acme' })),
    counters({ kind: 'claim', at: '/org' }, user('corp', { org: 'acme' })),
    counters(TENANT, user('corp', { tenant: 'corp:u' })),
    counters(TENANT, user('corp', { tenant: '["claim","/tenant","corp","acme"]' })),
    counters(TENANT, user('corp', { tenant: 7 })),
    counters(TENANT, user('corp', { tenant: '7' })),
    counters(TENANT, user('corp', {})),
    counters({ kind: 'claim', at: '/org' }, user('corp', {})),
    counters({ kind: 'group', groups: null }, user('corp', {})),
    counters({ kind: 'group', groups: null }, user('corp', {}, ['corp:acme'])),
    counters({ kind: 'group', groups: null }, user('corp', {}, ['partner:acme'])),
    countersOf(TENANT, ANONYMOUS, '@192.0.2.1'),
    countersOf(TENANT, ANONYMOUS, '@192.0.2.2'),
  ].flat()
  t.equal(new Set(all).size, 15)
  t.end()
})

void test('every caller has a counter, and a group has one only once', (t) => {
  t.equal(counters({ kind: 'group', groups: [] }, user('corp', {}, ['corp:a'])).length, 1)
  t.equal(counters({ kind: 'group', groups: null }, user('corp', {}, ['corp:a', 'corp:a', 'corp:b'])).length, 2)
  t.end()
})

void test('a run counts once in each counter, within the strictest of its budgets', (t) => {
  const budget: TokenBudget = { limit: 100, window: 1000, reserve: 10, onExceeded: 'finish' }
  const group = (...groups: readonly string[]): SharedBy => ({ kind: 'group', groups })
  const uses = budgetUses(
    [
      { ...budget, by: group('corp:a', 'corp:b') },
      { ...budget, by: group('corp:b'), limit: 50, reserve: 20, onExceeded: 'end' },
      { ...budget, window: 2000, by: group('corp:b') },
    ],
    user('corp', {}, ['corp:a', 'corp:b']),
    'corp:u',
    15,
  )
  t.match(uses, [
    { limit: 100, window: 1000, reserve: 15, onExceeded: 'finish' },
    { limit: 50, window: 1000, reserve: 20, onExceeded: 'end' },
    { limit: 100, window: 2000, reserve: 15 },
  ])
  t.equal(uses.length, 3)
  t.end()
})
