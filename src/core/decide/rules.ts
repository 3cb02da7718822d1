/**
 * The rules of a policy as data, and whether one of them speaks of a request. Nothing here looks at a thread: that is the
 * decision's (src/core/decide/decide.ts).
 */
import type { BodyPolicy } from '../route/bodies.ts'
import type { RouteDescriptor } from '../route/classify.ts'
import { holdsOf, unmetOf, type CallerConditions, type CallerPart } from './conditions.ts'
import type { Part, Principal } from './principal.ts'
import type { RulePlace } from '../reasons.ts'
import type { Method, RouteId } from '../route/routes.ts'

/** What a thread is to a caller; `shared`: what was granted is enough for the route. */
export type Relation = 'own' | 'shared' | 'unknown' | 'foreign'

/** Who a rule speaks of. */
export type Who = 'anonymous' | 'signed-in' | 'operator'

/** So many per time: counted in windows of twice the time, in which twice the amount may come. */
export interface Rate {
  readonly amount: number
  /** Milliseconds. */
  readonly per: number
}

/** Limits of a caller; what is left out stays as it is configured, `off` is none. */
export interface RuleLimits {
  /** Requests that this rule allows, counted beside the configuration's. */
  readonly requests?: Rate | 'off'
  readonly runs?: Rate | 'off'
  /** Runs and suggestions on threads without an owner. */
  readonly newThreads?: Rate | 'off'
  /** Runs, connects and subscriptions that are open at once. */
  readonly streams?: number | 'off'
  /** Bytes of a body. */
  readonly body?: number
}

/** What of a request reaches the upstream. */
export interface Passes extends BodyPolicy {
  /** Of the configured `forwardHeaders`, those that pass, in lower case; null for all. */
  readonly headers: ReadonlySet<string> | null
}

/** One rule. Rules that deny win over those that allow; of those that allow, the first one says what passes. */
export interface Rule extends RulePlace {
  readonly effect: 'allow' | 'deny'
  readonly who: readonly Who[]
  readonly when: CallerConditions
  /** The rule does not hold for callers of whom this is so. */
  readonly unless: CallerConditions | null
  /** Agents by id; null for every one, and where a request names none. */
  readonly agents: ReadonlySet<string> | null
  readonly methods: readonly Method[] | null
  /** On routes about a thread: which threads. Null for every one in a rule that denies; one that allows names them. */
  readonly threads: readonly Relation[] | null
  /** True where it holds only before an upstream that scopes users itself. */
  readonly onlyUserScoped: boolean
  /** True where a denial by this rule looks like an unknown route (404). */
  readonly hides: boolean
  readonly passes: Passes
  readonly limits: RuleLimits
}

/** What the policy says of one route: no rule that allows, no access. */
export interface RouteRules {
  /** In the order of the file. */
  readonly rules: readonly Rule[]
  /** True where every refusal looks like an unknown route (404). */
  readonly hide: boolean
}

export interface OperatorSelector {
  readonly issuer: string
  readonly role?: string
  readonly permission?: string
}

/** The rules that decisions are made by. */
export interface Rules {
  readonly operators: readonly OperatorSelector[]
  readonly routes: Readonly<Record<RouteId, RouteRules>>
  /** True where some rule speaks of single agents: callers are then told of those that they may use. */
  readonly nameAgents: boolean
  /** Whether grants count: the one switch for access and lists alike. */
  readonly sharing: boolean
}

/**
 * True if a rule speaks of threads that are this to the caller. Who may have what is everybody else's may have what of it is
 * shared, too: a grant takes nothing away. A rule that denies foreign threads does not speak of shared ones.
 */
export function speaksOfThread({ effect, threads }: Pick<Rule, 'effect' | 'threads'>, relation: Relation): boolean {
  if (threads === null) return effect === 'deny'
  return threads.includes(relation) || (effect === 'allow' && relation === 'shared' && threads.includes('foreign'))
}

/** The part of a rule that a request does not meet. */
export type Unmet = 'method' | 'who' | CallerPart | 'agent' | 'unless' | 'upstream'

/**
 * How a rule stands to a request, whatever thread it is about: it applies, it does not because of one part, or a claim has
 * another type than it is compared with, and nobody can say.
 */
export type Verdict = 'applies' | 'failed' | Unmet

/** True if the policy names this principal an operator. Nobody who isn't signed in is one. */
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

/**
 * Holds a rule against a request. Claims come after everything else that is known of a caller, so that a claim of a wrong
 * type fails only the rules that would otherwise apply.
 * @param userScoped whether the upstream scopes users itself
 */
export function verdictOn(
  rule: Rule,
  { route, ids }: RouteDescriptor,
  principal: Principal,
  operators: readonly OperatorSelector[],
  userScoped: boolean,
): Verdict {
  if (rule.methods !== null && !rule.methods.includes(route.method)) return 'method'
  const isNamed = rule.who.some((who) => isSpokenOf(who, principal, operators))
  // Whether somebody is an operator can't be said of a claim that nobody can read: that grants nothing, and denies.
  const isUnsure = !isNamed && rule.effect === 'deny' && rule.who.includes('operator') && mayBeOperator(principal, operators)
  if (!isNamed && !isUnsure) return 'who'
  if (rule.agents !== null && (ids.agentId === undefined || !rule.agents.has(ids.agentId))) return 'agent'
  if (rule.onlyUserScoped && !userScoped) return 'upstream'
  const unmet = unmetOf(rule.when, principal)
  if (unmet !== null && unmet !== 'failed') return unmet
  const excepted = rule.unless === null ? false : holdsOf(rule.unless, principal)
  // Of somebody who is excepted for certain the rule does not speak, whatever else their claims are.
  if (excepted === true) return 'unless'
  return isUnsure || unmet === 'failed' || excepted === 'failed' ? 'failed' : 'applies'
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

function isSpokenOf(who: Who, principal: Principal, operators: readonly OperatorSelector[]): boolean {
  switch (who) {
    case 'anonymous':
      return principal.kind === 'anonymous'
    case 'signed-in':
      return principal.kind === 'user' || principal.standsForAll
    case 'operator':
      return isOperator(principal, operators)
  }
}
