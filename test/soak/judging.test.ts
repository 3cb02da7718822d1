/** What a soak makes of an answer. */
import { test } from 'tap'
import { makeAccount, totalOf } from '../../testing/soak/account.ts'
import type { Answer, Expectation } from '../../testing/soak/answer.ts'
import { judge, LATE, type Window } from '../../testing/soak/judging.ts'

const ANSWERED: Expectation = { outcome: 'answered' }
const STREAMED: Expectation = { outcome: 'streamed' }
const NOT_OWNER: Expectation = { outcome: 'refused', status: 403, code: 'not-owner' }
const NOT_ALLOWED: Expectation = { outcome: 'refused', status: 403, code: 'not-allowed' }

const FINE: Answer = {
  ...{ kind: 'run', wanted: ANSWERED, began: 1000, ended: 2000, status: 200, code: null, ending: 'complete' },
  ...{ runError: null, foreign: null, fault: null, requestId: null, tokenEnds: 60_000 },
}
const AWAY = { status: 502, code: 'upstream-unreachable' } as const
const CUT = { ending: 'cut' } as const

const during = (fault: Window['fault'], from = 1500, to = Number.POSITIVE_INFINITY): readonly Window[] => [{ fault, from, to }]

const verdictOf = (answer: Partial<Answer>, windows: readonly Window[] = []): string => {
  const result = judge({ ...FINE, ...answer }, windows)
  return result.verdict === 'explained' ? `explained by ${result.by}` : result.verdict
}

void test('an answer as it was wanted needs no explanation', (t) => {
  t.equal(verdictOf({}), 'expected')
  t.equal(verdictOf({ wanted: NOT_OWNER, status: 403, code: 'not-owner' }), 'expected')
  t.equal(verdictOf({ ending: 'left' }), 'expected')
  t.equal(verdictOf({ ending: 'left', status: null }), 'expected')
  t.end()
})

void test('without a fault nothing explains another one', (t) => {
  for (const [what, answer] of [
    ['no answer', { status: null, ...CUT, fault: 'ECONNRESET' }],
    ['an error of the gateway', { status: 500, code: 'internal' }],
    ['an upstream that is there', AWAY],
    ['a broken answer', CUT],
    ['a short answer', { fault: 'ended after 3 events as if it were whole' }],
    ['an end that nobody wanted', { runError: 'not-allowed' }],
    ['another refusal', { wanted: NOT_OWNER, status: 404, code: 'not-found' }],
    ['a refusal', { status: 401, code: 'credential-invalid' }],
    ['a wrong event before the caller left', { ending: 'left', fault: 'event 4 came where 3 was due' }],
  ] as const) {
    t.equal(verdictOf(answer), 'unexplained', what)
  }
  t.end()
})

void test('an upstream that is away explains what it can explain, while it is away', (t) => {
  for (const answer of [AWAY, CUT, { status: 503, code: 'not-ready' }]) {
    t.equal(verdictOf(answer, during('upstream')), 'explained by upstream')
    t.equal(verdictOf(answer, during('upstream', 2001)), 'unexplained', 'it was over before')
    t.equal(verdictOf(answer, during('upstream', 0, 999)), 'unexplained', 'it began later')
    t.equal(verdictOf(answer, during('reload')), 'unexplained', 'another fault')
  }
  for (const [what, answer] of [
    ['no answer at all', { status: null, ...CUT, fault: 'ECONNREFUSED' }],
    ['an error of the gateway', { status: 500, code: 'internal' }],
    ['a short answer that looks whole', { fault: 'ended after 3 events as if it were whole' }],
    ['a token that is good', { status: 401, code: 'credential-expired' }],
    ['a refusal that broke off', { wanted: NOT_ALLOWED, ...CUT }],
  ] as const) {
    t.equal(verdictOf(answer, during('upstream')), 'unexplained', what)
  }
  t.end()
})

void test('a token that is over explains the end of a stream, and not before', (t) => {
  const ended = { wanted: STREAMED, runError: 'credential-expired' } as const
  t.equal(verdictOf({ ...ended, tokenEnds: 2000 }), 'explained by token')
  t.equal(verdictOf({ ...ended, tokenEnds: 2001 }), 'unexplained')
  t.equal(verdictOf({ ...ended, tokenEnds: 2000, ended: 2001 + LATE }), 'unexplained', 'too late')
  t.equal(verdictOf({ ...ended, tokenEnds: 2000, ...CUT }), 'unexplained', 'it is to be said')
  t.equal(verdictOf({ status: 401, code: 'credential-expired', tokenEnds: 1999 }), 'explained by token')
  t.equal(verdictOf({ status: 401, code: 'credential-invalid', tokenEnds: 1999 }), 'unexplained')
  t.end()
})

void test('a stream that goes on after its token is unexplained', (t) => {
  const answer = { wanted: STREAMED, tokenEnds: 2000 }
  t.equal(verdictOf({ ...answer, ended: 2000 + LATE }), 'expected')
  t.equal(verdictOf({ ...answer, ended: 2001 + LATE }), 'unexplained')
  t.equal(verdictOf({ ...answer, ended: 2001 + LATE, ...CUT }, during('upstream')), 'unexplained')
  t.end()
})

void test('a change of the policy explains either decision of what it changes, and nothing else', (t) => {
  const refused = { kind: 'stop', status: 403, code: 'not-allowed' } as const
  const permitted = { kind: 'stop', wanted: NOT_ALLOWED } as const
  for (const answer of [refused, permitted]) {
    t.equal(verdictOf(answer, during('reload')), 'explained by reload')
    t.equal(verdictOf(answer, during('reload', 0, 999)), 'unexplained', 'it has been over')
    t.equal(verdictOf({ ...answer, kind: 'run' }, during('reload')), 'unexplained', 'a run')
  }
  t.equal(verdictOf({ ...refused, code: 'not-owner' }, during('reload')), 'unexplained')
  t.end()
})

void test("nothing explains that somebody gets another's", (t) => {
  const windows = [...during('upstream'), ...during('reload')]
  t.equal(verdictOf({ wanted: NOT_OWNER }, windows), 'wrong-owner')
  t.equal(verdictOf({ wanted: NOT_OWNER, ...CUT }, windows), 'wrong-owner')
  t.equal(verdictOf({ foreign: 't-2 is in the list' }, windows), 'wrong-owner')
  t.end()
})

void test('answers are counted by kind, and the first that nothing explains are kept', (t) => {
  const told: Answer[] = []
  const { kinds, examples, take } = makeAccount(during('upstream'), (answer) => told.push(answer))
  take(FINE)
  take({ ...FINE, ...AWAY })
  take({ ...FINE, kind: 'foreign', wanted: NOT_OWNER })
  for (let at = 0; at < 30; at += 1) take({ ...FINE, status: 500, code: 'internal' })
  t.same(kinds.run, {
    ...{ asked: 32, expected: 1, explained: { upstream: 1, token: 0, reload: 0 }, unexplained: 30, wrongOwner: 0 },
  })
  t.match(totalOf(kinds), { asked: 33, expected: 1, explained: { upstream: 1 }, unexplained: 30, wrongOwner: 1 })
  t.equal(examples.length, 20)
  t.same(told, examples)
  t.equal(examples[0]?.kind, 'foreign')
  t.end()
})
