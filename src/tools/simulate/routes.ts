/** Which routes there are, where callers find them, and whom the policy lets use them. */
import { mountsOf, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { CallerConditions, ClaimTest } from '../../core/decide/conditions.ts'
import type { RulePlace } from '../../core/reasons.ts'
import { ALL_ROUTES, OWN_ROUTES, ROUTES, type Method, type Route, type RouteId } from '../../core/route/routes.ts'
import type { Relation, Rule, Rules, Who } from '../../core/decide/rules.ts'
import type { NeededRight } from '../../core/decide/sharing.ts'
import { hasOperation } from '../../core/route/transport.ts'
import type { Policy } from '../../policy/policy.ts'
import { makeReach, type Reach } from '../../policy/reach.ts'
import { placeOf } from './place.ts'
import { assumed } from './sending.ts'

/** What one rule says of a route. */
export interface Access {
  readonly effect: 'allow' | 'deny'
  readonly who: readonly Who[]
  /** Null on routes about no thread, and for a rule that speaks of every one. */
  readonly threads: readonly Relation[] | null
  /** Null for every one. */
  readonly agents: readonly string[] | null
  /** What has to be so of the caller, in words. */
  readonly conditions: readonly string[]
  readonly rule: RulePlace
}

/** A route as a caller finds it. */
export interface RouteAccess {
  /** What the configuration calls its upstream: its key, or `''`. */
  readonly upstream: string
  /** The scope of the threads there. */
  readonly scope: string
  readonly route: RouteId
  readonly method: Method
  /** With `:agentId` and the like for ids. */
  readonly path: string
  /** For what a thread of somebody else's has to be granted; null on routes about no thread. */
  readonly right: NeededRight | null
  /** True where nobody may use it. */
  readonly closed: boolean
  /** True where a refusal looks like an unknown route (404). */
  readonly hidden: boolean
  readonly access: readonly Access[]
}

/** Lists every route. A rule that can speak of nobody under this configuration is left out. */
export function routesOf(config: Config, { rules }: Policy): readonly RouteAccess[] {
  const { authentication } = config
  const reach = makeReach(rules, { issuers: Object.keys(authentication.issuers), mode: authentication.mode })
  return mountsOf(config).flatMap((mount) => routesOfMount(mount, rules, reach))
}

/** Of an agent, the run on its root path and what the gateway answers itself. */
const ENDPOINT_ROUTES = [...ROUTES.filter(({ id }) => id === 'agent/run'), ...OWN_ROUTES]

function routesOfMount(mount: Mount, rules: Rules, reach: Reach): readonly RouteAccess[] {
  const { key, scope, agentId, publicPath, userScoped } = mount
  const facts = assumed(mount)
  return (agentId === null ? ALL_ROUTES : ENDPOINT_ROUTES).map((route) => {
    const said = rules.routes[route.id]
    /** Those of which a rule speaks that there can be here. */
    const threadsOf = ({ threads }: Rule): readonly Relation[] | null =>
      threads?.filter((relation) => relation !== 'shared' || (rules.sharing && route.right !== 'owner')) ?? null
    const speaking = said.rules.filter(
      (rule) =>
        rule.methods?.includes(route.method) !== false &&
        (!rule.onlyUserScoped || userScoped) &&
        (agentId === null || rule.agents === null || route.own === true || rule.agents.has(agentId)) &&
        reach.silenceOf(rule) === null &&
        threadsOf(rule)?.length !== 0,
    )
    const closed = !hasOperation(facts, route) || isClosed(route, speaking, reach)
    return {
      upstream: key,
      scope,
      route: route.id,
      method: route.method,
      path: agentId !== null && route.own !== true ? publicPath || '/' : `${publicPath}/${route.path.join('/')}`,
      right: route.right ?? null,
      closed,
      hidden: said.hide,
      access: closed ? [] : speaking.map((rule) => accessBy(rule, threadsOf(rule))),
    }
  })
}

/** True if nobody is allowed, or whoever is gets denied. */
function isClosed(route: Route, speaking: readonly Rule[], reach: Reach): boolean {
  const denying = speaking.filter(({ effect }) => effect === 'deny')
  const allowing = speaking.filter(({ effect }) => effect === 'allow').map((rule) => ({ ...rule, methods: [route.method] }))
  return allowing.every((rule) => reach.coveredBy(rule, route.id, denying) !== null)
}

function accessBy(rule: Rule, threads: Access['threads']): Access {
  return {
    effect: rule.effect,
    who: rule.who,
    threads,
    agents: rule.agents === null ? null : [...rule.agents],
    conditions: [
      ...conditionTexts(rule.when),
      ...(rule.unless === null ? [] : [`unless ${conditionTexts(rule.unless).join(' and ')}`]),
    ],
    rule: placeOf(rule),
  }
}

/** Conditions on a caller, in words. */
export function conditionTexts({ issuers, roles, permissions, claims }: CallerConditions): readonly string[] {
  const one = (what: string, names: readonly string[]): string => `${what} ${names.join(' or ')}`
  return [
    ...(issuers === undefined ? [] : [one('issuer', issuers)]),
    ...(roles === undefined ? [] : [one('role', roles)]),
    ...(permissions?.any === undefined ? [] : [one('permission', permissions.any)]),
    ...(permissions?.all === undefined ? [] : [`permissions ${permissions.all.join(' and ')}`]),
    ...(claims ?? []).map(claimText),
  ]
}

/** A comparison of a claim, in words. */
export function claimText(test: ClaimTest): string {
  const { at } = test
  switch (test.is) {
    case 'equal':
      return `${at} is ${JSON.stringify(test.to)}`
    case 'in':
      return `${at} is one of ${test.list.map((value) => JSON.stringify(value)).join(', ')}`
    case 'containing':
      return `${at} contains ${JSON.stringify(test.item)}`
    case 'at-least':
      return `${at} is ${test.bound} or more`
    case 'at-most':
      return `${at} is ${test.bound} or less`
    case 'present':
      return `${at} is ${test.wanted ? 'there' : 'not there'}`
  }
}
