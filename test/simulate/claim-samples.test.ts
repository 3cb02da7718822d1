/** Samples of a claim: every way in which comparisons can come out together has one. */
import { test } from 'tap'
import type { ClaimTest } from '../../src/core/decide/rules.ts'
import { outcomeOf, samplesOf, type Sample } from '../../src/tools/simulate/profiles.ts'

const at = '/claim'
const POOL: readonly Sample[] = [
  undefined,
  null,
  true,
  false,
  'a',
  'b',
  'c',
  ...[-3, -1, 0, 0.5, 1, 1.5, 2, 5, 7, 7.5, 10, 11],
  ...[[], ['a'], ['b'], ['a', 'b'], ['c'], [1], [2], [1, 2], [3], [true], [false], ['a', 1], [null]],
  {},
]

const TESTS: Readonly<Record<string, readonly ClaimTest[]>> = {
  'a string': [{ at, is: 'equal', to: 'a' }],
  'two strings': [
    { at, is: 'equal', to: 'a' },
    { at, is: 'in', list: ['a', 'b'] },
  ],
  'bounds below nothing': [
    { at, is: 'at-least', bound: -1 },
    { at, is: 'at-most', bound: 0 },
  ],
  'bounds that leave a gap': [
    { at, is: 'at-most', bound: 1 },
    { at, is: 'at-least', bound: 7 },
    { at, is: 'at-most', bound: 10 },
  ],
  'a number and bounds': [
    { at, is: 'equal', to: 5 },
    { at, is: 'at-least', bound: 2 },
    { at, is: 'at-most', bound: 10 },
  ],
  'members of a list': [
    { at, is: 'containing', item: 'a' },
    { at, is: 'containing', item: 'b' },
  ],
  'members of two types': [
    { at, is: 'containing', item: 'a' },
    { at, is: 'containing', item: 1 },
    { at, is: 'containing', item: 2 },
  ],
  'a truth': [{ at, is: 'equal', to: true }],
  'something or nothing': [
    { at, is: 'present', wanted: true },
    { at, is: 'present', wanted: false },
    { at, is: 'equal', to: 'a' },
  ],
}

for (const [what, tests] of Object.entries(TESTS)) {
  void test(what, (t) => {
    const outcomes = (values: readonly Sample[]) =>
      new Set(values.map((value) => tests.map((one) => outcomeOf(one, value)).join()))
    const sampled = samplesOf(tests)
    for (const outcome of outcomes(POOL)) t.ok(outcomes(sampled).has(outcome), outcome)
    t.equal(outcomes(sampled).size, sampled.length, 'one of each kind')
    t.equal(sampled[0], undefined, 'nothing there comes first')
    t.end()
  })
}
