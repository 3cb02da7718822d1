/** What is known before a decision: how much of a body is read, and which agents a caller is told of. */
import { test } from 'tap'
import { mayUseAgent, mostBody, mostBodyOfAny, type StandingFacts } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { matchRules } from '../../src/core/decide/rules.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'

const FACTS: StandingFacts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const RUN = descriptor('POST', 'agent/a/run')
const alice = user('alice')
const olga = user('olga', { roles: ['operator'] })
type RulesOfRun = NonNullable<Parameters<typeof rulesOf>[0]['agent/run']>

void test('as much of a body is read as the most generous rule that may come to allow it', (t) => {
  const most = (principal: Principal, rules: RulesOfRun, facts = FACTS) =>
    mostBody(matchRules(RUN, principal, rulesOf({ 'agent/run': rules }), facts), 100)
  t.equal(most(alice, [{}]), 100, 'as configured')
  t.equal(most(alice, [{ limits: { body: 10 } }]), 10, 'less')
  t.equal(most(alice, [{ limits: { body: 1000 } }]), 1000, 'more')
  t.equal(most(alice, [{ limits: { body: 10 } }, {}]), 100)
  t.equal(most(alice, [{ limits: { body: 10 } }, { limits: { body: 1000 } }, {}]), 1000)
  t.equal(
    most(alice, [{ limits: { body: 10 } }, { who: ['operator'], limits: { body: 1000 } }]),
    10,
    'of another’s rule, nothing',
  )
  t.equal(most(olga, [{ limits: { body: 10 } }, { who: ['operator'], limits: { body: 1000 } }]), 1000)
  t.equal(most(alice, [{ agents: new Set(['b']), limits: { body: 1000 } }, { limits: { body: 10 } }]), 10)
  t.equal(most(alice, [{ effect: 'deny', limits: { body: 1000 } }, { limits: { body: 10 } }]), 10, 'who denies reads nothing')
  t.equal(most(alice, []), 0)
  t.equal(most(ANONYMOUS, [{}]), 0)
  const scoped = [{ onlyUserScoped: true, limits: { body: 1000 } }]
  t.equal(most(alice, scoped), 0)
  t.equal(most(alice, scoped, { ...FACTS, userScoped: true }), 1000)
  t.end()
})

void test('of an envelope as much is read as on any route, for any agent', (t) => {
  const configured = ({ largeBody }: { readonly largeBody?: true }): number => (largeBody === true ? 100 : 5)
  const most = (principal: Principal, rules: Parameters<typeof rulesOf>[0]) =>
    mostBodyOfAny(principal, rulesOf(rules), FACTS, configured)
  t.equal(most(alice, { info: [{}] }), 5)
  t.equal(most(alice, { info: [{}], 'agent/run': [{}] }), 100)
  t.equal(
    most(alice, { info: [{}], 'agent/run': [{ limits: { body: 1000 }, agents: new Set(['b']) }] }),
    1000,
    'its agent is not known yet',
  )
  t.equal(most(alice, { info: [{}], 'agent/run': [{ limits: { body: 1000 }, who: ['operator'] }] }), 5)
  t.equal(most(olga, { info: [{}], 'agent/run': [{ limits: { body: 1000 }, who: ['operator'] }] }), 1000)
  t.equal(most(alice, { 'threads/update': [{ methods: ['DELETE'], limits: { body: 50 } }] }), 50)
  t.equal(most(ANONYMOUS, { info: [{}], 'agent/run': [{}] }), 0)
  t.equal(most(alice, {}), 0)
  t.end()
})

void test('an agent may be used by whoever may run it or connect to it, on some thread', (t) => {
  const finance = { agents: new Set(['finance']), when: { permissions: { any: ['finance'] } }, threads: ['own'] } as const
  const others = { agents: new Set(['help', 'docs']), threads: ['own'] } as const
  const rules = rulesOf({ 'agent/run': [finance, others], 'agent/suggest': [{ agents: new Set(['hidden']), threads: ['own'] }] })
  const used = (principal: Principal, by = rules) =>
    ['finance', 'help', 'docs', 'hidden', 'other'].filter((agent) => mayUseAgent(agent, principal, by, FACTS))
  t.same(used(alice), ['help', 'docs'])
  t.same(used(user('fay', { permissions: ['finance'] })), ['finance', 'help', 'docs'])
  t.same(used(EVERYBODY), ['help', 'docs'])
  t.same(used(ANONYMOUS), [])
  t.same(used(alice, rulesOf({ 'agent/connect': [others] })), ['help', 'docs'], 'to connect is enough')
  t.same(used(alice, rulesOf({ 'agent/suggest': [others] })), [], 'to suggest is not')
  const denied = rulesOf({ 'agent/run': [{ threads: ['own'] }, { effect: 'deny', agents: new Set(['finance', 'other']) }] })
  t.same(used(alice, denied), ['help', 'docs', 'hidden'])
  const failing = { when: { claims: [{ at: '/x', is: 'equal', to: 1 }] }, agents: new Set(['docs']) } as const
  t.same(used(user('eve', { claims: { x: '1' } }), rulesOf({ 'agent/run': [others, failing] })), ['help'])
  t.end()
})

void test('what is no id of an agent names none, whatever the policy lets through', (t) => {
  const open = rulesOf({ 'agent/run': [{ threads: ['own'] }] })
  t.ok(mayUseAgent('a', alice, open, FACTS))
  for (const name of ['', 'a/b', 'constructor', '__proto__', 'run', 'a b']) t.notOk(mayUseAgent(name, alice, open, FACTS), name)
  t.end()
})
