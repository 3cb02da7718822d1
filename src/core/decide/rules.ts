/** The rules of a policy as data, and whether a rule applies to a request. Nothing here looks at a thread. */
import type { BodyPolicy } from '../route/bodies.ts'
import type { RouteDescriptor } from '../route/classify.ts'
import { isUuid } from '../route/ids.ts'
import { valueAt } from '../json/pointer.ts'
import type { Rates, StreamLimits, TokenBudgets } from './limits.ts'
import type { Part, Principal, User } from './principal.ts'
import type { RulePlace } from '../reasons.ts'
import type { Method, Route, RouteId } from '../route/routes.ts'

/** What a thread is to a caller. `shared`: the granted right is enough for the route. */
export type Relation = 'own' | 'shared' | 'unknown' | 'foreign'

export type Who = 'anonymous' | 'signed-in' | 'operator'

export type Scalar = string | number | boolean

export type ClaimTest = { readonly at: string } & (
  | { readonly is: 'equal'; readonly to: Scalar }
  /** All items have the same type. */
  | { readonly is: 'in'; readonly list: readonly Scalar[] }
  | { readonly is: 'containing'; readonly item: Scalar }
  | { readonly is: 'at-least' | 'at-most'; readonly bound: number }
  | { readonly is: 'present'; readonly wanted: boolean }
)

/** A caller who is not signed in meets only the empty conditions. */
export interface CallerConditions {
  readonly issuers?: readonly string[]
  readonly roles?: readonly string[]
  readonly permissions?: { readonly any?: readonly string[]; readonly all?: readonly string[] }
  readonly claims?: readonly ClaimTest[]
}

export type CallerPart = 'issuer' | 'role' | 'permission' | 'claim'

/** An absent limit stays as configured, and `off` means no limit. */
export interface RuleLimits {
  /** Counted in addition to the configured limit. */
  readonly requests?: Rates
  readonly runs?: Rates
  readonly newThreads?: Rates
  readonly streams?: StreamLimits
  readonly tokens?: TokenBudgets
  /** Bytes of a body. */
  readonly body?: number
}

export interface Passes extends BodyPolicy {
  /** Names of the configured `forwardHeaders` that pass, in lower case; null for all. */
  readonly headers: ReadonlySet<string> | null
  /** Whether a run may answer interrupts: `refuse` refuses the whole run. */
  readonly interrupts: 'pass' | 'refuse'
}

/** The first matching allow rule decides which fields are forwarded. */
export interface Rule extends RulePlace {
  readonly effect: 'allow' | 'deny'
  readonly who: readonly Who[]
  readonly when: CallerConditions
  readonly unless: CallerConditions | null
  /** Agent ids; null for every agent, and for requests that name none. */
  readonly agents: ReadonlySet<string> | null
  readonly methods: readonly Method[] | null
  /** Null in a denying rule means every thread; an allowing rule names them. */
  readonly threads: readonly Relation[] | null
  readonly onlyUserScoped: boolean
  /** True if a denial by this rule looks like an unknown route (404). */
  readonly hides: boolean
  readonly passes: Passes
  readonly limits: RuleLimits
}

export interface RouteRules {
  readonly rules: readonly Rule[]
  readonly hide: boolean
}

export interface OperatorSelector {
  readonly issuer: string
  readonly role?: string
  readonly permission?: string
}

export interface Rules {
  readonly operators: readonly OperatorSelector[]
  readonly routes: Readonly<Record<RouteId, RouteRules>>
  /** True if a rule names single agents: the gateway then reports to callers the agents that they may use. */
  readonly nameAgents: boolean
  readonly sharing: boolean
}

/** An allow rule for foreign threads also covers shared threads, because a grant takes nothing away. A deny rule does not. */
export function speaksOfThread({ effect, threads }: Pick<Rule, 'effect' | 'threads'>, relation: Relation): boolean {
  if (threads === null) return effect === 'deny'
  return threads.includes(relation) || (effect === 'allow' && relation === 'shared' && threads.includes('foreign'))
}

export type Unmet = 'method' | 'who' | CallerPart | 'agent' | 'unless' | 'upstream'

/** `failed`: a claim has another type than it is compared with. */
export type Verdict = 'applies' | 'failed' | Unmet

export function isOperator(principal: Principal, selectors: readonly OperatorSelector[]): boolean {
  if (principal.kind !== 'user') return false
  return selectors.some(
    (selector) =>
      selector.issuer === principal.issuer &&
      (selector.role === undefined || principal.roles.includes(selector.role)) &&
      (selector.permission === undefined || principal.permissions.includes(selector.permission)) &&
      (selector.role !== undefined || selector.permission !== undefined),
  )
}

interface UpstreamScoping {
  /** True where the upstream itself keeps its users apart. */
  readonly userScoped: boolean
}

/** Compares claims last, so that a claim of a wrong type fails only the rules that would otherwise apply. */
export function verdictOn(
  rule: Rule,
  { route, ids }: Pick<RouteDescriptor, 'route' | 'ids'>,
  principal: Principal,
  operators: readonly OperatorSelector[],
  { userScoped }: UpstreamScoping,
): Verdict {
  if (rule.methods !== null && !rule.methods.includes(route.method)) return 'method'
  const { who } = rule
  const isNamed =
    (who.includes('anonymous') && principal.kind === 'anonymous') ||
    (who.includes('signed-in') && (principal.kind === 'user' || principal.standsForAll)) ||
    (who.includes('operator') && isOperator(principal, operators))
  // An unreadable claim leaves open whether the caller is an operator. It grants nothing, and it denies.
  const isUnsure = !isNamed && rule.effect === 'deny' && who.includes('operator') && mayBeOperator(principal, operators)
  if (!isNamed && !isUnsure) return 'who'
  // A LangGraph server has a second name for an assistant, which says nothing of its graph.
  const isAlias = rule.agents !== null && rule.effect === 'deny' && route.api === 'langgraph' && isUuid(ids.agentId)
  if (rule.agents !== null && !isAlias && (ids.agentId === undefined || !rule.agents.has(ids.agentId))) return 'agent'
  if (rule.onlyUserScoped && !userScoped) return 'upstream'
  const unmet = unmetOf(rule.when, principal)
  if (unmet !== null && unmet !== 'failed') return unmet
  const excepted = rule.unless === null ? false : holdsOf(rule.unless, principal)
  // A rule does not apply to a caller who is certainly excepted, whatever the caller's other claims are.
  if (excepted === true) return 'unless'
  return isUnsure || isAlias || unmet === 'failed' || excepted === 'failed' ? 'failed' : 'applies'
}

/** Depends on route, agent and caller alone: one match serves every decision about a request. */
export interface RuleMatch {
  readonly outcome: 'matched'
  readonly route: Route
  readonly agentId: string | undefined
  readonly userScoped: boolean
  readonly principal: Principal
  readonly rules: Rules
  readonly tried: readonly Rule[]
  readonly verdicts: readonly Verdict[]
  readonly failed: Rule | undefined
  readonly denying: readonly Rule[]
  readonly allowing: readonly Rule[]
}

export function matchRules(
  { route, ids }: RouteDescriptor,
  principal: Principal,
  rules: Rules,
  upstream: UpstreamScoping,
): RuleMatch {
  const tried = rules.routes[route.id].rules
  const verdicts: Verdict[] = []
  const denying: Rule[] = []
  const allowing: Rule[] = []
  let failed: Rule | undefined
  const about = { route, ids }
  for (const rule of tried) {
    const verdict = verdictOn(rule, about, principal, rules.operators, upstream)
    verdicts.push(verdict)
    if (verdict === 'failed') failed ??= rule
    if (verdict === 'applies') (rule.effect === 'deny' ? denying : allowing).push(rule)
  }
  const { agentId } = ids
  const { userScoped } = upstream
  return { outcome: 'matched', route, agentId, userScoped, principal, rules, tried, verdicts, failed, denying, allowing }
}

function mayBeOperator(principal: Principal, selectors: readonly OperatorSelector[]): boolean {
  if (principal.kind !== 'user' || principal.unreadable === undefined) return false
  const { issuer, roles, permissions, unreadable } = principal
  const may = (name: string | undefined, part: Part, has: readonly string[]): boolean =>
    name === undefined || has.includes(name) || unreadable.includes(part)
  return selectors.some(
    (selector) =>
      selector.issuer === issuer && may(selector.role, 'role', roles) && may(selector.permission, 'permissions', permissions),
  )
}

/** @returns null if the caller meets all parts, `failed` if a claim has another type than it is compared with */
export function unmetOf(conditions: CallerConditions, principal: Principal): CallerPart | 'failed' | null {
  const { issuers, roles, permissions, claims } = conditions
  const user = principal.kind === 'user' ? principal : null
  if (issuers !== undefined && (user === null || !issuers.includes(user.issuer))) return 'issuer'
  const role = roles === undefined ? true : meets(user, 'role', (one) => roles.some((name) => one.roles.includes(name)))
  if (role === false) return 'role'
  const permission = permissions === undefined ? true : meets(user, 'permissions', (one) => hasPermissions(one, permissions))
  if (permission === false) return 'permission'
  if (claims !== undefined && user === null) return 'claim'
  // All claims are compared: a claim that merely differs must not hide a claim of a wrong type.
  const results = claims?.map((claim) => compare(claim, valueAt(user?.claims, claim.at))) ?? []
  if (results.includes('failed')) return 'failed'
  if (results.includes(false)) return 'claim'
  return role === 'failed' || permission === 'failed' ? 'failed' : null
}

/** An unreadable claim grants nothing, but a rule may deny by it. The result is therefore `failed` and not false. */
function meets(user: User | null, part: Part, has: (user: User) => boolean): boolean | 'failed' {
  if (user === null) return false
  return user.unreadable?.includes(part) === true ? 'failed' : has(user)
}

export function holdsOf(conditions: CallerConditions, principal: Principal): boolean | 'failed' {
  const unmet = unmetOf(conditions, principal)
  return unmet === 'failed' ? 'failed' : unmet === null
}

function hasPermissions(user: User, { any, all }: NonNullable<CallerConditions['permissions']>): boolean {
  const has = (permission: string): boolean => user.permissions.includes(permission)
  return (any === undefined || any.some(has)) && (all === undefined || all.every(has))
}

/** An absent claim meets only `exists: false`. Null is a value, of a type that nothing is compared with. */
function compare(test: ClaimTest, claim: unknown): boolean | 'failed' {
  if (test.is === 'present') return (claim !== undefined) === test.wanted
  if (claim === undefined) return false
  switch (test.is) {
    case 'equal':
      return typeof claim === typeof test.to ? claim === test.to : 'failed'
    case 'in':
      return typeof claim === typeof test.list[0] ? test.list.includes(claim as Scalar) : 'failed'
    case 'containing':
      if (!Array.isArray(claim) || !claim.every((item) => typeof item === typeof test.item)) return 'failed'
      return claim.includes(test.item)
    case 'at-least':
      return typeof claim === 'number' ? claim >= test.bound : 'failed'
    case 'at-most':
      return typeof claim === 'number' ? claim <= test.bound : 'failed'
  }
}
