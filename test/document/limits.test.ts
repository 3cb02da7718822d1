/** Limits as operators write them: every form is read, and every mistake is named. */
import { test } from 'tap'
import { ratesOrOff, streamsOrOff, tokenBudgets } from '../../src/document/limits.ts'

const faultsOf = (schema: { safeParse(value: unknown): { error?: { issues: readonly object[] } } }, value: unknown) =>
  schema.safeParse(value).error?.issues ?? []

void test('rates and numbers of streams', (t) => {
  const tenant = { kind: 'claim', at: '/tenant' }
  t.same(ratesOrOff.parse('off'), 'off')
  t.same(ratesOrOff.parse('60/m'), [{ amount: 60, per: 60_000 }])
  t.same(ratesOrOff.parse({ rate: '60/m', per: '/tenant' }), [{ amount: 60, per: 60_000, by: tenant }])
  t.same(ratesOrOff.parse(['1/s', { rate: '9/h', per: 'group', groups: ['corp:a'] }]), [
    { amount: 1, per: 1000 },
    { amount: 9, per: 3_600_000, by: { kind: 'group', groups: ['corp:a'] } },
  ])
  t.same(ratesOrOff.parse({ rate: '9/h', per: 'group' }), [{ amount: 9, per: 3_600_000, by: { kind: 'group', groups: null } }])
  t.same(streamsOrOff.parse(20), [{ most: 20 }])
  t.same(streamsOrOff.parse([20, { most: 500, per: '/tenant' }]), [{ most: 20 }, { most: 500, by: tenant }])
  t.end()
})

void test('what is no limit', (t) => {
  for (const value of ['60/d', 60, true, null, '', {}, [], ['off'], { rate: '60/m', per: 'tenant' }, { rate: '60/m', per: '' }]) {
    t.not(faultsOf(ratesOrOff, value).length, 0, JSON.stringify(value))
  }
  for (const value of [0, 1.5, '20', { most: 0, per: '/tenant' }, [], { most: 5, groups: ['corp:a'] }]) {
    t.not(faultsOf(streamsOrOff, value).length, 0, JSON.stringify(value))
  }
  t.not(faultsOf(ratesOrOff, ['1/s', '60/m']).length, 0, 'two with one key')
  t.match(faultsOf(ratesOrOff, '60/d'), [{ message: 'is not a rate | write 60/m, 10/s, 1000/h or off' }])
  t.match(faultsOf(ratesOrOff, { rate: '60/d' }), [{ message: /write \{ rate: 60\/m, per: \/tenant \}/ }])
  t.end()
})

void test('token budgets', (t) => {
  t.same(tokenBudgets.parse([{ limit: 200_000, window: '1d' }]), [
    { limit: 200_000, window: 86_400_000, reserve: 10_000, onExceeded: 'finish' },
  ])
  t.same(tokenBudgets.parse([{ limit: 500, window: '30m', per: '/a~1b', onExceeded: 'end' }]), [
    { limit: 500, window: 1_800_000, reserve: 500, onExceeded: 'end', by: { kind: 'claim', at: '/a~1b' } },
  ])
  const faults: readonly (readonly [object, string, RegExp])[] = [
    [{ window: '1d' }, 'limit', /number/],
    [{ limit: 0, window: '1d' }, 'limit', /not a number of tokens/],
    [{ limit: 1.5, window: '1d' }, 'limit', /not a number of tokens/],
    [{ limit: '2M', window: '1d' }, 'limit', /not a number of tokens/],
    [{ limit: 2e12, window: '1d' }, 'limit', /too many/],
    [{ limit: 5 }, 'window', /not a window/],
    [{ limit: 5, window: '1y' }, 'window', /not a window/],
    [{ limit: 5, window: '367d' }, 'window', /not a window/],
    [{ limit: 5, window: '1d', per: 'tenant' }, 'per', /JSON pointer/],
    [{ limit: 5, window: '1d', per: '/a~2' }, 'per', /JSON pointer/],
    [{ limit: 5, window: '1d', groups: ['corp:a'] }, 'groups', /per: group only/],
    [{ limit: 5, window: '1d', per: 'group', groups: ['staff'] }, 'groups', /issuer:group/],
    [{ limit: 5, window: '1d', reserve: 6 }, 'reserve', /larger than limit/],
    [{ limit: 5, window: '1d', onExceeded: 'stop' }, 'onExceeded', /Invalid/],
    [{ limit: 5, window: '1d', model: 'x' }, '', /Unrecognized/],
  ]
  for (const [budget, key, message] of faults) {
    const path = key === '' ? [0] : key === 'groups' && message.source.includes('issuer') ? [0, key, 0] : [0, key]
    t.match(faultsOf(tokenBudgets, [budget])[0], { path, message }, JSON.stringify(budget))
  }
  const twice = [
    { limit: 5, window: '1d' },
    { limit: 9, window: '24h' },
  ]
  t.match(faultsOf(tokenBudgets, twice)[0], { message: /same per and window/ })
  t.end()
})
