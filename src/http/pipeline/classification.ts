/** Finds the route that a request addresses, and refuses what no rule can open to its caller. */
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { decideMatched } from '../../core/decide/decide.ts'
import { RuleMatch, type Rules } from '../../core/decide/rules.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import type { CachedTarget } from './target-cache.ts'
import type { Addressed, Caller, Classified, Exchange, UpstreamBinding } from './stages.ts'

export function classify(
  target: CachedTarget<UpstreamBinding>,
  upstream: RuntimeFacts,
  rules: Rules,
  exchange: Exchange,
  caller: Caller,
): Classified | Refusal {
  const { binding, segments } = target
  const { method } = exchange.head
  if (segments === null) return refuse('route-unknown')
  const addressed = { exchange, binding, caller, upstream }
  // The body alone says what an envelope asks for (runtime-behaviour.md, "Single-route transport").
  if (binding.agentId === null && segments.length === 0) {
    if (method !== 'POST') return refuse('route-unknown')
    // The runtime would take a query value for a param that the envelope does not have.
    if (target.target.query.size > 0) return refuse('query-beside-envelope')
    exchange.record.client = 'single-route'
    return { outcome: 'classified', ...addressed, route: null }
  }
  const descriptor = target.classified(method)
  if (descriptor.outcome === 'refused') return descriptor
  const match = admit(addressed, descriptor, rules)
  return match instanceof RuleMatch ? { outcome: 'classified', ...addressed, route: { descriptor, match } } : match
}

export function admit(
  { exchange: { record }, binding, caller, upstream }: Addressed,
  descriptor: RouteDescriptor,
  rules: Rules,
): RuleMatch | Refusal {
  record.descriptor = descriptor
  const { route } = descriptor
  if (!hasOperation(upstream, route) && !binding.hasOperation(upstream, route)) return refuse('upstream-lacks-route')
  record.facts = binding.facts
  const match = new RuleMatch(descriptor, caller.principal, rules, binding.facts)
  const decision = decideMatched(match, descriptor, binding.facts)
  return decision.outcome === 'refused' ? decision : match
}
