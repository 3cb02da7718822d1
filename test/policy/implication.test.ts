/** Which conditions follow from others, and which exclude each other: what can't be told for sure does not follow. */
import { test } from 'tap'
import type { CallerConditions, ClaimTest, Scalar } from '../../src/core/decide/rules.ts'
import { exclude, implies } from '../../src/policy/reach.ts'

const claim = (...claims: readonly ClaimTest[]): CallerConditions => ({ claims })
const is = (to: Scalar, at = '/x'): CallerConditions => claim({ at, is: 'equal', to })
const oneOf = (...list: readonly Scalar[]): CallerConditions => claim({ at: '/x', is: 'in', list })
const atLeast = (bound: number, at = '/x'): CallerConditions => claim({ at, is: 'at-least', bound })
const atMost = (bound: number): CallerConditions => claim({ at: '/x', is: 'at-most', bound })
const has = (item: Scalar): CallerConditions => claim({ at: '/x', is: 'containing', item })
const there = (wanted: boolean, at = '/x'): CallerConditions => claim({ at, is: 'present', wanted })
const any = (...list: readonly string[]): CallerConditions => ({ permissions: { any: list } })
const all = (...list: readonly string[]): CallerConditions => ({ permissions: { all: list } })

const FOLLOWS: readonly (readonly [readonly CallerConditions[], CallerConditions, boolean])[] = [
  [[{}], {}, true],
  [[{ issuers: ['a'] }], { issuers: ['a', 'b'] }, true],
  [[{ issuers: ['a', 'b'] }], { issuers: ['a'] }, false],
  [[{}], { issuers: ['a'] }, false],
  [[{ issuers: ['a', 'b'] }, { issuers: ['a'] }], { issuers: ['a'] }, true],
  [[{ roles: ['a'] }], { roles: ['a', 'b'] }, true],
  [[{ roles: ['a', 'b'] }], { roles: ['a'] }, false],
  [[all('a', 'b')], all('a'), true],
  [[all('a')], all('a', 'b'), false],
  [[all('a'), all('b')], all('a', 'b'), true],
  [[any('a')], all('a'), true],
  [[any('a', 'b')], all('a'), false],
  [[all('a')], any('a', 'b'), true],
  [[any('a', 'b')], any('a', 'b', 'c'), true],
  [[any('a', 'b', 'c')], any('a', 'b'), false],
  [[any('a', 'b')], { permissions: { any: ['a', 'b'], all: ['a'] } }, false],
  [[{ roles: ['a'] }], any('a'), false],
  [[is('a')], is('a'), true],
  [[is('a')], is('b'), false],
  [[is('a')], is('a', '/y'), false],
  [[is(1)], is('1'), false],
  [[is('a')], oneOf('a', 'b'), true],
  [[oneOf('a', 'b')], is('a'), false],
  [[oneOf('a', 'b')], oneOf('a', 'b', 'c'), true],
  [[is('a')], there(true), true],
  [[is('a')], there(true, '/y'), false],
  [[is('a')], there(false), false],
  [[there(false)], there(false), true],
  [[there(false)], there(true), false],
  [[there(true)], is('a'), false],
  [[atLeast(3)], atLeast(2), true],
  [[atLeast(2)], atLeast(3), false],
  [[atLeast(3)], atLeast(2, '/y'), false],
  [[atMost(2)], atMost(3), true],
  [[atMost(3)], atMost(2), false],
  [[atLeast(3)], atMost(3), false],
  [[has('a')], has('a'), true],
  [[has('a')], has('b'), false],
  [[has('a')], is('a'), false],
  [[is('a'), atLeast(1, '/y')], claim({ at: '/x', is: 'equal', to: 'a' }, { at: '/y', is: 'at-least', bound: 1 }), true],
  [[is('a')], claim({ at: '/x', is: 'equal', to: 'a' }, { at: '/y', is: 'at-least', bound: 1 }), false],
]

const EXCLUDE: readonly (readonly [readonly CallerConditions[], boolean])[] = [
  [[], false],
  [[{ issuers: ['a'] }, { issuers: ['b'] }], true],
  [[{ issuers: ['a', 'b'] }, { issuers: ['b'] }], false],
  [[{ issuers: ['a', 'b'] }, { issuers: ['b', 'c'] }, { issuers: ['a', 'c'] }], true],
  [[{ roles: ['a'] }, { roles: ['b'] }], false],
  [[is('a'), is('b')], true],
  [[is('a'), is('b', '/y')], false],
  [[is(1), is('1')], true],
  [[is('a'), oneOf('b', 'c')], true],
  [[oneOf('a', 'b'), oneOf('b', 'c')], false],
  [[there(false), is('a')], true],
  [[there(true), there(false)], true],
  [[there(false), there(false)], false],
  [[there(true), is('a')], false],
  [[there(false), is('a', '/y')], false],
  [[atLeast(4), atMost(3)], true],
  [[atMost(3), atLeast(4)], true],
  [[atLeast(3), atMost(3)], false],
  [[atLeast(1), atLeast(4)], false],
  [[atLeast(4, '/y'), atMost(3)], false],
  [[has('a'), has('b')], false],
]

void test('what follows, and what does not', (t) => {
  for (const [given, asked, follows] of FOLLOWS) t.equal(implies(given, asked), follows, JSON.stringify([given, asked]))
  t.end()
})

void test('what excludes each other, and what does not', (t) => {
  for (const [given, excluding] of EXCLUDE) t.equal(exclude(given), excluding, JSON.stringify(given))
  t.end()
})
