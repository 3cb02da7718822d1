/** Whether a rule speaks of a request: each part by itself, and which of them is looked at first. */
import { test } from 'tap'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { isOperator, verdictOn, type OperatorSelector, type Rule } from '../../src/core/decide/rules.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { rule } from '../../testing/support/rules-of.ts'

const OPERATORS: readonly OperatorSelector[] = [
  { issuer: 'corp', role: 'operator' },
  { issuer: 'corp', permission: 'threads:operate' },
]
const RUN = descriptor('POST', 'agent/a/run')
const alice = user('alice')
const olga = user('olga', { roles: ['operator'] })

const verdict = (more: Partial<Rule>, principal: Principal = alice, about = RUN, userScoped = false) =>
  verdictOn(rule(more), about, principal, OPERATORS, { userScoped })

void test('a rule that asks for nothing else applies to those whom it names, whether it allows or denies', (t) => {
  const everybody = [ANONYMOUS, EVERYBODY, alice, olga]
  const appliesTo = (who: Rule['who']) =>
    everybody.map((principal) => {
      const verdicts = (['allow', 'deny'] as const).map((effect) => verdict({ who, effect }, principal))
      t.equal(verdicts[0], verdicts[1])
      return verdicts[0]
    })
  t.same(appliesTo(['anonymous']), ['applies', 'applies', 'who', 'who'])
  t.same(appliesTo(['signed-in']), ['who', 'applies', 'applies', 'applies'])
  t.same(appliesTo(['operator']), ['who', 'who', 'who', 'applies'])
  t.same(appliesTo(['anonymous', 'operator']), ['applies', 'applies', 'who', 'applies'])
  t.same(appliesTo([]), ['who', 'who', 'who', 'who'])
  t.end()
})

void test('operators are of their issuer, and have all that a selector names', (t) => {
  t.ok(isOperator(olga, OPERATORS))
  t.ok(isOperator(user('eve', { permissions: ['threads:operate'] }), OPERATORS))
  t.notOk(isOperator(user('olga', { issuer: 'other', roles: ['operator'] }), OPERATORS))
  t.notOk(isOperator(user('eve', { roles: ['not-operator operator'] }), OPERATORS))
  t.notOk(isOperator(user('eve', { roles: ['threads:operate'], permissions: ['operator'] }), OPERATORS))
  t.notOk(isOperator(EVERYBODY, OPERATORS))
  t.notOk(isOperator(ANONYMOUS, OPERATORS))
  t.notOk(isOperator(olga, []))
  t.notOk(isOperator(alice, [{ issuer: 'corp' }]), 'a selector that names nothing selects nobody')
  const both = [{ issuer: 'corp', role: 'operator', permission: 'ops' }]
  t.notOk(isOperator(olga, both))
  t.notOk(isOperator(user('eve', { permissions: ['ops'] }), both))
  t.ok(isOperator(user('eve', { roles: ['operator'], permissions: ['ops'] }), both))
  t.end()
})

void test('methods are those of the request', (t) => {
  const update = descriptor('PATCH', 'threads/t-1')
  t.equal(verdict({ methods: ['PATCH', 'GET'] }, alice, update), 'applies')
  t.equal(verdict({ methods: ['DELETE'] }, alice, update), 'method')
  t.equal(verdict({ methods: ['DELETE'] }, alice, descriptor('DELETE', 'threads/t-1')), 'applies')
  t.end()
})

void test('agents are those of the path, letter by letter', (t) => {
  t.equal(verdict({ agents: new Set(['b', 'a']) }), 'applies')
  for (const agents of [['b'], ['A'], ['aa'], []]) t.equal(verdict({ agents: new Set(agents) }), 'agent', JSON.stringify(agents))
  t.equal(verdict({ agents: new Set(['a']) }, alice, descriptor('GET', 'info')), 'agent', 'a request that names none')
  t.end()
})

void test('conditions are those of the caller', (t) => {
  t.equal(verdict({ when: { issuers: ['corp'] } }), 'applies')
  t.equal(verdict({ when: { issuers: ['partner'] } }), 'issuer')
  t.equal(verdict({ when: { roles: ['operator'] } }), 'role')
  t.equal(verdict({ when: { permissions: { any: ['p'] } } }), 'permission')
  t.equal(verdict({ when: { claims: [{ at: '/x', is: 'present', wanted: true }] } }), 'claim')
  t.equal(verdict({ when: { claims: [{ at: '/x', is: 'equal', to: 1 }] } }, user('a', { claims: { x: '1' } })), 'failed')
  t.end()
})

void test('unless excepts those of whom all of it is so', (t) => {
  const unless = { roles: ['lead'], claims: [{ at: '/level', is: 'at-least', bound: 3 }] } as const
  const level = (claim: unknown, ...roles: string[]) => verdict({ unless }, user('a', { roles, claims: { level: claim } }))
  t.equal(level(3, 'lead'), 'unless')
  t.equal(level(2, 'lead'), 'applies')
  t.equal(level(3), 'applies')
  t.equal(level('3', 'lead'), 'failed', 'nobody can say whether they are excepted')
  t.equal(level('3'), 'applies', 'they are not excepted, whatever the claim means')
  t.equal(verdict({ unless, who: ['anonymous'] }, ANONYMOUS), 'applies', 'who is not signed in is never excepted')
  t.end()
})

void test('a claim of a wrong type fails no rule that does not speak of the caller anyway', (t) => {
  const failing = { claims: [{ at: '/x', is: 'equal', to: 1 }] } as const
  const eve = user('eve', { roles: ['lead'], claims: { x: '1' } })
  const agent = new Set(['b'])
  t.equal(verdict({ when: failing }, eve), 'failed')
  t.equal(verdict({ when: failing, methods: ['GET'] }, eve), 'method')
  t.equal(verdict({ when: failing, who: ['operator'] }, eve), 'who')
  t.equal(verdict({ when: failing, agents: agent }, eve), 'agent')
  t.equal(verdict({ when: failing, onlyUserScoped: true }, eve), 'upstream')
  t.equal(verdict({ when: failing, onlyUserScoped: true }, eve, RUN, true), 'failed')
  t.equal(verdict({ when: { ...failing, roles: ['other'] } }, eve), 'role')
  t.equal(verdict({ when: failing, unless: { roles: ['lead'] } }, eve), 'unless')
  t.equal(verdict({ when: failing, unless: { roles: ['other'] } }, eve), 'failed')
  t.equal(verdict({ when: { roles: ['other'] }, unless: failing }, eve), 'role')
  t.equal(verdict({ when: { claims: [{ at: '/y', is: 'equal', to: 1 }] }, unless: failing }, eve), 'claim')
  t.equal(verdict({ when: failing, unless: failing }, eve), 'failed')
  t.end()
})

void test('the first part that is not met is named: method, who, agent, upstream, then what is asked of the caller', (t) => {
  const parts: Partial<Rule> = {
    methods: ['GET'],
    who: ['operator'],
    agents: new Set(['b']),
    onlyUserScoped: true,
    when: { roles: ['lead'] },
  }
  const order = ['method', 'who', 'agent', 'upstream', 'role', 'applies']
  const met: readonly Partial<Rule>[] = [
    {},
    { methods: ['POST'] },
    { who: ['signed-in'] },
    { agents: new Set(['a']) },
    { onlyUserScoped: false },
    { when: {} },
  ]
  for (const [at, verdictThen] of order.entries()) {
    t.equal(verdict(met.slice(0, at + 1).reduce((made, part) => ({ ...made, ...part }), parts)), verdictThen)
  }
  t.end()
})

void test('a rule for upstreams that scope users themselves holds before no other', (t) => {
  t.equal(verdict({ onlyUserScoped: true }), 'upstream')
  t.equal(verdict({ onlyUserScoped: true }, alice, RUN, true), 'applies')
  t.end()
})

void test('whether somebody is an operator whose role nobody can read: no rule that allows says so, one that denies fails', (t) => {
  const operators = [{ issuer: 'corp', role: 'operator' }]
  const about = descriptor('GET', 'info')
  const odd = { ...user('eve'), unreadable: ['role'] as const }
  const verdict = (more: Parameters<typeof rule>[0], who: Principal = odd) =>
    verdictOn(rule(more), about, who, operators, { userScoped: false })
  t.equal(verdict({ who: ['operator'] }), 'who')
  t.equal(verdict({ who: ['operator'], effect: 'deny' }), 'failed')
  t.equal(verdict({ who: ['operator'], effect: 'deny' }, user('eve')), 'who')
  t.equal(verdict({ who: ['operator'], effect: 'deny' }, { ...odd, unreadable: ['permissions'] }), 'who', 'of another part')
  t.equal(verdict({ who: ['operator'], effect: 'deny' }, { ...odd, issuer: 'other' }), 'who', 'of another issuer')
  t.equal(verdict({ who: ['operator'], effect: 'deny', agents: new Set(['a']) }), 'agent')
  t.end()
})
