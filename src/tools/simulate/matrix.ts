/** Lists every request that policies could distinguish (route, agent, owner of the thread), and the visible result of a policy. */
import type { RouteDescriptor } from '../../core/route/classify.ts'
import type { LangGraphRules } from '../../core/route/langgraph-bodies.ts'
import { RUN_OPTIONS } from '../../core/route/langgraph-routes.ts'
import { namesAgent } from '../../core/route/routes.ts'
import { MESSAGE_ROLES, type MessageRules } from '../../core/route/message-rules.ts'
import { type OwnerRecord, decide, mayUseAgent, type Permit, type StandingFacts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { ALL_ROUTES } from '../../core/route/all-routes.ts'
import type { Rules } from '../../core/decide/rules.ts'
import type { Policy } from '../../policy/compile.ts'
import { mountsOf, standingFacts } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { Code, Reason, RulePlace } from '../../core/reasons.ts'
import { limitsOf } from './explanation.ts'
import { sizeText } from '../../document/quantities.ts'
import { placeOf, limitText, listText } from './decision-text.ts'

// oxfmt-ignore
const OWNERSHIPS = [
  'own', 'shared for reading', 'shared for writing', 'unknown', 'foreign', 'own, deleted', 'foreign, deleted',
] as const

type Ownership = (typeof OWNERSHIPS)[number]

export interface Cell {
  readonly descriptor: RouteDescriptor
  /** Null on routes without a thread. */
  readonly ownership: Ownership | null
}

/** A user id always has a colon, so this is no user. */
const SOMEBODY_ELSE = 'somebody-else'

function recordOf(ownership: Ownership, principal: Principal): OwnerRecord {
  if (ownership === 'unknown') return null
  if (ownership === 'shared for reading') return { owner: SOMEBODY_ELSE, deleted: false, granted: 'read' }
  if (ownership === 'shared for writing') return { owner: SOMEBODY_ELSE, deleted: false, granted: 'write' }
  return { owner: ownership.startsWith('own') ? principal.id : SOMEBODY_ELSE, deleted: ownership.endsWith('deleted') }
}

/** The agents that policies name, after one agent that none of them names. */
export function agentsOf(policies: readonly Policy[]): readonly [string, ...string[]] {
  const named = new Set<string>()
  for (const { rules } of policies) {
    for (const { rules: list } of Object.values(rules.routes))
      for (const { agents } of list) for (const agent of agents ?? []) named.add(agent)
  }
  const taken = [...named]
  const other = ['any-other-agent', ...taken.map((_one, at) => `any-other-agent-${at}`)].find((one) => !named.has(one))
  return [other ?? 'any-other-agent', ...taken]
}

/** True for a thread with a grant. Where grants do not count, it is like any other foreign thread. */
function isShared(ownership: Ownership): boolean {
  return ownership === 'shared for reading' || ownership === 'shared for writing'
}

export function cellsOf(agents: readonly string[], { sharing }: Pick<Rules, 'sharing'>): readonly Cell[] {
  const ownerships = sharing ? OWNERSHIPS : OWNERSHIPS.filter((one) => !isShared(one))
  return ALL_ROUTES.flatMap((route) => {
    const named = namesAgent(route) ? agents : [undefined]
    return named.flatMap((agentId) => {
      const ids = {
        ...(agentId === undefined ? {} : { agentId }),
        ...(route.thread === undefined ? {} : { threadId: 'a-thread' }),
      }
      const descriptor = { outcome: 'classified', route, ids, query: [] } as const
      return (route.thread === undefined ? [null] : ownerships).map((ownership) => ({ descriptor, ownership }))
    })
  })
}

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
  const hasState = route.api === 'langgraph' && (keys.includes('input') || keys.includes('values'))
  const { headers } = passes
  const forward = forwardHeaders.map((name) => name.toLowerCase()).filter((name) => headers?.has(name) !== false)
  return {
    ...(keys.includes('forwardedProps') ? { forwardedProps: listText([...passes.forwardedProps].sort()) } : {}),
    ...(keys.includes('state') ? { state: passes.state } : {}),
    ...(keys.includes('tools') ? { tools: passes.tools === 'all' ? 'all' : listText([...passes.tools].sort()) } : {}),
    ...(keys.includes('messages') || hasState ? { messages: messagesText(passes.messages) } : {}),
    ...(route.api === 'langgraph' ? langGraphPasses(passes.langgraph, keys, hasState) : {}),
    ...(keys.includes('resume') || (route.api === 'langgraph' && keys.includes('command'))
      ? { interrupts: passes.interrupts }
      : {}),
    ...(forwardHeaders.length === 0 ? {} : { headers: listText(forward) }),
  }
}

function langGraphPasses(
  { options, command, configurable, input }: LangGraphRules,
  keys: readonly string[],
  hasState: boolean,
): Record<string, string> {
  const sorted = (names: Iterable<string>): string => listText([...names].sort())
  const has = (key: string): boolean => keys.includes(key)
  return {
    ...(RUN_OPTIONS.some(has) ? { options: sorted([...options].filter(has)) } : {}),
    ...(has('command') ? { command: sorted(command) } : {}),
    ...(has('config') ? { configurable: sorted(configurable) } : {}),
    ...(hasState ? { input: input === 'all' ? 'all' : sorted(input) } : {}),
  }
}

function messagesText({ roles, others, most, size, media, schemes, history }: MessageRules): string {
  const named = MESSAGE_ROLES.filter((role) => roles.has(role))
  const left = MESSAGE_ROLES.length - named.length
  return [
    left === 0 ? 'all roles' : `${listText(named)}; ${others === 'drop' ? 'drops' : 'refuses'} others`,
    ...(most === 'off' ? [] : [`at most ${most}`]),
    ...(size === 'off' ? [] : [`each at most ${sizeText(size)}`]),
    ...(media === 'all' ? [] : [`media ${listText([...media].sort())}`]),
    ...(schemes === 'all' ? [] : [`URLs ${listText([...schemes].sort())}`]),
    ...(history === 'trust' ? [] : ['history verified']),
  ].join('; ')
}

function limits(permit: Permit, config: Config): Record<string, string> {
  return Object.fromEntries(
    Object.entries(limitsOf(permit, config)).map(([name, limit]) => [`limit of ${name}`, limitText(name, limit)]),
  )
}

/** True if the two look the same from outside. The rule may differ, and so may the reason behind one code. */
export function isAlike(one: Verdict, other: Verdict): boolean {
  if (one.outcome === 'refused') return other.outcome === 'refused' && one.code === other.code
  return other.outcome === 'permitted' && JSON.stringify(one.passes) === JSON.stringify(other.passes)
}
