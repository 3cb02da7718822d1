/**
 * Generated requests, put to the gateway and to the real runtime. THREADWARDEN_FUZZ_SEED makes the same ones again;
 * `npm run fuzz` makes many more.
 */
import { test } from 'tap'
import { REASONS, type Code, type Reason } from '../../src/core/reasons.ts'
import type { RouteId } from '../../src/core/route/routes.ts'
import { RUNTIME, TRANSPORT_PAIRS, type Pair } from '../../testing/fuzz/case.ts'
import { examine } from '../../testing/fuzz/differential.ts'
import { anyCase, runCase } from '../../testing/fuzz/grammar.ts'
import { examineRun } from '../../testing/fuzz/nested-keys.ts'
import { run, seedOfEnvironment } from '../../testing/fuzz/run.ts'

const CASES = 22_000

const RUNS = 10_000

/** What a caller may be told because of what stands in a request. */
// oxfmt-ignore
const ABOUT_THE_REQUEST: readonly Code[] = [
  'target-malformed', 'header-malformed', 'body-malformed', 'thread-id-invalid', 'agent-id-invalid', 'not-owner', 'not-found',
  'method-not-allowed', 'body-too-large', 'media-type-unsupported',
]

/** Reasons that no case here can bring about. */
const ELSEWHERE: ReadonlySet<Reason> = new Set<Reason>([
  // Given by the HTTP parser, or to a caller who breaks off: there is neither here.
  'http-unreadable',
  'body-aborted',
  // Only where unknown threads are verified.
  'thread-has-history',
  'thread-unconfirmed',
  // Only where a policy bounds them.
  'messages-too-many',
  'message-too-large',
  // No case answers so many interrupts.
  'interrupt-answers-too-many',
  // What the gateway answers itself is not looked at here, but that it goes nowhere.
  'grant-unknown',
  'grant-malformed',
  'grants-too-many',
  // Only before a LangGraph server.
  'path-id-invalid',
  'run-unknown',
  'checkpoint-foreign',
])

const REACHABLE = (Object.keys(REASONS) as Reason[]).filter(
  (reason) => ABOUT_THE_REQUEST.includes(REASONS[reason]) && !ELSEWHERE.has(reason),
)

/** The debug feed stays open, and goes by no envelope: neither to nor from a runtime of one route. Grants go to no runtime. */
const exists = (id: RouteId, pair: Pair): boolean =>
  id !== 'threads/grants' && (id !== 'cpk-debug-events' || pair === 'multi-route to multi-route')

void test('the gateway refuses, or the real runtime resolves what it decided on', async (t) => {
  const seed = seedOfEnvironment()
  t.comment(`THREADWARDEN_FUZZ_SEED=${seed} makes the same cases again`)
  const { tally, counterExample } = await run({ subject: RUNTIME, arbitrary: anyCase, examine, cases: CASES, seed })
  for (const line of tally.lines()) t.comment(line)
  for (const line of counterExample?.split('\n') ?? []) t.comment(line)
  t.equal(counterExample, null, `seed ${seed}`)
  if (counterExample !== null) return

  t.equal(tally.cases, CASES)
  for (const pair of TRANSPORT_PAIRS) {
    for (const id of RUNTIME.routes) {
      const permitted = tally.permitted(id, pair)
      if (exists(id, pair)) t.ok(permitted > 0, `${pair}: cases on ${id} were permitted (seed ${seed})`)
      else t.equal(permitted, 0, `${pair}: no case on ${id} was permitted (seed ${seed})`)
    }
  }
  t.ok(tally.refused('threads/grants') > 0, `cases on threads/grants were answered by the gateway (seed ${seed})`)
  for (const reason of REACHABLE) t.ok(tally.refused(reason) > 0, `cases were refused for ${reason} (seed ${seed})`)
})

void test('of the body of a run, exactly what AG-UI has leaves the gateway', async (t) => {
  const seed = seedOfEnvironment()
  const { tally, counterExample } = await run({ subject: RUNTIME, arbitrary: runCase, examine: examineRun, cases: RUNS, seed })
  for (const line of counterExample?.split('\n') ?? []) t.comment(line)
  t.equal(counterExample, null, `seed ${seed}`)
  t.equal(tally.served, RUNS)
})
