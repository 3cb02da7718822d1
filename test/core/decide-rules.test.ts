/** The decision by many rules: who denies wins, what can't be evaluated denies, and the first rule that fits says what passes. */
import { test } from 'tap'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Facts, type OwnerRecord } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import type { RouteRules, Rule } from '../../src/core/decide/rules.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { lineOf } from './decisions.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'

const FACTS: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const INFO = descriptor('GET', 'info')
const READ = descriptor('GET', 'threads/t-1/messages')
const RUN = descriptor('POST', 'agent/a/run')
const alice = user('alice', { claims: { level: 'high' } })
const olga = user('olga', { roles: ['operator'] })
const owned = (owner: string): OwnerRecord => ({ owner, deleted: false })

/** What is decided by these rules alone. */
function decided(
  about: RouteDescriptor,
  principal: Principal,
  rules: readonly Partial<Rule>[],
  facts: Partial<Facts> = {},
  more: Partial<RouteRules> = {},
) {
  return decide(about, principal, rulesOf({ [about.route.id]: rules }, more), {
    ...FACTS,
    ...facts,
  })
}

const ALLOW: Partial<Rule> = { name: 'allow', who: ['signed-in', 'anonymous'], threads: ['own', 'unknown', 'foreign'] }
const DENY: Partial<Rule> = { name: 'deny', effect: 'deny', line: 7 }
const FAILING: Partial<Rule> = { name: 'failing', when: { claims: [{ at: '/level', is: 'at-least', bound: 1 }] } }

void test('a rule that denies wins, wherever it stands; the refusal says which it was', (t) => {
  const refusal = {
    outcome: 'refused',
    reason: 'denied-by-rule',
    code: 'not-allowed',
    rule: { name: 'deny', file: 'policy.yaml', line: 7 },
  }
  for (const rules of [
    [ALLOW, DENY],
    [DENY, ALLOW],
    [ALLOW, ALLOW, DENY, ALLOW],
  ]) {
    t.strictSame(decided(INFO, alice, rules), refusal)
    t.strictSame(decided(READ, alice, rules), refusal, 'without asking whose thread it is')
    t.strictSame(decided(READ, alice, rules, { record: owned('corp:alice') }), refusal)
  }
  t.strictSame(decided(INFO, alice, [DENY]), refusal, 'also where nothing allows')
  t.match(decided(INFO, ANONYMOUS, [ALLOW, DENY]), { outcome: 'permitted' }, 'of others it does not speak')
  t.match(decided(INFO, EVERYBODY, [ALLOW, DENY]), refusal)
  t.match(decided(INFO, alice, [ALLOW, { ...DENY, unless: { issuers: ['corp'] } }]), { outcome: 'permitted' })
  t.match(decided(INFO, olga, [ALLOW, { ...DENY, who: ['operator'] }]), refusal, 'operators, too')
  t.end()
})

void test('one’s own thread that no rule opens is not said to be somebody else’s', (t) => {
  const onlyNew = [{ ...ALLOW, threads: ['unknown'] }] as const
  t.match(decided(RUN, alice, onlyNew, { record: owned('corp:alice') }), { reason: 'no-rule-allows', code: 'not-allowed' })
  t.match(decided(RUN, alice, onlyNew, { record: owned('corp:bob') }), { reason: 'thread-foreign', code: 'not-owner' })
  t.end()
})

void test('a rule may deny by what the thread is to the caller', (t) => {
  const records: readonly OwnerRecord[] = [owned('corp:olga'), owned('corp:bob'), null]
  const denied = 'refused: denied-by-rule (not-owner) by deny'
  for (const [relation, own, foreign, unknown] of [
    ['own', denied, 'permitted by allow for corp:bob, claim', 'permitted by allow for corp:olga, begins, claim'],
    ['foreign', 'permitted by allow for corp:olga, claim', denied, 'permitted by allow for corp:olga, begins, claim'],
    ['unknown', 'permitted by allow for corp:olga, claim', 'permitted by allow for corp:bob, claim', denied],
  ] as const) {
    const rules = [ALLOW, { ...DENY, threads: [relation] }]
    t.match(decided(RUN, olga, rules), { outcome: 'needs', fact: 'record' }, 'which is asked for')
    const lines = records.map((record) => lineOf(decided(RUN, olga, rules, { record })))
    t.same(lines, [own, foreign, unknown], `${relation} denied`)
  }
  const deleted = { owner: 'corp:olga', deleted: true }
  t.match(decided(RUN, olga, [ALLOW, { ...DENY, threads: ['unknown'] }], { record: deleted }), { reason: 'denied-by-rule' })
  t.end()
})

void test('a rule that can’t be evaluated denies, whatever else allows or denies', (t) => {
  const refusal = {
    outcome: 'refused',
    reason: 'rule-failed',
    code: 'not-allowed',
    rule: { name: 'failing', file: 'policy.yaml' },
  }
  for (const effect of ['allow', 'deny'] as const) {
    const failing = { ...FAILING, effect }
    for (const rules of [
      [ALLOW, failing],
      [failing, ALLOW],
      [DENY, failing],
    ])
      t.strictSame(decided(INFO, alice, rules), refusal)
    t.strictSame(decided(READ, alice, [ALLOW, { ...failing, threads: ['foreign'] }]), refusal, 'whatever thread it speaks of')
    t.match(
      decided(INFO, user('bob', { claims: { level: 0 } }), [ALLOW, failing]),
      { outcome: 'permitted' },
      'a claim that merely differs',
    )
    t.match(decided(INFO, user('bob'), [ALLOW, failing]), { outcome: 'permitted' }, 'a claim that is not there')
  }
  t.end()
})

void test('rules of other routes say nothing', (t) => {
  const rules = rulesOf({ info: [ALLOW], transcribe: [DENY], 'threads/list': [FAILING] })
  t.match(decide(INFO, alice, rules, FACTS), { outcome: 'permitted' })
  t.match(decide(descriptor('POST', 'transcribe'), alice, rules, FACTS), { reason: 'denied-by-rule' })
  t.match(decide(descriptor('GET', 'threads'), alice, rules, FACTS), { reason: 'rule-failed' })
  t.match(decide(descriptor('GET', 'memories'), alice, rules, FACTS), { reason: 'no-rule-allows' })
  t.end()
})

void test('the first rule that allows this caller on this thread says what passes', (t) => {
  const rules: readonly Partial<Rule>[] = [
    { name: 'operators', who: ['operator'], threads: ['foreign'] },
    { name: 'own', threads: ['own'] },
    { name: 'all', threads: ['own', 'unknown'] },
  ]
  const named = (principal: Principal, record: OwnerRecord) => {
    const decision = decided(RUN, principal, rules, { record })
    return decision.outcome === 'permitted' ? decision.rule.name : decision.outcome
  }
  t.equal(named(alice, owned('corp:alice')), 'own')
  t.equal(named(alice, null), 'all')
  t.equal(named(olga, owned('corp:bob')), 'operators')
  t.equal(named(olga, owned('corp:olga')), 'own')
  t.equal(named(alice, owned('corp:bob')), 'refused')
  t.match(decided(INFO, olga, [{ name: 'first', who: ['operator'] }, { name: 'second' }]), { rule: { name: 'first' } })
  t.match(decided(INFO, alice, [{ name: 'first', who: ['operator'] }, { name: 'second' }]), { rule: { name: 'second' } })
  const verify = decided(RUN, alice, rules, { record: null, unknownThread: 'verify' })
  t.match(verify, { outcome: 'needs', fact: 'upstreamHistory', rule: { name: 'all' } })
  t.end()
})

void test('a permit tells a thread that begins from one that goes on', (t) => {
  const suggest = descriptor('POST', 'agent/a/suggest')
  const connect = descriptor('POST', 'agent/a/connect')
  for (const [about, record, begins] of [
    [RUN, null, true],
    [RUN, { owner: 'corp:alice', deleted: true }, true],
    [RUN, owned('corp:alice'), false],
    [suggest, null, true],
    [suggest, owned('corp:alice'), false],
    [connect, null, false],
  ] as const) {
    t.match(decided(about, alice, [ALLOW], { record }), { outcome: 'permitted', begins, observed: null }, about.route.id)
  }
  t.end()
})

void test('agents: another one is refused, and the reason says so', (t) => {
  const rules = [{ ...ALLOW, agents: new Set(['a', 'b']) }]
  t.match(decided(RUN, alice, rules, { record: null }), { outcome: 'permitted' })
  t.match(decided(descriptor('POST', 'agent/c/run'), alice, rules), { reason: 'agent-not-allowed', code: 'not-allowed' })
  t.match(decided(descriptor('POST', 'agent/c/run'), ANONYMOUS, rules), { reason: 'anonymous-not-allowed' })
  t.match(decided(descriptor('POST', 'agent/c/run'), alice, [{ ...ALLOW, who: ['operator'], agents: new Set(['a']) }]), {
    reason: 'operator-only',
  })
  t.match(decided(RUN, alice, [ALLOW, { ...DENY, agents: new Set(['a']) }]), { reason: 'denied-by-rule' })
  t.match(decided(RUN, alice, [ALLOW, { ...DENY, agents: new Set(['b']) }], { record: null }), { outcome: 'permitted' })
  t.end()
})

void test('methods: a route that has two may be open for one', (t) => {
  const facts = { record: owned('corp:alice') }
  const rules = [{ ...ALLOW, methods: ['PATCH'] as const }]
  t.match(decided(descriptor('PATCH', 'threads/t-1'), alice, rules, facts), { outcome: 'permitted' })
  t.match(decided(descriptor('DELETE', 'threads/t-1'), alice, rules, facts), { reason: 'no-rule-allows' })
  const denying = [ALLOW, { ...DENY, methods: ['DELETE'] as const }]
  t.match(decided(descriptor('PATCH', 'threads/t-1'), alice, denying, facts), { outcome: 'permitted' })
  t.match(decided(descriptor('DELETE', 'threads/t-1'), alice, denying, facts), { reason: 'denied-by-rule' })
  t.end()
})

void test('a rule that denies with 404 hides by itself; a route that hides, hides every refusal', (t) => {
  const hiding = { ...DENY, hides: true }
  t.match(decided(INFO, alice, [ALLOW, hiding]), { reason: 'denied-by-rule', code: 'not-found' })
  t.match(decided(READ, alice, [ALLOW, { ...hiding, threads: ['own'] }], { record: owned('corp:alice') }), { code: 'not-found' })
  t.match(
    decided(
      READ,
      alice,
      [
        { ...ALLOW, threads: ['own'] },
        { ...hiding, threads: ['own'] },
      ],
      { record: null },
    ),
    { code: 'not-owner' },
  )
  t.match(decided(INFO, alice, [ALLOW, { ...FAILING, hides: true }]), { reason: 'rule-failed', code: 'not-found' })
  t.match(decided(INFO, alice, [ALLOW, hiding, DENY]), { code: 'not-found' }, 'the first one that denies is told')
  const hide = { hide: true }
  const verify: Partial<Facts> = { record: null, unknownThread: 'verify', upstreamHistory: 'some' }
  for (const [about, principal, rules, facts, reason] of [
    [INFO, alice, [ALLOW, DENY], {}, 'denied-by-rule'],
    [INFO, alice, [ALLOW, FAILING], {}, 'rule-failed'],
    [INFO, alice, [], {}, 'no-rule-allows'],
    [INFO, ANONYMOUS, [{}], {}, 'anonymous-not-allowed'],
    [RUN, alice, [{ ...ALLOW, agents: new Set(['b']) }], {}, 'agent-not-allowed'],
    [READ, alice, [{ ...ALLOW, threads: ['own'] }], { record: owned('corp:bob') }, 'thread-foreign'],
    [READ, alice, [{ ...ALLOW, threads: ['own'] }], { record: null }, 'thread-unknown'],
    [RUN, alice, [ALLOW], { record: null, unknownThread: 'deny' }, 'thread-unknown'],
    [RUN, alice, [ALLOW], verify, 'thread-has-history'],
  ] as const) {
    t.match(decided(about, principal, rules, facts, hide), { outcome: 'refused', reason, code: 'not-found' }, reason)
    t.match(decided(about, principal, rules, facts), { outcome: 'refused', reason, code: /^not-(?:allowed|owner)$/ }, reason)
  }
  t.end()
})
