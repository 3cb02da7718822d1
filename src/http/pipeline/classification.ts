/** Finds the route that a request addresses, and refuses what no rule can open to its caller. */
import { type RouteDescriptor, classifyAt } from '../../core/route/classify.ts'
import { decideMatched } from '../../core/decide/decide.ts'
import { matchRules, type RuleMatch, type Rules } from '../../core/decide/rules.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import type { Addressed, Caller, Classified, Exchange, UpstreamBinding } from './stages.ts'
import { QUERY_NAMES, type UpstreamApi } from '../../core/route/all-routes.ts'
import type { Route } from '../../core/route/routes.ts'
import { findMount, readTarget, type Target } from '../../core/route/target.ts'

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
  // The body alone says what an envelope asks for (runtime-behaviour.md, "Single-route transport").
  if (binding.api === 'runtime' && segments.length === 0) {
    if (method !== 'POST') return refuse('route-unknown')
    // The runtime would take a query value for a param that the envelope does not have.
    if (target.target.query.size > 0) return refuse('query-beside-envelope')
    exchange.record.client = 'single-route'
    return { outcome: 'classified', exchange, binding, caller, upstream, route: null }
  }
  const descriptor = target.classified(method)
  if (descriptor.outcome === 'refused') return descriptor
  const known = descriptor.route.agent === 'body' ? withAnyAgent(descriptor.route, rules) : rules
  const match = admit({ exchange, binding, caller, upstream }, descriptor, known)
  if (match.outcome === 'refused') return match
  return { outcome: 'classified', exchange, binding, caller, upstream, route: { descriptor, match } }
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
  const match = matchRules(descriptor, caller.principal, rules, binding.facts)
  const decision = decideMatched(match, descriptor, binding.facts)
  return decision.outcome === 'refused' ? decision : match
}

/** The rules as they are for whichever agent they favour: a refusal by them is one for every agent. */
function withAnyAgent({ id }: Route, rules: Rules): Rules {
  const favouring = rules.routes[id].rules
    .filter(({ effect, agents }) => effect === 'allow' || agents === null)
    .map((rule) => ({ ...rule, agents: null }))
  return { ...rules, routes: { ...rules.routes, [id]: { ...rules.routes[id], rules: favouring } } }
}

interface Mounted {
  readonly api: UpstreamApi
  readonly publicPath: string
  readonly agentId: string | null
}

/** The upstream and operation of a target. They depend on target and configuration alone, so they are remembered. */
export interface CachedTarget<Binding> {
  readonly outcome: 'placed'
  readonly target: Target
  readonly binding: Binding
  readonly segments: readonly string[] | null
  classified(method: string): RouteDescriptor | Refusal
}

/** Callers choose targets, so longer targets are not remembered, nor more than `MOST`. */
const LONGEST = 256
const MOST = 4096

export function makeTargetCache<Binding extends Mounted>(
  bindings: readonly [Binding, ...Binding[]],
): (rawTarget: string) => CachedTarget<Binding> | Refusal {
  const known = new Map<string, CachedTarget<Binding>>()
  const find = (rawTarget: string): CachedTarget<Binding> | Refusal => {
    const target = readTarget(rawTarget, QUERY_NAMES)
    if (target.outcome === 'refused') return target
    const { mount: binding, segments } = findMount(bindings, target) ?? { mount: bindings[0], segments: null }
    const byMethod = new Map<string, RouteDescriptor | Refusal>()
    const classified = (method: string): RouteDescriptor | Refusal => {
      let found = byMethod.get(method)
      if (found === undefined) {
        found = classifyAt(binding, method, segments ?? [], target.query)
        byMethod.set(method, found)
      }
      return found
    }
    return { outcome: 'placed', target, binding, segments, classified }
  }
  return (rawTarget) => {
    const place = known.get(rawTarget)
    if (place !== undefined) return place
    const found = find(rawTarget)
    if (found.outcome === 'refused' || rawTarget.length > LONGEST) return found
    if (known.size >= MOST) known.clear()
    known.set(rawTarget, found)
    return found
  }
}
