/** Decides a line of the audit log again, by the policy of today. */
import type { Replay } from '../../audit/replay.ts'
import type { Reason } from '../../core/reasons.ts'
import { traceOf, type Trace } from '../../core/decide/trace.ts'
import type { Policy } from '../../policy/policy.ts'

/** The same request, decided now. */
export interface Replayed {
  readonly then: Replay['decided']
  readonly samePolicy: boolean
  /** Null where no rule was asked: what was refused before that has nothing that could be decided again. */
  readonly trace: Trace | null
  /** Null where it can't be said: the line does not hold what the refusal came from, or what is decided by now. */
  readonly same: boolean | null
}

/** The reasons that a policy refuses for. Whatever else refuses a request does not stand in its audit line. */
const BY_RULES: ReadonlySet<string> = new Set<Reason>([
  'no-rule-allows',
  'anonymous-not-allowed',
  'operator-only',
  'agent-not-allowed',
  'denied-by-rule',
  'rule-failed',
  'upstream-not-user-scoped',
  'thread-foreign',
  'thread-unknown',
  'thread-has-history',
  'thread-unconfirmed',
])

export function replay({ descriptor, principal, facts, decided, policy: hash }: Replay, policy: Policy): Replayed {
  const told = { then: decided, samePolicy: hash === policy.hash }
  if (descriptor === null || principal === null) return { ...told, trace: null, same: null }
  const trace = traceOf(descriptor, principal, policy.rules, facts)
  return { ...told, trace, same: isSame(decided, trace.decision) }
}

function isSame(then: Replay['decided'], now: Trace['decision']): boolean | null {
  if (now.outcome === 'needs' || (then.outcome === 'refused' && !BY_RULES.has(then.reason))) return null
  if (then.outcome !== now.outcome) return false
  return now.outcome === 'permitted' || now.reason === then.reason
}
