/** Rules for the users of some issuers alone: what they open is open to nobody else. */
import { test } from 'tap'
import { CALLERS, told, user } from '../../testing/support/callers.ts'
import { compiled, faultsIn, ruled } from '../../testing/support/policies.ts'

const TWO = ['corp', 'partner']
const partner = user('alice', { issuer: 'partner' })

void test('a rule with issuers is for their users', (t) => {
  const policy = compiled(
    ruled([
      { routes: ['info'], allow: ['signed-in'] },
      { routes: ['agent/run'], allow: ['signed-in'], issuers: ['corp'], threads: ['own', 'unknown'] },
      { routes: ['transcribe'], allow: ['signed-in'], issuers: ['partner', 'corp'] },
    ]),
    TWO,
  )
  for (const [caller, run, transcribe] of [
    [CALLERS.alice, 'claims', 'yes'],
    [partner, 'not-allowed', 'yes'],
    [CALLERS.anonymous, 'not-allowed', 'not-allowed'],
    // Mode off: the one user of all comes from no issuer.
    [CALLERS.everybody, 'not-allowed', 'not-allowed'],
  ] as const) {
    t.equal(told(policy, caller, 'POST agent/a/run', 'unknown'), run, caller.id)
    t.equal(told(policy, caller, 'POST transcribe'), transcribe, caller.id)
  }
  t.equal(told(policy, partner, 'GET info'), 'yes', 'a rule without them is for all')
  t.end()
})

void test('operators of one issuer are none of another’s', (t) => {
  const operators = [
    { issuer: 'corp', role: 'operator' },
    { issuer: 'partner', role: 'operator' },
  ]
  const rules = [{ routes: ['threads/clear'], allow: ['operator'], issuers: ['corp'] }]
  const policy = compiled(ruled(rules, { operators }), TWO)
  t.equal(told(policy, CALLERS.olga, 'POST threads/clear'), 'yes')
  t.equal(told(policy, user('olga', { issuer: 'partner', roles: ['operator'] }), 'POST threads/clear'), 'not-allowed')
  t.end()
})

void test('an issuer that is not configured, and anonymous callers, are faults', (t) => {
  const rule = { routes: ['info'], allow: ['signed-in'] }
  t.match(faultsIn(ruled([{ ...rule, issuers: ['crop'] }]), TWO), [
    { path: 'rules.0.issuers', message: 'there is no issuer crop', hint: 'configured: corp, partner' },
  ])
  t.match(faultsIn(ruled([{ ...rule, allow: ['signed-in', 'anonymous'], issuers: ['corp'] }]), TWO), [
    { path: 'rules.0.issuers', message: /have no issuer/ },
  ])
  t.match(faultsIn(ruled([{ ...rule, issuers: [] }]), TWO), [{ path: 'rules.0.issuers', message: 'must name an issuer' }])
  t.end()
})
