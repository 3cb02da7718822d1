/** A line of the audit log, decided again, as data for scripts. */
import type { Policy } from '../../policy/compile.ts'
import { answersText, idleGrant, idleText } from './decision-text.ts'
import { outcomeData, principalData, triedData } from './explanation.ts'
import type { replay, Replayed } from './replay.ts'

type Recorded = Parameters<typeof replay>[0]

export function replayedData({ then, trace, same, samePolicy }: Replayed, recorded: Recorded, policy: Policy) {
  const { principal, descriptor, scope, facts } = recorded
  return {
    same,
    samePolicy,
    then: { outcome: then.outcome, reason: then.reason, rule: then.rule ?? null },
    now: trace === null ? null : outcomeData(trace.decision),
    route: descriptor === null ? null : { id: descriptor.route.id, method: descriptor.route.method, ...descriptor.ids },
    scope,
    principal: principal === null ? null : principalData(principal, policy),
    facts: { ...facts, relation: trace?.relation ?? null },
    policy: { file: policy.file, hash: policy.hash },
    rules: trace === null ? [] : triedData(trace),
    notes: notesOn({ then, trace, same, samePolicy }, recorded, policy),
  }
}

export function notesOn({ trace, same, samePolicy, then }: Replayed, recorded: Recorded, { rules }: Policy): readonly string[] {
  const { descriptor, principal, facts } = recorded
  const idle = descriptor === null || principal === null ? null : idleGrant(facts, descriptor, principal, rules)
  const answers = descriptor === null ? null : answersText(descriptor)
  return [
    ...(idle === null ? [] : [idleText(idle)]),
    ...(answers === null ? [] : [answers]),
    ...(samePolicy ? [] : ['the line contains only the claims that the policy of that time compares']),
    ...(same === null && trace?.decision.outcome !== 'needs' ? [`${then.reason} does not come from a rule`] : []),
  ]
}
