/** `enforcement: observe`: what rests on ownership alone becomes a permit that says why enforcing would have refused it. */
import { test } from 'tap'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Facts, type OwnerRecord } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, type Principal } from '../../src/core/decide/principal.ts'
import { ROUTES } from '../../src/core/route/routes.ts'
import { user } from '../../testing/support/callers.ts'
import { compiled, descriptor, SHIPPED } from '../../testing/support/policies.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'

const { rules } = compiled(SHIPPED)
const alice = user('alice')
const olga = user('olga', { roles: ['operator'] })
const FACTS: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'observe' }
const owned = (owner: string, deleted = false): OwnerRecord => ({ owner, deleted })

const at = (method: string, path: string): RouteDescriptor => {
  const found = descriptor(method, path)
  return found.route.thread === 'body' ? { ...found, ids: { ...found.ids, threadId: 't-1' } } : found
}
const observed = (about: RouteDescriptor, facts: Partial<Facts>, principal: Principal = alice, by = rules) =>
  decide(about, principal, by, { ...FACTS, ...facts })

/** The reason that is reported for a thread of another user, one that such a user deleted, and an unowned one. */
const REPORTED: readonly (readonly [about: RouteDescriptor, foreign: string, deleted: string, unowned: string | null])[] = [
  [at('POST', 'agent/a/run'), 'thread-foreign', 'thread-foreign', null],
  [at('POST', 'agent/a/connect'), 'thread-foreign', 'thread-foreign', null],
  [at('POST', 'agent/a/suggest'), 'thread-foreign', 'thread-foreign', null],
  [at('POST', 'agent/a/stop/t-1'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('PATCH', 'threads/t-1'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('DELETE', 'threads/t-1'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('POST', 'threads/t-1/archive'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('GET', 'threads/t-1/messages'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('GET', 'threads/t-1/events'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('GET', 'threads/t-1/state'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
  [at('POST', 'annotate'), 'thread-foreign', 'thread-foreign', 'thread-unknown'],
]
const ABOUT_A_THREAD = REPORTED.map(([about]) => about)

void test('the table has every route of the runtime about a thread', (t) => {
  t.same(
    ABOUT_A_THREAD.map(({ route }) => route),
    ROUTES.filter(({ thread }) => thread !== undefined),
  )
  t.end()
})

void test('a refusal that depends on ownership alone becomes a permit, which says why enforcement would have refused', (t) => {
  for (const [about, foreign, deleted, unowned] of REPORTED) {
    const name = `${about.route.method} ${about.route.id}`
    for (const [record, reason, owner] of [
      [owned('corp:bob'), foreign, 'corp:bob'],
      [owned('corp:bob', true), deleted, 'corp:bob'],
      [null, unowned, 'corp:alice'],
      [owned('corp:alice'), null, 'corp:alice'],
    ] as const) {
      t.match(observed(about, { record }), { outcome: 'permitted', observed: reason, owner }, name)
    }
    t.match(observed(about, { record: owned('corp:bob'), enforcement: 'enforce' }), { reason: foreign }, name)
    t.match(observed(about, { record: owned('corp:bob', true), enforcement: 'enforce' }), { reason: deleted }, name)
    const enforced = observed(about, { record: null, enforcement: 'enforce' })
    t.match(enforced, unowned === null ? { outcome: 'permitted' } : { reason: unowned }, name)
  }
  t.end()
})

void test('nothing is claimed, and nothing is answered in place of the upstream', (t) => {
  for (const about of ABOUT_A_THREAD) {
    for (const record of [owned('corp:alice'), owned('corp:alice', true), owned('corp:bob'), owned('corp:bob', true), null]) {
      for (const unknownThread of ['claim', 'deny'] as const) {
        const permit = observed(about, { record, unknownThread })
        t.match(permit, { outcome: 'permitted', claim: false, answerEmpty: false }, `${about.route.id} ${JSON.stringify(record)}`)
      }
    }
  }
  t.end()
})

void test('deny and verify are said and not enforced; what they need to know is asked for', (t) => {
  for (const path of ['agent/a/run', 'agent/a/suggest']) {
    const about = at('POST', path)
    t.match(observed(about, { record: null }), { begins: true, observed: null }, 'claim')
    t.match(observed(about, { record: null, unknownThread: 'deny' }), { begins: true, observed: 'thread-unknown' })
    const verify: Partial<Facts> = { record: null, unknownThread: 'verify' }
    t.match(observed(about, verify), { outcome: 'needs', fact: 'upstreamHistory' })
    t.match(observed(about, { ...verify, upstreamHistory: 'none' }), { begins: true, observed: null })
    t.match(observed(about, { ...verify, upstreamHistory: 'some' }), { begins: true, observed: 'thread-has-history' })
    t.match(observed(about, {}), { outcome: 'needs', fact: 'record' })
  }
  t.match(observed(at('POST', 'agent/a/connect'), { record: null }), { begins: false, observed: null, answerEmpty: false })
  t.end()
})

void test('a thread begins also where the policy would not let it, and is counted as one that does', (t) => {
  const own = { threads: ['own'] } as const
  const by = rulesOf({ 'agent/run': [own], 'agent/suggest': [own], 'agent/connect': [own], 'threads/messages': [own] })
  for (const [path, record, begins] of [
    ['run', null, true],
    ['run', owned('corp:alice', true), true],
    ['suggest', null, true],
    ['connect', null, false],
    ['run', owned('corp:bob'), false],
  ] as const) {
    t.match(
      observed(at('POST', `agent/a/${path}`), { record }, alice, by),
      { begins, observed: /^thread-(?:unknown|foreign)$/ },
      path,
    )
  }
  t.match(observed(at('GET', 'threads/t-1/messages'), { record: null }, alice, by), { begins: false, observed: 'thread-unknown' })
  t.end()
})

void test('what the policy refuses stays refused', (t) => {
  for (const [about, principal, reason] of [
    [at('POST', 'threads/clear'), alice, 'operator-only'],
    [at('POST', 'threads/subscribe'), alice, 'upstream-not-user-scoped'],
    [at('GET', 'cpk-debug-events'), olga, 'no-rule-allows'],
    [at('GET', 'memories'), alice, 'no-rule-allows'],
    [at('POST', 'agent/a/run'), ANONYMOUS, 'anonymous-not-allowed'],
    [at('GET', 'threads/t-1/messages'), ANONYMOUS, 'anonymous-not-allowed'],
    [at('GET', 'info'), ANONYMOUS, 'anonymous-not-allowed'],
  ] as const) {
    for (const record of [owned('corp:bob'), null])
      t.match(observed(about, { record }, principal), { outcome: 'refused', reason }, reason)
  }
  t.end()
})

void test('a rule that denies, denies here as well, but for what it denies by relation: that rests on ownership', (t) => {
  const allow = { threads: ['own', 'unknown', 'foreign'] } as const
  const foreign: Partial<Facts> = { record: owned('corp:bob') }
  const read = at('GET', 'threads/t-1/messages')
  const by = (...denying: Parameters<typeof rulesOf>[0]['info'] & object) => rulesOf({ 'threads/messages': [allow, ...denying] })
  t.match(observed(read, foreign, alice, by()), { outcome: 'permitted', observed: null })
  t.match(observed(read, foreign, alice, by({ effect: 'deny' })), { reason: 'denied-by-rule' })
  const byRelation = observed(read, foreign, alice, by({ effect: 'deny', threads: ['foreign'] }))
  t.match(byRelation, { outcome: 'permitted', observed: 'denied-by-rule', claim: false })
  t.match(observed(read, foreign, alice, by({ effect: 'deny', threads: ['own'] })), { outcome: 'permitted', observed: null })
  const failing = { claims: [{ at: '/x', is: 'equal', to: 1 }] } as const
  const eve = user('eve', { claims: { x: '1' } })
  t.match(observed(read, foreign, eve, by({ effect: 'deny', when: failing })), { reason: 'rule-failed' })
  t.end()
})

void test('what passes of a request that enforcing would have refused, the first rule for the caller says', (t) => {
  const by = rulesOf({
    'threads/messages': [
      { name: 'operators', who: ['operator'], threads: ['own'] },
      { name: 'users', threads: ['own'] },
    ],
  })
  const read = at('GET', 'threads/t-1/messages')
  t.match(observed(read, { record: owned('corp:bob') }, alice, by), { observed: 'thread-foreign', rule: { name: 'users' } })
  t.match(observed(read, { record: owned('corp:bob') }, olga, by), { observed: 'thread-foreign', rule: { name: 'operators' } })
  t.end()
})
