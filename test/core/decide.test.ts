/** The decision itself: what it asks for, what it grants, and that nothing else can make a permit. */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, isListed, isPermit, relationOf, type Facts } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { ALL_ROUTES, type RouteId } from '../../src/core/route/routes.ts'
import type { Rule, Rules } from '../../src/core/decide/rules.ts'
import { user } from '../policy/callers.ts'
import { compiled, SHIPPED } from '../policy/policies.ts'
import { rule } from './rules-of.ts'

const { rules } = compiled(SHIPPED)
const alice = user('alice')
const facts: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const at = (method: string, path: string, threadId?: string): RouteDescriptor => {
  const found = classify(method, path.split('/'), new Map()) as RouteDescriptor
  return threadId === undefined ? found : { ...found, ids: { ...found.ids, threadId } }
}
const run = at('POST', 'agent/default/run', 'T1')
const olga = user('olga', { roles: ['operator'] })

/** The shipped rules with others for one route. */
const ruling = (route: RouteId, ...others: readonly Partial<Rule>[]): Rules => ({
  ...rules,
  routes: { ...rules.routes, [route]: { rules: others.map(rule), hide: false } },
})

void test('facts are asked for when the decision rests on them, and not before', (t) => {
  t.same(decide(run, alice, rules, facts), { outcome: 'needs', fact: 'record' })
  t.match(decide(run, ANONYMOUS, rules, facts), { reason: 'anonymous-not-allowed' }, 'no look-up for somebody who may not anyway')
  t.match(decide(at('GET', 'info'), alice, rules, facts), { outcome: 'permitted' })
  const verify: Facts = { ...facts, unknownThread: 'verify', record: null }
  const [first] = rules.routes['agent/run'].rules
  t.strictSame(decide(run, alice, rules, verify), { outcome: 'needs', fact: 'upstreamHistory', rule: first })
  t.match(decide(run, alice, rules, { ...verify, record: { owner: 'corp:bob', deleted: false } }), { reason: 'thread-foreign' })
  t.end()
})

void test('an unknown thread: claimed by a run, not by a suggestion; connect is answered empty; deny refuses', (t) => {
  const unknown: Facts = { ...facts, record: null }
  t.match(decide(run, alice, rules, unknown), { outcome: 'permitted', claim: true, answerEmpty: false })
  t.match(decide(at('POST', 'agent/default/suggest', 'T1'), alice, rules, unknown), { outcome: 'permitted', claim: false })
  for (const unknownThread of ['claim', 'verify', 'deny'] as const) {
    const connect = decide(at('POST', 'agent/default/connect', 'T1'), alice, rules, { ...unknown, unknownThread })
    t.match(connect, { outcome: 'permitted', claim: false, answerEmpty: true }, unknownThread)
  }
  t.match(decide(run, alice, rules, { ...unknown, unknownThread: 'deny' }), { reason: 'thread-unknown', code: 'not-owner' })
  const verify: Facts = { ...unknown, unknownThread: 'verify' }
  t.match(decide(run, alice, rules, { ...verify, upstreamHistory: 'none' }), { claim: true })
  t.match(decide(run, alice, rules, { ...verify, upstreamHistory: 'some' }), { reason: 'thread-has-history', code: 'not-owner' })
  t.match(decide(at('GET', 'threads/T1/messages'), alice, rules, unknown), { reason: 'thread-unknown', code: 'not-owner' })
  t.match(decide(at('GET', 'threads/T1/state'), alice, rules, unknown), { reason: 'thread-unknown', code: 'not-found' })
  t.end()
})

void test('a thread of which no run is confirmed is its owner’s to run, and nothing else, whatever a policy says', (t) => {
  const record = { owner: 'corp:alice', deleted: false, provisional: true } as const
  const open = ['agent/run', 'agent/connect', 'agent/suggest', 'agent/stop']
  const bob = user('bob')
  const everything = (id: RouteId): Rules => ruling(id, { threads: ['own', 'shared', 'unknown', 'foreign'] })
  for (const route of ALL_ROUTES.filter(({ thread }) => thread !== undefined)) {
    const about = { outcome: 'classified', route, ids: { agentId: 'default', threadId: 'T1' }, query: [] } as const
    const name = `${route.method} ${route.id}`
    const isOpen = open.includes(route.id)
    t.equal(relationOf(record, alice, about, rules), isOpen ? 'own' : 'unknown', name)
    for (const by of [rules, everything(route.id)]) {
      for (const unknownThread of ['claim', 'verify', 'deny'] as const) {
        const decision = decide(about, alice, by, { ...facts, unknownThread, record })
        const refused = {
          outcome: 'refused',
          reason: by === rules && route.own && route.leave !== true ? 'no-rule-allows' : 'thread-unconfirmed',
        }
        t.match(decision, isOpen ? { outcome: 'permitted', answerEmpty: false, begins: false } : refused, name)
      }
    }
    t.equal(relationOf({ owner: 'corp:alice', deleted: false }, alice, about, rules), 'own')
    const shared = { ...record, granted: 'write' } as const
    for (const principal of [bob, olga]) {
      const theirs = decide(about, principal, everything(route.id), { ...facts, record })
      t.equal(theirs.outcome, isOpen ? 'permitted' : 'refused', `${name} by another whom the policy lets in`)
      const granted = decide(about, principal, ruling(route.id, { threads: ['own', 'shared'] }), { ...facts, record: shared })
      t.match(granted, isOpen ? { outcome: 'permitted' } : { reason: 'thread-foreign' }, `${name} by whom it was shared with`)
    }
    const observed = decide(about, alice, everything(route.id), { ...facts, enforcement: 'observe', record })
    const said = { outcome: 'permitted', claim: false, observed: isOpen ? null : 'thread-unconfirmed' }
    t.match(observed, route.own ? { reason: 'thread-unconfirmed' } : said, `${name} is only said under observe`)
  }
  t.match(decide(at('GET', 'threads/T1/state'), alice, rules, { ...facts, record }), { code: 'not-found' })
  t.match(decide(at('GET', 'threads/T1/messages'), alice, rules, { ...facts, record }), { code: 'not-owner' })
  t.notOk(isListed('T1', record, alice, rules, facts))
  t.ok(isListed('T1', { owner: 'corp:alice', deleted: false }, alice, rules, facts))
  const dead = { ...record, deleted: true }
  t.match(decide(at('GET', 'threads/T1/messages'), alice, rules, { ...facts, record: dead }), { reason: 'thread-unknown' })
  t.end()
})

void test('a deleted thread stays foreign to others and is unknown to its owner', (t) => {
  const record = { owner: 'corp:alice', deleted: true }
  t.equal(relationOf(record, alice, run, rules), 'unknown')
  t.equal(relationOf(record, { ...alice, id: 'corp:bob' }, run, rules), 'foreign')
  t.match(decide(run, alice, rules, { ...facts, unknownThread: 'deny', record }), { claim: true }, 'its owner revives it')
  const auditing = ruling('threads/messages', { who: ['operator'], threads: ['foreign'] })
  const read = at('GET', 'threads/T1/messages')
  t.match(decide(read, olga, auditing, { ...facts, record: { ...record, deleted: false } }), { outcome: 'permitted' })
  t.match(decide(read, olga, auditing, { ...facts, record }), { reason: 'thread-foreign' }, 'operators see no deleted one')
  t.end()
})

void test('the same subject from two issuers is two users', (t) => {
  t.equal(relationOf({ owner: 'corp:alice', deleted: false }, user('alice', { issuer: 'other' }), run, rules), 'foreign')
  t.end()
})

void test('a rule speaks of those that it names', (t) => {
  const info = at('GET', 'info')
  const callers: Readonly<Record<string, Principal>> = { anonymous: ANONYMOUS, everybody: EVERYBODY, alice, olga }
  const speaksOf = {
    anonymous: ['anonymous', 'everybody'],
    'signed-in': ['everybody', 'alice', 'olga'],
    operator: ['olga'],
  } as const
  for (const who of ['anonymous', 'signed-in', 'operator'] as const) {
    const permitted = Object.keys(callers).filter((name) => {
      const decision = decide(info, callers[name] as Principal, ruling('info', { who: [who] }), facts)
      return decision.outcome === 'permitted'
    })
    t.strictSame(permitted, speaksOf[who], who)
  }
  t.end()
})

void test('whoever no rule speaks of is told why', (t) => {
  const told = (principal: Principal, ...others: readonly Partial<Rule>[]) => {
    const decision = decide(at('GET', 'info'), principal, ruling('info', ...others), facts)
    return decision.outcome === 'refused' ? decision.reason : decision.outcome
  }
  for (const principal of [ANONYMOUS, EVERYBODY, alice]) t.equal(told(principal), 'no-rule-allows', 'a closed route')
  t.equal(told(ANONYMOUS, { who: ['signed-in'] }), 'anonymous-not-allowed')
  t.equal(told(ANONYMOUS, { who: ['operator'] }), 'anonymous-not-allowed')
  t.equal(told(alice, { who: ['operator'] }, { who: ['operator'] }), 'operator-only')
  t.equal(told(EVERYBODY, { who: ['operator'] }), 'operator-only')
  t.equal(told(alice, { who: ['anonymous'] }), 'no-rule-allows')
  t.equal(told(alice, { who: ['operator'] }, { who: ['anonymous'] }), 'no-rule-allows')
  t.equal(told(alice, { who: ['anonymous', 'operator'] }), 'no-rule-allows')
  t.end()
})

void test('no list for the anonymous callers of mode `optional`, whatever a policy says: it would be the list of all', (t) => {
  const list = at('GET', 'threads')
  const open = ruling('threads/list', { who: ['anonymous', 'signed-in'] })
  t.match(decide(list, ANONYMOUS, open, facts), { reason: 'anonymous-not-allowed', code: 'not-allowed' })
  t.match(decide(list, EVERYBODY, open, facts), { outcome: 'permitted' }, 'in mode `off` everybody is one user')
  t.match(decide(list, alice, open, facts), { outcome: 'permitted' })
  t.match(decide(at('GET', 'info'), ANONYMOUS, ruling('info', { who: ['anonymous'] }), facts), { outcome: 'permitted' })
  t.end()
})

void test('a permit for a foreign thread names its owner, in whose name a run on it registers', (t) => {
  const helping = ruling('agent/run', { who: ['operator'], threads: ['foreign', 'own'] })
  const decided = (owner: string) => decide(run, olga, helping, { ...facts, record: { owner, deleted: false } })
  t.match(decided('corp:alice'), { outcome: 'permitted', owner: 'corp:alice', claim: true })
  t.match(decided('corp:olga'), { outcome: 'permitted', owner: 'corp:olga', claim: true })
  t.end()
})

void test('only a run claims: whatever else its owner does on a thread registers nothing', (t) => {
  const own: Facts = { ...facts, record: { owner: 'corp:alice', deleted: false } }
  t.match(decide(run, alice, rules, own), { outcome: 'permitted', claim: true, answerEmpty: false })
  for (const path of ['agent/default/connect', 'agent/default/suggest', 'agent/default/stop/T1', 'threads/T1/archive'])
    t.match(decide(at('POST', path, 'T1'), alice, rules, own), { outcome: 'permitted', claim: false, answerEmpty: false }, path)
  t.end()
})

void test('one rule is enough, whatever the others leave out', (t) => {
  const open = ruling('threads/messages', { who: ['signed-in'], threads: ['own'] }, { who: ['operator'], threads: ['foreign'] })
  const read = at('GET', 'threads/T1/messages')
  for (const owner of ['corp:alice', 'corp:olga'])
    t.match(decide(read, olga, open, { ...facts, record: { owner, deleted: false } }), { outcome: 'permitted', owner }, owner)
  t.match(decide(read, alice, open, { ...facts, record: { owner: 'corp:olga', deleted: false } }), { reason: 'thread-foreign' })
  t.end()
})

void test('no route but run, connect and suggest finds a thread that nobody owns, whatever a policy says', (t) => {
  const unknown: Facts = { ...facts, record: null }
  const open = ruling('threads/messages', { who: ['signed-in'], threads: ['unknown'] })
  t.match(decide(at('GET', 'threads/T1/messages'), alice, open, unknown), { reason: 'thread-unknown', code: 'not-owner' })
  t.end()
})

void test('a rule for upstreams that scope users themselves holds before no other', (t) => {
  const subscribe = at('POST', 'threads/subscribe')
  const scoped = ruling('threads/subscribe', { who: ['signed-in'], onlyUserScoped: true })
  t.match(decide(subscribe, alice, scoped, facts), { reason: 'upstream-not-user-scoped', code: 'not-allowed' })
  t.match(decide(subscribe, alice, scoped, { ...facts, userScoped: true }), { outcome: 'permitted' })
  t.end()
})

void test('only decide makes permits', (t) => {
  const permit = decide(at('GET', 'info'), alice, rules, facts)
  t.ok(isPermit(permit))
  t.ok(Object.isFrozen(permit))
  t.notOk(isPermit({ ...permit }), 'a copy is none')
  t.notOk(isPermit(structuredClone(permit)))
  t.notOk(isPermit(Object.create(permit)), 'nor what inherits from one')
  t.notOk(isPermit(new Proxy(permit, {})))
  const { constructor } = permit as unknown as { readonly constructor: new (...values: unknown[]) => unknown }
  t.throws(() => new constructor(Symbol('making a permit'), at('GET', 'info'), alice, {}, {}), /decide alone/)
  t.notOk(isPermit(decide(run, ANONYMOUS, rules, facts)))
  for (const value of [undefined, null, 'permitted', 5, {}, []]) t.notOk(isPermit(value), JSON.stringify(value))
  t.end()
})
