/** Decides a line of the audit log again, by the current policy. */
import type { Replay } from '../../audit/replay.ts'
import type { Reason } from '../../core/reasons.ts'
import { traceOf, type Trace } from '../../core/decide/trace.ts'
import type { Policy } from '../../policy/compile.ts'

export interface Replayed {
  readonly then: Replay['decided']
  readonly samePolicy: boolean
  /** Null where no rule applied: an earlier refusal leaves nothing to decide again. */
  readonly trace: Trace | null
  /** Null if it is unknown: the line does not hold the cause of its refusal, or a fact that the decision now needs. */
  readonly same: boolean | null
}

/** The reasons for which a policy refuses. The causes of other refusals are not in the audit line. */
const BY_RULES: ReadonlySet<string> = new Set<Reason>([
  'no-rule-allows',
  'anonymous-not-allowed',
  'operator-only',
  'agent-not-allowed',
  'denied-by-rule',
  'rule-failed',
  'interrupt-answer-not-allowed',
  'upstream-not-user-scoped',
  'thread-foreign',
  'thread-unknown',
  'thread-has-history',
  'thread-unconfirmed',
])

export function replay({ descriptor, principal, facts, decided, policy: hash }: Replay, policy: Policy): Replayed {
  const known = { then: decided, samePolicy: hash === policy.hash }
  if (descriptor === null || principal === null) return { ...known, trace: null, same: null }
  const trace = traceOf(descriptor, principal, policy.rules, facts)
  return { ...known, trace, same: isSame(decided, trace.decision) }
}

function isSame(then: Replay['decided'], now: Trace['decision']): boolean | null {
  if (now.outcome === 'needs' || (then.outcome === 'refused' && !BY_RULES.has(then.reason))) return null
  if (then.outcome !== now.outcome) return false
  return now.outcome === 'permitted' || now.reason === then.reason
}
