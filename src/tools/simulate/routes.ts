/** Lists the routes, where callers find them, and who may use them under the policy. */
import { mountsOf, type Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { CallerConditions, ClaimTest, Relation, Rule, Rules, Who } from '../../core/decide/rules.ts'
import type { RulePlace } from '../../core/reasons.ts'
import { LANGGRAPH_CLOSED } from '../../core/route/langgraph-routes.ts'
import { ROUTES_OF } from '../../core/route/all-routes.ts'
import type { Method, Route, RouteId } from '../../core/route/routes.ts'
import type { NeededRight } from '../../core/decide/sharing.ts'
import { hasOperation } from '../../core/route/transport.ts'
import type { Policy } from '../../policy/compile.ts'
import { makeReach, type Reach } from '../../policy/reach.ts'
import { placeOf } from './decision-text.ts'
import { assumed } from './recording-upstream.ts'

export interface Access {
  readonly effect: 'allow' | 'deny'
  readonly who: readonly Who[]
  /** Null on routes without a thread, and for a rule about every thread. */
  readonly threads: readonly Relation[] | null
  /** Null for every agent. */
  readonly agents: readonly string[] | null
  readonly conditions: readonly string[]
  readonly rule: RulePlace
}

export interface RouteAccess {
  /** The key of its upstream in the configuration, or `''`. */
  readonly upstream: string
  readonly scope: string
  readonly route: RouteId
  readonly method: Method
  /** With `:agentId` and the like for ids. */
  readonly path: string
  /** The right that another user's thread needs; null on routes without a thread. */
  readonly right: NeededRight | null
  readonly closed: boolean
  /** True if a refusal looks like an unknown route (404). */
  readonly hidden: boolean
  readonly access: readonly Access[]
}

/** Lists every route. A rule that cannot apply to any caller under this configuration is left out. */
export function routesOf(config: Config, { rules }: Policy): readonly RouteAccess[] {
  const { authentication } = config
  const reach = makeReach(rules, { issuers: Object.keys(authentication.issuers), mode: authentication.mode })
  return mountsOf(config).flatMap((mount) => routesOfMount(mount, rules, reach))
}

/** A route of a LangGraph server that no policy can open. */
export interface ClosedRoute {
  readonly upstream: string
  readonly method: (typeof LANGGRAPH_CLOSED)[number][0]
  readonly path: string
}

export function alwaysClosed(config: Config): readonly ClosedRoute[] {
  return mountsOf(config)
    .filter(({ api }) => api === 'langgraph')
    .flatMap(({ key, publicPath }) =>
      LANGGRAPH_CLOSED.map(([method, path]) => ({ upstream: key, method, path: `${publicPath}/${path}` })),
    )
}

function routesOfMount(mount: Mount, rules: Rules, reach: Reach): readonly RouteAccess[] {
  const { key, scope, api, agentId, publicPath, userScoped } = mount
  const facts = assumed(mount)
  return ROUTES_OF[api].map((route) => {
    const said = rules.routes[route.id]
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

/** True if no caller is allowed, or every allowed caller is denied. */
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

function conditionTexts({ issuers, roles, permissions, claims }: CallerConditions): readonly string[] {
  const one = (what: string, names: readonly string[]): string => `${what} ${names.join(' or ')}`
  return [
    ...(issuers === undefined ? [] : [one('issuer', issuers)]),
    ...(roles === undefined ? [] : [one('role', roles)]),
    ...(permissions?.any === undefined ? [] : [one('permission', permissions.any)]),
    ...(permissions?.all === undefined ? [] : [`permissions ${permissions.all.join(' and ')}`]),
    ...(claims ?? []).map(claimText),
  ]
}

function claimText(test: ClaimTest): string {
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
