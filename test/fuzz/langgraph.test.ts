/**
 * Generated requests of a caller before a LangGraph server, put to the gateway and to the server itself. THREADWARDEN_FUZZ_SEED makes the
 * same ones again; `npm run fuzz` makes many more.
 */
import { test } from 'tap'
import { ROUTES_OF } from '../../src/core/route/all-routes.ts'
import type { Reason } from '../../src/core/reasons.ts'
import { EXTENT } from '../../testing/support/sample.ts'
import { LANGGRAPH, POLICIES } from '../../testing/fuzz/langgraph/case.ts'
import { makeExamine } from '../../testing/fuzz/langgraph/examine.ts'
import { langGraphCases } from '../../testing/fuzz/langgraph/grammar.ts'
import { run, seedOfEnvironment } from '../../testing/fuzz/run.ts'

const CASES = EXTENT === 'sample' ? 1_000 : 15_000

const OFTEN: readonly Reason[] = ['route-closed', 'run-unknown', 'thread-foreign', 'thread-unknown', 'thread-id-invalid']

/** Too few cases may have none of these. */
// oxfmt-ignore
const SELDOM: readonly Reason[] = [
  'path-id-invalid', 'run-option-not-allowed', 'checkpoint-foreign', 'command-not-allowed', 'configurable-not-allowed', 'agent-id-invalid',
  'thread-has-history',
]

void test('the gateway refuses, or what it sends reaches nothing of another user', async (t) => {
  const seed = seedOfEnvironment()
  t.comment(`THREADWARDEN_FUZZ_SEED=${seed} makes the same cases again`)
  const examine = await makeExamine()
  const { tally, counterExample } = await run({ subject: LANGGRAPH, arbitrary: langGraphCases, examine, cases: CASES, seed })
  for (const line of tally.lines()) t.comment(line)
  for (const line of counterExample?.split('\n') ?? []) t.comment(line)
  t.equal(counterExample, null, `seed ${seed}`)
  if (counterExample !== null) return

  t.equal(tally.cases, CASES)
  for (const reason of [...OFTEN, ...(EXTENT === 'sample' ? [] : SELDOM)]) {
    t.ok(tally.refused(reason) > 0, `cases were refused for ${reason} (seed ${seed})`)
  }
  for (const { id, own } of ROUTES_OF.langgraph) {
    if (own === true) t.equal(tally.permitted(id), 0, `no case on ${id} was sent (seed ${seed})`)
    else if (EXTENT !== 'sample') t.ok(tally.permitted(id) > 0, `cases on ${id} were sent (seed ${seed})`)
  }
  for (const policy of POLICIES) {
    t.ok(tally.permitted('langgraph/threads/read', policy) > 0, `${policy}: cases were sent (seed ${seed})`)
  }
})
