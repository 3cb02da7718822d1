/** A decision of the past, made again: the same, another, or nobody can say. */
import { test } from 'tap'
import { auditLine } from '../../src/audit/line.ts'
import { readAuditLine } from '../../src/audit/replay.ts'
import type { Json } from '../../src/core/json/read.ts'
import { refuse } from '../../src/core/reasons.ts'
import { replay } from '../../src/tools/simulate/replay.ts'
import { user } from '../../testing/support/callers.ts'
import { compiled, ruled, SHIPPED } from '../../testing/support/policies.ts'
import { audited, READING, type FlatDecision } from '../../testing/support/audited.ts'

const POLICY = compiled(SHIPPED)
const DECISION: FlatDecision = {
  ...READING,
  client: undefined,
  principal: user('alice', { roles: ['staff'] }),
  facts: { ...READING.facts, record: { owner: 'corp:bob', deleted: false } },
  outcome: refuse('thread-foreign'),
}

function replayed(changes: Partial<FlatDecision>, policy = POLICY) {
  const read = readAuditLine(JSON.parse(JSON.stringify(auditLine(audited({ ...DECISION, ...changes })))) as Json)
  if ('fault' in read) throw new Error(read.fault)
  return replay(read, policy)
}

const READS = compiled(ruled([{ routes: ['threads/messages'], allow: ['signed-in'], threads: ['own'] }]))

void test('the same facts and rules make the same decision', (t) => {
  t.match(replayed({}), { same: true, samePolicy: true, trace: { relation: 'foreign' } })
  t.match(replayed({}, READS), { same: true, samePolicy: false }, 'also by another policy')
  const own = { facts: { ...DECISION.facts, record: { owner: 'corp:alice', deleted: false } } }
  t.match(replayed({ ...own, outcome: 'permitted' }), { same: true })
  t.match(replayed(own), { same: false, trace: { decision: { outcome: 'permitted' } } })
  t.match(replayed({ outcome: refuse('thread-unknown') }), { same: false }, 'another reason is another decision')
  t.end()
})

void test('what did not come from a rule cannot be said again', (t) => {
  t.match(replayed({ outcome: refuse('body-too-large') }), { same: null })
  t.match(replayed({ outcome: refuse('requests-limited') }), { same: null })
  t.match(replayed({ principal: undefined, outcome: refuse('token-expired') }), { same: null, trace: null })
  t.match(replayed({ descriptor: null, outcome: refuse('route-unknown') }), { same: null, trace: null })
  t.end()
})

void test('a decision that rests now on what nobody asked then cannot be said again', (t) => {
  const { userScoped, unknownThread, enforcement } = DECISION.facts
  const early = { userScoped, unknownThread, enforcement }
  t.match(replayed({ facts: early, outcome: refuse('no-rule-allows') }), {
    same: null,
    trace: { decision: { outcome: 'needs' } },
  })
  t.end()
})
