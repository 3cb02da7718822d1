/** Limits of the configuration that would not count as written. */
import { test } from 'tap'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

const BUDGET = { limit: 1000, window: '1d' }

void test('a group of an issuer that is not configured is refused', (t) => {
  const group = (issuer: string) => ({ per: 'group', groups: [`${issuer}:staff`] })
  for (const [key, limit] of [
    ['tokens', [{ ...BUDGET, ...group('other') }]],
    ['runs', { rate: '1/m', ...group('other') }],
    ['streams', [5, { most: 9, ...group('other') }]],
  ] as const) {
    t.match(faultsIn({ [`limits.${key}`]: limit }), [{ path: `limits.${key}`, message: /other:staff is a group of no/ }], key)
  }
  t.same(faultsIn({ 'limits.tokens': [{ ...BUDGET, ...group('corp') }] }), [])
  t.end()
})

void test('budgets that a restart would reset are warned of', (t) => {
  const warned = (changes: object) => accepted(changes as never).warnings.filter(({ path }) => path === 'limits.tokens').length
  t.equal(warned({ 'limits.tokens': [BUDGET] }), 1)
  t.equal(warned({ 'limits.tokens': [] }), 0)
  t.equal(warned({ 'limits.tokens': [BUDGET], 'ownership.store': 'postgres://gateway@db.example.com/chat' }), 0)
  t.end()
})
