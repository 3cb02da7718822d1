/** The visible result of a policy for a request: the answer, what passes, and the limits. */
import { mountsOf, standingFacts } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import { decide, mayUseAgent, type Permit, type StandingFacts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Code, Reason, RulePlace } from '../../core/reasons.ts'
import type { Policy } from '../../policy/policy.ts'
import { limitsOf } from './limits.ts'
import { recordOf, type Cell } from './matrix.ts'
import { placeOf } from './place.ts'
import { limitText, listText } from './decision-text.ts'

export type Verdict =
  | {
      readonly outcome: 'permitted'
      readonly rule: RulePlace
      readonly passes: Readonly<Record<string, string>>
    }
  | { readonly outcome: 'refused'; readonly code: Code; readonly reason: Reason; readonly rule: RulePlace | null }

export function verdictOf(cell: Cell, principal: Principal, policy: Policy, agents: readonly string[], config: Config): Verdict {
  // Policies are compared under `enforce`, for an upstream without history of unowned threads.
  const facts = { ...standingFacts(mountsOf(config)[0], config), enforcement: 'enforce', upstreamHistory: 'none' } as const
  const record = cell.ownership === null ? null : recordOf(cell.ownership, principal)
  const decision = decide(cell.descriptor, principal, policy.rules, { ...facts, record })
  if (decision.outcome === 'needs') throw new Error('a decision without a fact that was given')
  if (decision.outcome === 'refused') {
    const { code, reason, rule } = decision
    return { outcome: 'refused', code, reason, rule: rule === undefined ? null : placeOf(rule) }
  }
  const named = cell.descriptor.route.id === 'info' ? { agents: namedAgents(agents, principal, policy, facts) } : {}
  return {
    outcome: 'permitted',
    rule: placeOf(decision.rule),
    passes: { ...named, ...passesOf(decision, config), ...limits(decision, config) },
  }
}

function namedAgents(agents: readonly string[], principal: Principal, { rules }: Policy, facts: StandingFacts): string {
  const named = rules.nameAgents ? agents.filter((agentId) => mayUseAgent(agentId, principal, rules, facts)) : agents
  return named.length === agents.length ? 'all' : listText(named)
}

function passesOf({ rule: { passes }, descriptor: { route } }: Permit, { forwardHeaders }: Config): Record<string, string> {
  const { keys } = route.body
  const { headers } = passes
  const forward = forwardHeaders.map((name) => name.toLowerCase()).filter((name) => headers?.has(name) !== false)
  return {
    ...(keys.includes('forwardedProps') ? { forwardedProps: listText([...passes.forwardedProps].sort()) } : {}),
    ...(keys.includes('state') ? { state: passes.state } : {}),
    ...(keys.includes('tools') ? { tools: passes.tools === 'all' ? 'all' : listText([...passes.tools].sort()) } : {}),
    ...(forwardHeaders.length === 0 ? {} : { headers: listText(forward) }),
  }
}

function limits(permit: Permit, config: Config): Record<string, string> {
  return Object.fromEntries(
    Object.entries(limitsOf(permit, config)).map(([name, limit]) => [`limit of ${name}`, limitText(limit)]),
  )
}

/** True if the two look the same from outside. The rule may differ, and so may the reason behind one code. */
export function isAlike(one: Verdict, other: Verdict): boolean {
  if (one.outcome === 'refused') return other.outcome === 'refused' && one.code === other.code
  return other.outcome === 'permitted' && JSON.stringify(one.passes) === JSON.stringify(other.passes)
}
