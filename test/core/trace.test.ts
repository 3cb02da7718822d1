/** The trace of a decision: it decides nothing by itself, and what it says of each rule bears the decision out. */
import { test } from 'tap'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Facts } from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { traceOf, type Trace } from '../../src/core/decide/trace.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { drawing, madeRules, MADE_ROWS, WORDS } from '../simulate/generated.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'

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

/** What is wrong with a trace, by what it says of the rules alone; null if nothing is. */
function doubt({ decision, relation, tried }: Trace, { enforcement, record }: Facts, isOfGrants: boolean): string | null {
  const is = (effect: 'allow' | 'deny', verdict: string) =>
    tried.filter((one) => one.rule.effect === effect && one.verdict === verdict)
  const deciding = tried.filter(({ decides }) => decides)
  if (deciding.length > 1) return 'two rules decide'
  const [one] = deciding
  if (decision.outcome === 'permitted') {
    if (one?.rule.effect !== 'allow') return 'no rule allows what is permitted'
    if (one.verdict !== 'applies' && !(enforcement === 'observe' && decision.observed !== null)) return 'it does not apply'
    // Under `observe` what a rule denies for the thread's owner is only said.
    const saidOnly = enforcement === 'observe' && decision.observed === 'denied-by-rule'
    if ((is('deny', 'applies').length > 0 && !saidOnly) || tried.some(({ verdict }) => verdict === 'failed'))
      return 'a rule denies it'
    return null
  }
  if (decision.outcome === 'needs')
    return tried.some(({ rule, verdict }) => rule.effect === 'allow' && verdict === 'applies') ? null : 'nothing is needed'
  switch (decision.reason) {
    case 'rule-failed':
      return one?.verdict === 'failed' ? null : 'no rule has failed'
    case 'denied-by-rule':
      return one?.rule.effect === 'deny' && one.verdict === 'applies' ? null : 'no rule denies it'
    case 'thread-foreign':
      return (relation === 'foreign' || relation === 'shared') && is('allow', 'applies').length === 0 ? null : 'a rule allows it'
    case 'thread-unknown':
      return relation === 'unknown' ? null : 'it is not unknown'
    case 'thread-unconfirmed':
      return relation === 'unknown' && record?.provisional === true ? null : 'it is confirmed'
    case 'thread-has-history':
      return relation === 'unknown' && (record === null || record?.seen === true) ? null : 'it is not unknown'
    default: {
      // What could be granted is closed to anonymous callers whatever a rule says.
      if (isOfGrants && decision.reason === 'anonymous-not-allowed') return null
      // One's own thread, and only rules about others.
      const elsewhere = relation === 'own' ? 0 : is('allow', 'thread').length
      return is('allow', 'applies').length + elsewhere === 0 ? null : 'a rule allows it'
    }
  }
}

void test('a trace has the decision of decide, and its rules bear it out', (t) => {
  const outcomes = new Set<string>()
  let traces = 0
  const doubted: unknown[] = []
  for (let seed = 1; seed <= 60; seed += 1) {
    const rules = madeRules(drawing(seed))
    for (const principal of CALLERS) {
      for (const facts of factsFor(principal)) {
        for (const request of REQUESTS) {
          const trace = traceOf(request, principal, rules, facts)
          const decision = decide(request, principal, rules, facts)
          traces += 1
          outcomes.add(decision.outcome === 'refused' ? decision.reason : decision.outcome)
          const wrong =
            JSON.stringify(trace.decision) === JSON.stringify(decision)
              ? doubt(trace, facts, request.route.own === true)
              : 'another decision'
          if (wrong !== null) doubted.push({ seed, wrong, request, principal, facts })
        }
      }
    }
  }
  t.ok(traces > 200_000, `${traces} decisions`)
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
