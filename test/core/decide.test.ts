/** The decision itself: what it asks for, what it grants, and that nothing else can make a permit. */
import { test, type Test } from 'tap'
import {
  decide,
  decideMatched,
  listingFor,
  isPermit,
  relationOf,
  type Facts,
  type OwnerRecord,
} from '../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { ALL_ROUTES } from '../../src/core/route/all-routes.ts'
import type { RouteId } from '../../src/core/route/routes.ts'
import { matchRules, type Rule, type Rules } from '../../src/core/decide/rules.ts'
import { user } from '../../testing/support/callers.ts'
import { compiled, SHIPPED } from '../../testing/support/policies.ts'
import { lineOf, requestOf } from './decisions.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'

const { rules: shipped } = compiled(SHIPPED)

const CALLERS = {
  alice: user('alice'),
  bob: user('bob'),
  olga: user('olga', { roles: ['operator'] }),
  "another issuer's alice": user('alice', { issuer: 'other' }),
  anonymous: ANONYMOUS,
  everybody: EVERYBODY,
} as const satisfies Record<string, Principal>

/** What the store says of the thread; nothing where it was not asked. */
const THREADS = {
  'not looked up': undefined,
  unowned: null,
  "alice's": { owner: 'corp:alice', deleted: false },
  "alice's, unconfirmed": { owner: 'corp:alice', deleted: false, provisional: true },
  "alice's, deleted": { owner: 'corp:alice', deleted: true },
  "alice's, unconfirmed, deleted": { owner: 'corp:alice', deleted: true, provisional: true },
  "alice's, shared for writing": { owner: 'corp:alice', deleted: false, granted: 'write' },
  "alice's, unconfirmed, shared for writing": { owner: 'corp:alice', deleted: false, provisional: true, granted: 'write' },
  'seen of alice': { owner: 'corp:alice', deleted: false, seen: true },
  'seen of several': { owner: '', deleted: false, seen: true },
  'owner revoked': { owner: '', deleted: false },
  "bob's": { owner: 'corp:bob', deleted: false },
  "bob's, deleted": { owner: 'corp:bob', deleted: true },
  "olga's": { owner: 'corp:olga', deleted: false },
} as const satisfies Record<string, OwnerRecord | undefined>

const SETTINGS = {
  claim: { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' },
  deny: { userScoped: false, unknownThread: 'deny', enforcement: 'enforce' },
  verify: { userScoped: false, unknownThread: 'verify', enforcement: 'enforce' },
  'verify, no history': { userScoped: false, unknownThread: 'verify', enforcement: 'enforce', upstreamHistory: 'none' },
  'verify, history': { userScoped: false, unknownThread: 'verify', enforcement: 'enforce', upstreamHistory: 'some' },
  'user-scoped': { userScoped: true, unknownThread: 'claim', enforcement: 'enforce' },
  observe: { userScoped: false, unknownThread: 'claim', enforcement: 'observe' },
} as const satisfies Record<string, Facts>

type Thread = keyof typeof THREADS
type Case = readonly [
  request: string,
  caller: keyof typeof CALLERS,
  thread: Thread,
  setting: keyof typeof SETTINGS,
  expected: string,
]

function factsOf(thread: Thread, setting: keyof typeof SETTINGS): Facts {
  const record = THREADS[thread]
  return { ...SETTINGS[setting], ...(record === undefined ? {} : { record }) }
}

function check(t: Test, rules: Rules, cases: readonly Case[]): void {
  for (const [request, caller, thread, setting, expected] of cases) {
    const line = lineOf(decide(requestOf(request), CALLERS[caller], rules, factsOf(thread, setting)))
    t.equal(line, expected, `${request}, ${caller}, ${thread}, ${setting}`)
  }
}

const allow = (threads: Rule['threads'], more: Partial<Rule> = {}): Partial<Rule> => ({ name: 'allow', threads, ...more })
const opening = (id: RouteId, ...rules: readonly Partial<Rule>[]): Rules => rulesOf({ [id]: rules })

void test('facts are asked for when the decision depends on them, and not before', (t) => {
  check(t, shipped, [
    ['GET info', 'alice', 'not looked up', 'claim', 'permitted by everyone for corp:alice'],
    ['POST agent/a/run', 'alice', 'not looked up', 'claim', 'needs record'],
    ['POST agent/a/run', 'alice', 'not looked up', 'observe', 'needs record'],
    ['POST agent/a/run', 'anonymous', 'not looked up', 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
    ['POST agent/a/run', 'alice', 'unowned', 'verify', 'needs upstreamHistory for chat'],
    ['POST agent/a/suggest', 'alice', 'unowned', 'verify', 'needs upstreamHistory for chat'],
    ['POST agent/a/run', 'alice', "bob's", 'verify', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', 'alice', "alice's", 'verify', 'permitted by chat for corp:alice, claim'],
  ])
  t.end()
})

void test('an unowned thread: a run claims it, a suggestion does not, connect is answered empty', (t) => {
  check(t, shipped, [
    ['POST agent/a/run', 'alice', 'unowned', 'claim', 'permitted by chat for corp:alice, begins, claim'],
    ['POST agent/a/run', 'everybody', 'unowned', 'claim', 'permitted by chat for anonymous, begins, claim'],
    ['POST agent/a/run', 'alice', 'unowned', 'deny', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/run', 'alice', 'unowned', 'verify, no history', 'permitted by chat for corp:alice, begins, claim'],
    ['POST agent/a/run', 'alice', 'unowned', 'verify, history', 'refused: thread-has-history (not-owner)'],
    ['POST agent/a/suggest', 'alice', 'unowned', 'claim', 'permitted by chat for corp:alice, begins, unsettled'],
    ['POST agent/a/suggest', 'alice', 'unowned', 'deny', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/suggest', 'alice', 'unowned', 'verify, no history', 'permitted by chat for corp:alice, begins, unsettled'],
    ['POST agent/a/suggest', 'alice', 'unowned', 'verify, history', 'refused: thread-has-history (not-owner)'],
    ['POST agent/a/connect', 'alice', 'unowned', 'claim', 'permitted by chat for corp:alice, empty'],
    ['POST agent/a/connect', 'alice', 'unowned', 'verify', 'permitted by chat for corp:alice, empty'],
    ['POST agent/a/connect', 'alice', 'unowned', 'deny', 'permitted by chat for corp:alice, empty'],
    ['POST agent/a/stop/t-1', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-owner)'],
    ['GET threads/t-1/messages', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-owner)'],
    ['GET threads/t-1/state', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-found)'],
    ['POST annotate', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-owner)'],
  ])
  t.end()
})

void test('only run, connect and suggest find an unowned thread, whatever a policy says', (t) => {
  check(t, opening('threads/messages', allow(['unknown'])), [
    ['GET threads/t-1/messages', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-owner)'],
    ['GET threads/t-1/messages', 'alice', "alice's, deleted", 'claim', 'refused: thread-unknown (not-owner)'],
  ])
  t.end()
})

void test('an owner’s thread: only a run registers anything', (t) => {
  check(t, shipped, [
    ['POST agent/a/run', 'alice', "alice's", 'claim', 'permitted by chat for corp:alice, claim'],
    ['POST agent/a/run', 'alice', "alice's", 'deny', 'permitted by chat for corp:alice, claim'],
    ['POST agent/a/connect', 'alice', "alice's", 'claim', 'permitted by chat for corp:alice'],
    ['POST agent/a/suggest', 'alice', "alice's", 'claim', 'permitted by chat for corp:alice'],
    ['POST agent/a/stop/t-1', 'alice', "alice's", 'claim', 'permitted by threads for corp:alice'],
    ['PATCH threads/t-1', 'alice', "alice's", 'claim', 'permitted by threads for corp:alice'],
    ['DELETE threads/t-1', 'alice', "alice's", 'claim', 'permitted by threads for corp:alice'],
    ['POST threads/t-1/archive', 'alice', "alice's", 'claim', 'permitted by archive for corp:alice'],
    ['GET threads/t-1/state', 'alice', "alice's", 'claim', 'permitted by history for corp:alice'],
    ['GET threadwarden/threads/t-1/grants', 'alice', "alice's", 'claim', 'refused: no-rule-allows (not-allowed)'],
    ['POST agent/a/run', 'alice', "alice's", 'observe', 'permitted by chat for corp:alice'],
  ])
  t.end()
})

void test('another user’s thread is foreign, and a thread of the same subject from another issuer is too', (t) => {
  check(t, shipped, [
    ['POST agent/a/run', 'bob', "alice's", 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', "another issuer's alice", "alice's", 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', 'olga', "alice's", 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', 'everybody', "alice's", 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/connect', 'bob', "alice's", 'claim', 'refused: thread-foreign (not-owner)'],
    ['GET threads/t-1/state', 'bob', "alice's", 'claim', 'refused: thread-foreign (not-found)'],
    ['POST agent/a/run', 'bob', "alice's, unconfirmed", 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', 'bob', "alice's", 'observe', 'permitted by chat for corp:alice, observed thread-foreign'],
  ])
  t.end()
})

void test('a permit for a foreign thread names its owner, in whose name a run on it registers', (t) => {
  check(t, opening('agent/run', allow(['foreign', 'own'], { who: ['operator'] })), [
    ['POST agent/a/run', 'olga', "alice's", 'claim', 'permitted by allow for corp:alice, claim'],
    ['POST agent/a/run', 'olga', "olga's", 'claim', 'permitted by allow for corp:olga, claim'],
    ['POST agent/a/run', 'alice', "alice's", 'claim', 'refused: operator-only (not-allowed)'],
  ])
  t.end()
})

void test('one allow rule is enough, whatever the others leave out', (t) => {
  const own = allow(['own'], { name: 'own' })
  check(t, opening('threads/messages', own, allow(['foreign'], { name: 'operators', who: ['operator'] })), [
    ['GET threads/t-1/messages', 'olga', "alice's", 'claim', 'permitted by operators for corp:alice'],
    ['GET threads/t-1/messages', 'olga', "olga's", 'claim', 'permitted by own for corp:olga'],
    ['GET threads/t-1/messages', 'alice', "olga's", 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  t.end()
})

void test('a deleted thread is foreign to others and unowned to its owner, who revives it by a run', (t) => {
  check(t, shipped, [
    ['POST agent/a/run', 'alice', "alice's, deleted", 'claim', 'permitted by chat for corp:alice, begins, claim'],
    ['POST agent/a/run', 'alice', "alice's, deleted", 'deny', 'permitted by chat for corp:alice, begins, claim'],
    ['POST agent/a/run', 'alice', "alice's, deleted", 'verify', 'permitted by chat for corp:alice, begins, claim'],
    ['POST agent/a/suggest', 'alice', "alice's, deleted", 'deny', 'permitted by chat for corp:alice, begins, unsettled'],
    ['POST agent/a/connect', 'alice', "alice's, deleted", 'claim', 'permitted by chat for corp:alice, empty'],
    ['GET threads/t-1/messages', 'alice', "alice's, deleted", 'claim', 'refused: thread-unknown (not-owner)'],
    ['GET threads/t-1/messages', 'alice', "alice's, unconfirmed, deleted", 'claim', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/run', 'bob', "alice's, deleted", 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  check(t, opening('threads/messages', allow(['foreign'], { who: ['operator'] })), [
    ['GET threads/t-1/messages', 'olga', "alice's", 'claim', 'permitted by allow for corp:alice'],
    ['GET threads/t-1/messages', 'olga', "alice's, deleted", 'claim', 'refused: thread-foreign (not-owner)'],
    ['GET threads/t-1/messages', 'olga', 'owner revoked', 'claim', 'refused: thread-foreign (not-owner)'],
    ['GET threads/t-1/messages', 'olga', 'seen of several', 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  t.end()
})

void test('a thread that was only seen under observe: the user who ran it may claim it, subject to unknownThread', (t) => {
  check(t, shipped, [
    ['POST agent/a/run', 'alice', 'seen of alice', 'claim', 'permitted by chat for corp:alice, begins, claim'],
    ['POST agent/a/run', 'alice', 'seen of alice', 'deny', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/run', 'alice', 'seen of alice', 'verify', 'needs upstreamHistory for chat'],
    ['GET threads/t-1/messages', 'alice', 'seen of alice', 'claim', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/run', 'bob', 'seen of alice', 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', 'alice', 'seen of several', 'claim', 'refused: thread-foreign (not-owner)'],
    ['POST agent/a/run', 'alice', 'owner revoked', 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  t.end()
})

/** A thread of alice's without a confirmed run: her relation to it, and each decision, also where rules open every thread. */
interface Unconfirmed {
  readonly relation: 'own' | 'unknown'
  /** Alice, by the shipped policy. */
  readonly shipped: string
  /** Alice, by a rule that opens every thread. */
  readonly opened: string
  /** Bob, and an operator, by that rule. */
  readonly others: string
  /** Bob, and an operator, to whom the thread was granted for writing, by a rule for own and shared threads. */
  readonly guests: string
  /** Alice, by a rule that opens every thread, under `observe`. */
  readonly observed: string
}

const CHAT: Unconfirmed = {
  relation: 'own',
  shipped: 'permitted by chat for corp:alice, unsettled',
  opened: 'permitted by allow for corp:alice, unsettled',
  others: 'permitted by allow for corp:alice, unsettled',
  guests: 'permitted by allow for corp:alice, unsettled',
  observed: 'permitted by allow for corp:alice, unsettled',
}
const RUN: Unconfirmed = {
  ...CHAT,
  shipped: 'permitted by chat for corp:alice, claim',
  opened: 'permitted by allow for corp:alice, claim',
  others: 'permitted by allow for corp:alice, claim',
  guests: 'permitted by allow for corp:alice, claim',
}
const CLOSED: Unconfirmed = {
  relation: 'unknown',
  shipped: 'refused: thread-unconfirmed (not-owner)',
  opened: 'refused: thread-unconfirmed (not-owner)',
  others: 'refused: thread-foreign (not-owner)',
  guests: 'refused: thread-foreign (not-owner)',
  observed: 'permitted by allow for corp:alice, observed thread-unconfirmed',
}
const HIDDEN: Unconfirmed = { ...CLOSED, shipped: 'refused: thread-unconfirmed (not-found)' }
const GRANTS: Unconfirmed = {
  ...CLOSED,
  shipped: 'refused: no-rule-allows (not-allowed)',
  observed: 'refused: thread-unconfirmed (not-owner)',
}

const UNCONFIRMED: Readonly<Record<string, Unconfirmed>> = {
  'POST agent/a/run': RUN,
  'POST agent/a/connect': CHAT,
  'POST agent/a/suggest': CHAT,
  'POST agent/a/stop/t-1': { ...CHAT, shipped: 'permitted by threads for corp:alice, unsettled' },
  'PATCH threads/t-1': CLOSED,
  'DELETE threads/t-1': CLOSED,
  'POST threads/t-1/archive': CLOSED,
  'GET threads/t-1/messages': CLOSED,
  'GET threads/t-1/events': HIDDEN,
  'GET threads/t-1/state': HIDDEN,
  'POST annotate': CLOSED,
  'POST graphs/threads': { ...RUN, shipped: 'permitted by langgraph-chat for corp:alice, claim' },
  'GET graphs/threads/t-1': CLOSED,
  'PATCH graphs/threads/t-1': CLOSED,
  'DELETE graphs/threads/t-1': CLOSED,
  'POST graphs/threads/t-1/copy': CLOSED,
  'GET graphs/threads/t-1/state': CLOSED,
  'GET graphs/threads/t-1/state/x': CLOSED,
  'POST graphs/threads/t-1/state/checkpoint': CLOSED,
  'GET graphs/threads/t-1/history': CLOSED,
  'POST graphs/threads/t-1/history': CLOSED,
  'POST graphs/threads/t-1/state': CLOSED,
  'POST graphs/threads/t-1/runs': { ...RUN, shipped: 'permitted by langgraph-chat for corp:alice, claim' },
  'POST graphs/threads/t-1/runs/stream': { ...RUN, shipped: 'permitted by langgraph-chat for corp:alice, claim' },
  'POST graphs/threads/t-1/runs/wait': { ...RUN, shipped: 'permitted by langgraph-chat for corp:alice, claim' },
  'GET graphs/threads/t-1/runs': CLOSED,
  'GET graphs/threads/t-1/runs/x': CLOSED,
  'GET graphs/threads/t-1/runs/x/join': CLOSED,
  'GET graphs/threads/t-1/runs/x/stream': CLOSED,
  'POST graphs/threads/t-1/runs/x/cancel': CLOSED,
  'DELETE graphs/threads/t-1/runs/x': CLOSED,
  'GET threadwarden/threads/t-1/grants': GRANTS,
  'POST threadwarden/threads/t-1/grants': GRANTS,
  'DELETE threadwarden/threads/t-1/grants': { ...GRANTS, shipped: 'refused: thread-unconfirmed (not-owner)' },
}

for (const [request, row] of Object.entries(UNCONFIRMED)) {
  void test(`an unconfirmed thread: ${request}`, (t) => {
    const { id } = requestOf(request).route
    const all = opening(id, allow(['own', 'shared', 'unknown', 'foreign']))
    t.equal(relationOf(THREADS["alice's, unconfirmed"], CALLERS.alice, requestOf(request), shipped), row.relation)
    t.equal(relationOf(THREADS["alice's"], CALLERS.alice, requestOf(request), shipped), 'own')
    for (const setting of ['claim', 'verify', 'deny'] as const) {
      check(t, shipped, [[request, 'alice', "alice's, unconfirmed", setting, row.shipped]])
      check(t, all, [[request, 'alice', "alice's, unconfirmed", setting, row.opened]])
    }
    for (const caller of ['bob', 'olga'] as const) {
      check(t, all, [[request, caller, "alice's, unconfirmed", 'claim', row.others]])
      const shared = opening(id, allow(['own', 'shared']))
      check(t, shared, [[request, caller, "alice's, unconfirmed, shared for writing", 'claim', row.guests]])
    }
    check(t, all, [[request, 'alice', "alice's, unconfirmed", 'observe', row.observed]])
    t.end()
  })
}

void test('the table of unconfirmed threads has every route about a thread', (t) => {
  const named = new Set(Object.keys(UNCONFIRMED).map((request) => requestOf(request).route))
  t.strictSame(named, new Set(ALL_ROUTES.filter(({ thread }) => thread !== undefined)))
  t.end()
})

void test('a list has no unconfirmed thread', (t) => {
  t.notOk(listingFor(CALLERS.alice, shipped, SETTINGS.claim)('t-1', THREADS["alice's, unconfirmed"]))
  t.ok(listingFor(CALLERS.alice, shipped, SETTINGS.claim)('t-1', THREADS["alice's"]))
  t.end()
})

void test('a list has no thread whose id no request can name', (t) => {
  const isListed = listingFor(CALLERS.alice, shipped, SETTINGS.claim)
  for (const id of ['', 'a/b', 'a\\b', '..', 'a\u0000b', 'x'.repeat(129)]) t.notOk(isListed(id, THREADS["alice's"]), id)
  t.end()
})

void test('a rule applies to the callers that it names', (t) => {
  const refused = 'refused: no-rule-allows (not-allowed)'
  check(t, opening('info', allow(null, { who: ['anonymous'] })), [
    ['GET info', 'anonymous', 'not looked up', 'claim', 'permitted by allow for anonymous'],
    ['GET info', 'everybody', 'not looked up', 'claim', 'permitted by allow for anonymous'],
    ['GET info', 'alice', 'not looked up', 'claim', refused],
    ['GET info', 'olga', 'not looked up', 'claim', refused],
  ])
  check(t, opening('info', allow(null, { who: ['signed-in'] })), [
    ['GET info', 'anonymous', 'not looked up', 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
    ['GET info', 'everybody', 'not looked up', 'claim', 'permitted by allow for anonymous'],
    ['GET info', 'alice', 'not looked up', 'claim', 'permitted by allow for corp:alice'],
    ['GET info', 'olga', 'not looked up', 'claim', 'permitted by allow for corp:olga'],
  ])
  check(t, opening('info', allow(null, { who: ['operator'] })), [
    ['GET info', 'anonymous', 'not looked up', 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
    ['GET info', 'everybody', 'not looked up', 'claim', 'refused: operator-only (not-allowed)'],
    ['GET info', 'alice', 'not looked up', 'claim', 'refused: operator-only (not-allowed)'],
    ['GET info', 'olga', 'not looked up', 'claim', 'permitted by allow for corp:olga'],
  ])
  t.end()
})

void test('a caller to whom no rule applies is refused with the reason', (t) => {
  const closed = 'refused: no-rule-allows (not-allowed)'
  const operators = { who: ['operator'] } as const
  for (const [who, rules] of [
    ['no rule', opening('info')],
    ['a deny rule for another agent alone', opening('info', { effect: 'deny', agents: new Set(['a']) })],
  ] as const) {
    for (const caller of ['anonymous', 'everybody', 'alice'] as const) {
      t.equal(lineOf(decide(requestOf('GET info'), CALLERS[caller], rules, SETTINGS.claim)), closed, `${who}, ${caller}`)
    }
  }
  check(t, opening('info', operators, operators), [
    ['GET info', 'alice', 'not looked up', 'claim', 'refused: operator-only (not-allowed)'],
  ])
  check(t, opening('info', operators, { who: ['anonymous'] }), [['GET info', 'alice', 'not looked up', 'claim', closed]])
  check(t, opening('info', { who: ['anonymous', 'operator'] }), [['GET info', 'alice', 'not looked up', 'claim', closed]])
  const finance = allow(['own'], { agents: new Set(['finance']) })
  check(t, opening('agent/run', finance), [
    ['POST agent/a/run', 'alice', "alice's", 'claim', 'refused: agent-not-allowed (not-allowed)'],
    ['POST agent/a/run', 'anonymous', "alice's", 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
    ['POST agent/finance/run', 'alice', "alice's", 'claim', 'permitted by allow for corp:alice, claim'],
  ])
  t.end()
})

void test('a thread of the caller that no rule opens is not reported as another user’s', (t) => {
  check(t, opening('agent/run', allow(['unknown'])), [
    ['POST agent/a/run', 'alice', "alice's", 'claim', 'refused: no-rule-allows (not-allowed)'],
    ['POST agent/a/run', 'alice', "bob's", 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  check(t, opening('agent/run', allow(['own'])), [
    ['POST agent/a/run', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/run', 'alice', "alice's, deleted", 'claim', 'refused: thread-unknown (not-owner)'],
    ['POST agent/a/run', 'alice', 'unowned', 'observe', 'permitted by allow for corp:alice, begins, observed thread-unknown'],
  ])
  t.end()
})

void test('a deny rule wins, and for a thread it refuses as an ownership check does', (t) => {
  const deny = { name: 'deny', effect: 'deny' } as const
  check(t, opening('threads/messages', allow(['own', 'foreign']), { ...deny, threads: null }), [
    ['GET threads/t-1/messages', 'alice', 'not looked up', 'claim', 'refused: denied-by-rule (not-allowed) by deny'],
    ['GET threads/t-1/messages', 'alice', "alice's", 'observe', 'refused: denied-by-rule (not-allowed) by deny'],
    ['GET threads/t-1/messages', 'anonymous', "alice's", 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
  ])
  check(t, opening('threads/messages', allow(['own', 'foreign']), { ...deny, threads: ['foreign'] }), [
    ['GET threads/t-1/messages', 'alice', "bob's", 'claim', 'refused: denied-by-rule (not-owner) by deny'],
    ['GET threads/t-1/messages', 'alice', "alice's", 'claim', 'permitted by allow for corp:alice'],
    ['GET threads/t-1/messages', 'alice', "bob's", 'observe', 'permitted by allow for corp:bob, observed denied-by-rule'],
  ])
  check(t, opening('threads/messages', allow(['own']), { ...deny, threads: ['own'], hides: true }), [
    ['GET threads/t-1/messages', 'alice', "alice's", 'claim', 'refused: denied-by-rule (not-found) by deny'],
    ['GET threads/t-1/messages', 'alice', "bob's", 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  t.end()
})

void test('a rule that cannot be evaluated denies before any other rule is asked', (t) => {
  const failing = { name: 'failing', when: { claims: [{ at: '/x', is: 'equal', to: 1 }] } } as const
  const eve = user('eve', { claims: { x: '1' } })
  for (const rules of [[failing], [allow(null), failing], [{ name: 'deny', effect: 'deny' } as const, failing]]) {
    const line = lineOf(decide(requestOf('GET info'), eve, opening('info', ...rules), SETTINGS.claim))
    t.equal(line, 'refused: rule-failed (not-allowed) by failing')
  }
  t.end()
})

void test('anonymous callers of mode `optional` have no list and no grants, whatever a policy says: they share one owner', (t) => {
  const everyone = { who: ['anonymous', 'signed-in'] } as const
  check(t, opening('threads/list', allow(null, everyone)), [
    ['GET threads', 'anonymous', 'not looked up', 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
    ['GET threads', 'everybody', 'not looked up', 'claim', 'permitted by allow for anonymous'],
    ['GET threads', 'alice', 'not looked up', 'claim', 'permitted by allow for corp:alice'],
  ])
  check(t, opening('threads/grants', allow(['own', 'foreign'], everyone)), [
    ['GET threadwarden/threads/t-1/grants', 'anonymous', "alice's", 'claim', 'refused: anonymous-not-allowed (not-allowed)'],
    ['GET threadwarden/threads/t-1/grants', 'everybody', "alice's", 'claim', 'permitted by allow for corp:alice'],
  ])
  check(t, opening('info', allow(null, { who: ['anonymous'] })), [
    ['GET info', 'anonymous', 'not looked up', 'claim', 'permitted by allow for anonymous'],
  ])
  t.end()
})

void test('a rule for user-scoped upstreams applies to no other upstream', (t) => {
  check(t, opening('threads/subscribe', allow(null, { onlyUserScoped: true })), [
    ['POST threads/subscribe', 'alice', 'not looked up', 'claim', 'refused: upstream-not-user-scoped (not-allowed)'],
    ['POST threads/subscribe', 'alice', 'not looked up', 'user-scoped', 'permitted by allow for corp:alice'],
  ])
  t.end()
})

void test('observe: the gateway’s own routes are enforced, and nothing is claimed or answered in place of the upstream', (t) => {
  check(t, shipped, [
    ['POST agent/a/run', 'alice', 'unowned', 'observe', 'permitted by chat for corp:alice, begins'],
    ['POST agent/a/suggest', 'alice', 'unowned', 'observe', 'permitted by chat for corp:alice, begins'],
    ['POST agent/a/connect', 'alice', 'unowned', 'observe', 'permitted by chat for corp:alice'],
    ['GET threads/t-1/messages', 'alice', "bob's", 'observe', 'permitted by threads for corp:bob, observed thread-foreign'],
    ['GET threads/t-1/messages', 'alice', 'unowned', 'observe', 'permitted by threads for corp:alice, observed thread-unknown'],
    ['GET threads/t-1/messages', 'anonymous', "bob's", 'observe', 'refused: anonymous-not-allowed (not-allowed)'],
    ['POST threads/clear', 'alice', 'not looked up', 'observe', 'refused: operator-only (not-allowed)'],
  ])
  check(t, opening('threads/grants', allow(['own'])), [
    ['GET threadwarden/threads/t-1/grants', 'alice', "bob's", 'observe', 'refused: thread-foreign (not-owner)'],
    ['GET threadwarden/threads/t-1/grants', 'alice', "alice's", 'observe', 'permitted by allow for corp:alice'],
  ])
  t.end()
})

void test('shared threads: a grant opens what it is enough for, if the policy counts grants', (t) => {
  const shared = opening('threads/update', allow(['own', 'shared']))
  check(t, shared, [
    ['PATCH threads/t-1', 'bob', "alice's, shared for writing", 'claim', 'permitted by allow for corp:alice'],
    ['PATCH threads/t-1 with archived', 'bob', "alice's, shared for writing", 'claim', 'refused: thread-foreign (not-owner)'],
    ['DELETE threads/t-1', 'bob', "alice's, shared for writing", 'claim', 'refused: thread-foreign (not-owner)'],
    ['PATCH threads/t-1', 'everybody', "alice's, shared for writing", 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  check(t, { ...shared, sharing: false }, [
    ['PATCH threads/t-1', 'bob', "alice's, shared for writing", 'claim', 'refused: thread-foreign (not-owner)'],
  ])
  check(t, opening('threads/update', allow(['foreign'])), [
    ['PATCH threads/t-1', 'bob', "alice's, shared for writing", 'claim', 'permitted by allow for corp:alice'],
  ])
  t.end()
})

void test('an allow rule that names no threads opens none', (t) => {
  check(t, opening('agent/run', allow(null)), [
    ['POST agent/a/run', 'alice', "alice's", 'claim', 'refused: no-rule-allows (not-allowed)'],
    ['POST agent/a/run', 'alice', 'unowned', 'claim', 'refused: thread-unknown (not-owner)'],
  ])
  t.end()
})

void test('a match of the rules decides no other request', (t) => {
  const match = matchRules(requestOf('POST agent/a/run'), CALLERS.alice, shipped, SETTINGS.claim)
  t.equal(lineOf(decideMatched(match, requestOf('POST agent/a/run'), SETTINGS.claim)), 'needs record')
  t.throws(() => decideMatched(match, requestOf('POST agent/a/suggest'), SETTINGS.claim), /another request/)
  t.throws(() => decideMatched(match, requestOf('POST agent/b/run'), SETTINGS.claim), /another request/)
  t.throws(() => decideMatched(match, requestOf('POST agent/a/run'), SETTINGS['user-scoped']), /another request/)
  t.end()
})

void test('only decide makes permits', (t) => {
  const info = requestOf('GET info')
  const permit = decide(info, CALLERS.alice, shipped, SETTINGS.claim)
  t.ok(isPermit(permit))
  t.ok(Object.isFrozen(permit))
  t.notOk(isPermit({ ...permit }), 'a copy is none')
  t.notOk(isPermit(structuredClone(permit)))
  t.notOk(isPermit(Object.create(permit)), 'nor what inherits from one')
  t.notOk(isPermit(new Proxy(permit, {})))
  const made = permit.constructor as new (...values: unknown[]) => unknown
  t.throws(() => new made(Symbol('making a permit'), info, CALLERS.alice, {}, {}), /decide alone/)
  t.notOk(isPermit(decide(requestOf('POST agent/a/run'), ANONYMOUS, shipped, SETTINGS.claim)))
  for (const value of [undefined, null, 'permitted', 5, {}, []]) t.notOk(isPermit(value), JSON.stringify(value))
  t.end()
})
