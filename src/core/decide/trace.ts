/** Explains a decision by how each rule of the route matched the request. Only `decide` decides; nothing here does. */
import type { RouteDescriptor } from '../route/classify.ts'
import { decideMatched, isUnsettled, relationOf, type Facts, type Need, type Permit } from './decide.ts'
import type { Principal } from './principal.ts'
import type { Refusal } from '../reasons.ts'
import { matchRules, speaksOfThread, type Relation, type Rule, type Rules, type Verdict } from './rules.ts'

/** `thread`: the rule covers other threads. `deleted`, `unsettled`: it opens foreign threads, but not one in this state. */
export type TriedVerdict = Verdict | 'thread' | 'deleted' | 'unsettled'

export interface TriedRule {
  readonly rule: Rule
  readonly verdict: TriedVerdict
  readonly decides: boolean
}

export interface Trace {
  readonly decision: Permit | Refusal | Need
  /** Null on routes without a thread, and while the owner is unknown. */
  readonly relation: Relation | null
  readonly tried: readonly TriedRule[]
}

export function traceOf(descriptor: RouteDescriptor, principal: Principal, rules: Rules, facts: Facts): Trace {
  const match = matchRules(descriptor, principal, rules, facts)
  const decision = decideMatched(match, descriptor, facts)
  const { route } = descriptor
  const { record } = facts
  const relation = route.thread === undefined || record === undefined ? null : relationOf(record, principal, descriptor, rules)
  const unsettled = record?.deleted === true ? 'deleted' : 'unsettled'
  const gone = relation === 'foreign' && isUnsettled(record ?? null, descriptor) ? unsettled : null
  const tried = match.tried.map((rule, at) => {
    const verdict = match.verdicts[at] ?? 'failed'
    return { rule, verdict: verdict === 'applies' ? onThread(rule, relation, gone) : verdict, decides: isTheOne(rule, decision) }
  })
  return { decision, relation, tried }
}

function onThread(rule: Rule, relation: Relation | null, gone: 'deleted' | 'unsettled' | null): TriedVerdict {
  if (relation === null) return 'applies'
  if (!speaksOfThread(rule, relation)) return 'thread'
  return gone !== null && rule.effect === 'allow' ? gone : 'applies'
}

function isTheOne(rule: Rule, decision: Permit | Refusal | Need): boolean {
  if (decision.outcome === 'permitted') return decision.rule === rule
  if (decision.outcome === 'needs') return decision.fact === 'upstreamHistory' && decision.rule === rule
  // The names of a policy's rules are unique.
  return decision.rule?.name === rule.name
}
