/** Rules as data, for tests of what is decided by them; what is left out asks for nothing. */
import { ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import type { RouteId } from '../../src/core/route/routes.ts'
import type { RouteRules, Rule, Rules } from '../../src/core/decide/rules.ts'
import { OPEN_BODIES } from './open-bodies.ts'

/** A rule that allows whoever is signed in, whatever thread it is about. */
export function rule(more: Partial<Rule> = {}): Rule {
  return {
    name: 'a-rule',
    file: 'policy.yaml',
    effect: 'allow',
    who: ['signed-in'],
    when: {},
    unless: null,
    agents: null,
    methods: null,
    threads: null,
    onlyUserScoped: false,
    hides: false,
    passes: { ...OPEN_BODIES, headers: null, interrupts: 'pass' },
    limits: {},
    ...more,
  }
}

/** Rules for some routes; all others are closed. Whoever has the role `operator` of `corp` is one. */
export function rulesOf(routes: Partial<Record<RouteId, readonly Partial<Rule>[]>>, more: Partial<RouteRules> = {}): Rules {
  const made = ROUTE_IDS.map((id) => [id, { rules: (routes[id] ?? []).map(rule), hide: false, ...more }] as const)
  return {
    operators: [{ issuer: 'corp', role: 'operator' }],
    // Every route id is a key; `fromEntries` forgets which keys there are.
    routes: Object.fromEntries(made) as unknown as Rules['routes'],
    sharing: true,
    nameAgents: Object.values(routes).some((of) => of.some(({ agents }) => agents instanceof Set)),
  }
}
