/** The trace of a decision: it decides nothing by itself, and says of each rule what keeps it from the request. */
import { test } from 'tap'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Facts } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import type { Rule } from '../../src/core/decide/rules.ts'
import { traceOf, type Trace } from '../../src/core/decide/trace.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { requestOf } from './decisions.ts'
import { drawing, madeRules, MADE_ROWS, WORDS } from '../simulate/generated.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'
import { sampleOf } from '../../testing/support/sample.ts'

const CALLERS: readonly Principal[] = [
  ANONYMOUS,
  EVERYBODY,
  user('alice'),
  user('olga', { roles: ['operator'], permissions: ['write'], claims: { org: 'acme', level: 1, groups: ['acme'] } }),
  user('gina', {
    issuer: 'guests',
    roles: ['staff', 'support'],
    permissions: ['finance', 'threads:operate'],
    claims: { org: 2, level: true },
  }),
]

/** What facts there can be about a thread of somebody's. */
function factsFor(principal: Principal): readonly Facts[] {
  const records = [
    undefined,
    null,
    ...[principal.id, 'corp:bob'].flatMap((owner) => [
      ...[false, true].map((deleted) => ({ owner, deleted })),
      { owner, deleted: false, seen: true as const },
      ...(['read', 'write'] as const).map((granted) => ({ owner, deleted: false, granted })),
      { owner, deleted: false, provisional: true as const },
    ]),
    { owner: '', deleted: false },
  ]
  return records.flatMap((record) =>
    (['claim', 'verify', 'deny'] as const).flatMap((unknownThread) =>
      (['enforce', 'observe'] as const).flatMap((enforcement) =>
        ([undefined, 'none', 'some'] as const).map((upstreamHistory) => ({
          userScoped: false,
          unknownThread,
          enforcement,
          ...(record === undefined ? {} : { record }),
          ...(upstreamHistory === undefined ? {} : { upstreamHistory }),
        })),
      ),
    ),
  )
}

const REQUESTS: readonly RouteDescriptor[] = MADE_ROWS.flatMap((route) =>
  (route.path.includes(':agentId') ? [...WORDS.agents, 'other'] : [undefined]).flatMap((agentId) => {
    const ids = { ...(agentId === undefined ? {} : { agentId }), ...(route.thread === undefined ? {} : { threadId: 't-1' }) }
    const request = { outcome: 'classified', route, ids, query: [] } as const
    return route.id === 'threads/update' ? [request, { ...request, ownerOnly: true as const }] : [request]
  }),
)

/** What is wrong with a trace, whatever was decided; null if nothing is. */
function doubt({ decision, tried }: Trace): string | null {
  const deciding = tried.filter(({ decides }) => decides)
  if (deciding.length > 1) return 'two rules decide'
  if (decision.outcome === 'permitted') return deciding[0]?.rule === decision.rule ? null : 'another rule decides'
  const effect = decision.outcome === 'refused' && decision.reason === 'denied-by-rule' ? 'deny' : undefined
  if (effect !== undefined && deciding[0]?.rule.effect !== effect) return 'no rule that denies decides'
  const failed = tried.some(({ verdict }) => verdict === 'failed')
  if (failed !== (decision.outcome === 'refused' && decision.reason === 'rule-failed')) return 'a failed rule is not the reason'
  return null
}

void test('a trace has the decision of decide, and the rule that it rests on', (t) => {
  const outcomes = new Set<string>()
  let traces = 0
  const doubted: unknown[] = []
  for (const seed of sampleOf([...Array(60).keys()], 4)) {
    const rules = madeRules(drawing(seed))
    for (const principal of CALLERS) {
      for (const facts of factsFor(principal)) {
        for (const request of REQUESTS) {
          const trace = traceOf(request, principal, rules, facts)
          const decision = decide(request, principal, rules, facts)
          traces += 1
          outcomes.add(decision.outcome === 'refused' ? decision.reason : decision.outcome)
          const wrong = JSON.stringify(trace.decision) === JSON.stringify(decision) ? doubt(trace) : 'another decision'
          if (wrong !== null) doubted.push({ seed, wrong, request, principal, facts })
        }
      }
    }
  }
  t.ok(traces > 50_000, `${traces} decisions`)
  for (const one of [
    'permitted',
    'needs',
    'rule-failed',
    'denied-by-rule',
    'thread-foreign',
    'thread-unknown',
    'thread-unconfirmed',
    'no-rule-allows',
    'operator-only',
  ])
    t.ok(outcomes.has(one), one)
  t.equal(doubted.length, 0, JSON.stringify(doubted[0]))
  t.end()
})

const facts: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }

const OWN = { owner: 'corp:alice', deleted: false } as const
const BOBS = { owner: 'corp:bob', deleted: false } as const
const READING = { name: 'reading', threads: ['own', 'unknown'] } as const
const FAILING = { name: 'failing', when: { claims: [{ at: '/org', is: 'at-least', bound: 1 }] } } as const
const alice = user('alice', { claims: { org: 'acme' } })

/** The decision, what the thread is to the caller, and the verdict of each rule; `!` marks the one that decides. */
const TRACES: readonly (readonly [string, Principal, Partial<Facts>, readonly Partial<Rule>[], string])[] = [
  ['GET threads/t-1/messages', alice, {}, [READING], 'needs record, null: applies'],
  ['GET threads/t-1/messages', alice, { record: OWN }, [READING], 'permitted, own: applies!'],
  ['GET threads/t-1/messages', alice, { record: BOBS }, [READING], 'thread-foreign, foreign: thread'],
  ['GET threads/t-1/messages', alice, { record: { ...BOBS, granted: 'read' } }, [READING], 'thread-foreign, shared: thread'],
  [
    'GET threads/t-1/messages',
    alice,
    { record: { ...OWN, provisional: true } },
    [READING],
    'thread-unconfirmed, unknown: applies',
  ],
  ['GET threads/t-1/messages', alice, { record: null }, [READING], 'thread-unknown, unknown: applies'],
  ['GET threads/t-1/messages', alice, { record: OWN }, [{ ...READING, threads: ['foreign'] }], 'no-rule-allows, own: thread'],
  ['GET threads/t-1/messages', alice, { record: OWN }, [READING, FAILING], 'rule-failed, own: applies, failed!'],
  [
    'GET threads/t-1/messages',
    alice,
    { record: OWN },
    [READING, { name: 'deny', effect: 'deny', threads: ['own'] }],
    'denied-by-rule, own: applies, applies!',
  ],
  [
    'GET threads/t-1/messages',
    alice,
    { record: OWN, enforcement: 'observe' },
    [READING, { name: 'deny', effect: 'deny', threads: ['own'] }],
    'permitted, own: applies!, applies',
  ],
  ['GET threads/t-1/messages', alice, { record: BOBS, enforcement: 'observe' }, [READING], 'permitted, foreign: thread!'],
  ['POST agent/a/run', alice, { record: null, unknownThread: 'verify' }, [READING], 'needs upstreamHistory, unknown: applies!'],
  [
    'POST agent/a/run',
    alice,
    { record: null, unknownThread: 'verify', upstreamHistory: 'some' },
    [READING],
    'thread-has-history, unknown: applies',
  ],
  ['GET info', alice, {}, [{ name: 'operators', who: ['operator'] }], 'operator-only, null: who'],
  ['GET info', ANONYMOUS, {}, [{ name: 'users', who: ['signed-in'] }], 'anonymous-not-allowed, null: who'],
]

void test('of each decision, what the thread is to the caller and what each rule says', (t) => {
  for (const [request, principal, more, rules, expected] of TRACES) {
    const about = requestOf(request)
    const { decision, relation, tried } = traceOf(about, principal, rulesOf({ [about.route.id]: rules }), { ...facts, ...more })
    const what =
      decision.outcome === 'needs'
        ? `needs ${decision.fact}`
        : decision.outcome === 'refused'
          ? decision.reason
          : decision.outcome
    const verdicts = tried.map(({ verdict, decides }) => (decides ? `${verdict}!` : verdict))
    t.equal(`${what}, ${relation}: ${verdicts.join(', ')}`, expected, `${request}, ${principal.id}, ${JSON.stringify(more)}`)
  }
  t.end()
})

void test('each rule is told with what keeps it from the request', (t) => {
  const rules = rulesOf({
    'threads/messages': [
      { name: 'others', who: ['operator'] },
      { name: 'roles', when: { roles: ['staff'] } },
      { name: 'own', threads: ['own'] },
      { name: 'foreign', threads: ['foreign'] },
      { name: 'scoped', onlyUserScoped: true },
      { name: 'no-foreign', effect: 'deny', threads: ['foreign'], when: { roles: ['staff'] } },
    ],
  })
  const read = descriptor('GET', 'threads/t-1/messages')
  const told = (record: Facts['record']) => {
    const { tried, relation } = traceOf(read, user('alice'), rules, { ...facts, ...(record === undefined ? {} : { record }) })
    return [relation, ...tried.map(({ verdict, decides }) => (decides ? `${verdict}!` : verdict))]
  }
  t.same(told({ owner: 'corp:alice', deleted: false }), ['own', 'who', 'role', 'applies!', 'thread', 'upstream', 'role'])
  t.same(told({ owner: 'corp:bob', deleted: false }), ['foreign', 'who', 'role', 'thread', 'applies!', 'upstream', 'role'])
  t.same(told({ owner: 'corp:bob', deleted: true }), ['foreign', 'who', 'role', 'thread', 'deleted', 'upstream', 'role'])
  const seen = { owner: 'corp:bob', deleted: false, seen: true } as const
  const withheld = { owner: '', deleted: false } as const
  const asked = { owner: 'corp:bob', deleted: false, provisional: true } as const
  t.same(told(asked), ['foreign', 'who', 'role', 'thread', 'unsettled', 'upstream', 'role'])
  t.same(told(withheld), ['foreign', 'who', 'role', 'thread', 'unsettled', 'upstream', 'role'])
  t.same(told(seen), ['foreign', 'who', 'role', 'thread', 'unsettled', 'upstream', 'role'])
  const shared = { owner: 'corp:bob', deleted: false, granted: 'read' } as const
  t.same(
    told(shared),
    ['shared', 'who', 'role', 'thread', 'applies!', 'upstream', 'role'],
    'foreign threads are opened, so it is',
  )
  t.same(told(null), ['unknown', 'who', 'role', 'thread', 'thread', 'upstream', 'role'])
  t.same(told(undefined), [null, 'who', 'role', 'applies', 'applies', 'upstream', 'role'], 'nobody knows the thread yet')
  t.end()
})

void test('what is denied because a rule fails, or because one denies, is told by that rule', (t) => {
  const failing = { name: 'failing', when: { claims: [{ at: '/org', is: 'equal', to: 1 } as const] } }
  const failed = traceOf(
    descriptor('GET', 'info'),
    user('alice', { claims: { org: 'acme' } }),
    rulesOf({ info: [{ name: 'all' }, failing] }),
    facts,
  )
  t.same(
    failed.tried.map(({ decides }) => decides),
    [false, true],
  )
  const denied = traceOf(
    descriptor('GET', 'info'),
    user('alice'),
    rulesOf({ info: [{ name: 'all' }, { name: 'none', effect: 'deny' }] }),
    facts,
  )
  t.same(
    denied.tried.map(({ decides }) => decides),
    [false, true],
  )
  t.end()
})
