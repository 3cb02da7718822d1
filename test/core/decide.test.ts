/** The decision itself: what it asks for, what it grants, and that nothing else can make a permit. */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/classify.ts'
import { decide, isOperator, isPermit, relationOf, type Facts, type Rules } from '../../src/core/decide.ts'
import { ANONYMOUS, EVERYBODY, type User } from '../../src/core/principal.ts'
import { loadPolicy } from '../../src/policy/compile.ts'
import { SHIPPED_POLICY } from '../../src/prepare.ts'

const policy = loadPolicy(SHIPPED_POLICY, ['corp'])
const rules = (policy as { value: { policy: { rules: Rules } } }).value.policy.rules
const alice: User = {
  kind: 'user',
  id: 'corp:alice',
  issuer: 'corp',
  subject: 'alice',
  name: undefined,
  roles: [],
  permissions: [],
}
const facts: Facts = { userScoped: false, unknownThread: 'claim' }
const at = (method: string, path: string, threadId?: string): RouteDescriptor => {
  const found = classify(method, path.split('/'), new Map()) as RouteDescriptor
  return threadId === undefined ? found : { ...found, ids: { ...found.ids, threadId } }
}
const run = at('POST', 'agent/default/run', 'T1')

void test('facts are asked for when the decision rests on them, and not before', (t) => {
  t.same(decide(run, alice, rules, facts), { outcome: 'needs', fact: 'record' })
  t.match(decide(run, ANONYMOUS, rules, facts), { reason: 'anonymous-not-allowed' }, 'no look-up for somebody who may not anyway')
  t.match(decide(at('GET', 'info'), alice, rules, facts), { outcome: 'permitted' })
  const verify: Facts = { ...facts, unknownThread: 'verify', record: null }
  t.same(decide(run, alice, rules, verify), { outcome: 'needs', fact: 'upstreamHistory' })
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

void test('a deleted thread stays foreign to others and is unknown to its owner', (t) => {
  const record = { owner: 'corp:alice', deleted: true }
  t.equal(relationOf(record, alice), 'unknown')
  t.equal(relationOf(record, { ...alice, id: 'corp:bob' }), 'foreign')
  t.match(decide(run, alice, rules, { ...facts, unknownThread: 'deny', record }), { claim: true }, 'its owner revives it')
  const opened = {
    ...rules.routes['threads/messages'],
    grants: [{ who: ['operator'], threads: ['foreign'], onlyUserScoped: false }],
  } as const
  const auditing: Rules = { ...rules, routes: { ...rules.routes, 'threads/messages': opened } }
  const olga: User = { ...alice, id: 'corp:olga', roles: ['operator'] }
  const read = at('GET', 'threads/T1/messages')
  t.match(decide(read, olga, auditing, { ...facts, record: { ...record, deleted: false } }), { outcome: 'permitted' })
  t.match(decide(read, olga, auditing, { ...facts, record }), { reason: 'thread-foreign' }, 'operators see no deleted one')
  t.end()
})

void test('the same subject from two issuers is two users, and operators are of one issuer', (t) => {
  const other: User = { ...alice, id: 'other:alice', issuer: 'other', roles: ['operator'] }
  t.equal(relationOf({ owner: 'corp:alice', deleted: false }, other), 'foreign')
  t.notOk(isOperator(other, rules.operators))
  t.ok(isOperator({ ...alice, roles: ['operator'] }, rules.operators))
  t.ok(isOperator({ ...alice, permissions: ['threads:operate'] }, rules.operators))
  t.notOk(isOperator({ ...alice, roles: ['not-operator operator'] }, rules.operators))
  t.notOk(isOperator(EVERYBODY, rules.operators))
  t.notOk(isOperator(alice, [{ issuer: 'corp' }]), 'a selector that names nothing selects nobody')
  t.end()
})

void test('only decide makes permits', (t) => {
  const permit = decide(at('GET', 'info'), alice, rules, facts)
  t.ok(isPermit(permit))
  t.ok(Object.isFrozen(permit))
  t.notOk(isPermit({ ...permit }), 'a copy is none')
  t.notOk(isPermit(decide(run, ANONYMOUS, rules, facts)))
  t.end()
})
