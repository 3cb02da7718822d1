/** Finds the decisions that differ between two policies, over a matrix made from both. */
import type { Config } from '../../config/schema.ts'
import { ROUTE_IDS } from '../../core/route/all-routes.ts'
import type { RouteId } from '../../core/route/routes.ts'
import type { Rule } from '../../core/decide/rules.ts'
import type { Policy } from '../../policy/compile.ts'
import { agentsOf, cellsOf, type Cell, isAlike, verdictOf, type Verdict } from './matrix.ts'
import { callersFor, combinationCount, type SampleCallers } from './sample-callers.ts'
import { largest } from '../../core/json/extremes.ts'

export interface Difference {
  /** `POST agent/run` */
  readonly routes: readonly string[]
  /** Empty on routes without a thread. */
  readonly threads: readonly string[]
  /** Empty on routes without an agent. */
  readonly agents: readonly string[]
  readonly callers: readonly string[]
  readonly before: Verdict
  readonly after: Verdict
}

export interface Comparison {
  readonly decisions: number
  readonly callers: number
  readonly agents: number
  readonly cut: readonly ('callers' | 'agents')[]
  readonly differences: readonly Difference[]
}

export interface Bounds {
  readonly decisions: number
  readonly agents: number
}

export const BOUNDS: Bounds = { decisions: 200_000, agents: 200 }

export function compare(before: Policy, after: Policy, config: Config, bounds: Bounds = BOUNDS): Comparison {
  const policies = [before, after]
  const named = agentsOf(policies)
  const agents = named.slice(0, bounds.agents)
  const parts = partsOf(policies, agents, config, bounds)
  const found = new Map<string, Mutable>()
  const usual = new Set<string>()
  for (const { callers, cells } of parts) {
    for (const { label, principal, isOdd } of [...callers].sort((one, other) => Number(one.isOdd) - Number(other.isOdd))) {
      for (const cell of cells) {
        const [one, other] = policies.map((policy) => verdictOf(cell, principal, policy, agents, config)) as [Verdict, Verdict]
        if (isAlike(one, other)) continue
        // Unreadable claims are reported only where their change differs from that of other callers.
        const change = JSON.stringify([nameOf(cell), one.outcome, other.outcome])
        if (isOdd && usual.has(change)) continue
        if (!isOdd) usual.add(change)
        const difference = { ...nameOf(cell), before: apart(one, other), after: apart(other, one) }
        const key = JSON.stringify(difference)
        const known = found.get(key)
        if (known === undefined) found.set(key, { ...difference, callers: [label] })
        else known.callers.push(label)
      }
    }
  }
  const differences = merged(merged(merged([...found.values()], 'agents'), 'threads'), 'routes')
  return {
    decisions: parts.reduce((sum, { callers, cells }) => sum + callers.length * cells.length, 0),
    callers: largest(parts.map(({ callers }) => callers.length)),
    agents: agents.length,
    cut: [
      ...(parts.some(({ cut }) => cut) ? ['callers' as const] : []),
      ...(agents.length < named.length ? ['agents' as const] : []),
    ],
    differences: differences.sort((one, other) => weight(one) - weight(other)),
  }
}

interface Part extends SampleCallers {
  readonly cells: readonly Cell[]
}

/**
 * Where the whole matrix is too large, each route gets only the callers that its rules distinguish. Routes with the fewest decisions
 * come first and leave the others what they do not need of their share.
 */
function partsOf(policies: readonly Policy[], agents: readonly string[], config: Config, { decisions }: Bounds): readonly Part[] {
  const cells = cellsOf(agents, { sharing: policies.some(({ rules }) => rules.sharing) })
  const operators = policies.flatMap(({ rules }) => rules.operators)
  const all = callersFor(rulesAbout(ROUTE_IDS, policies), operators, config, Math.floor(decisions / cells.length))
  if (!all.cut) return [{ ...all, cells }]
  const routes = ROUTE_IDS.map((id) => {
    const own = cells.filter(({ descriptor }) => descriptor.route.id === id)
    // The agents in the answer of /info depend on who may use them.
    const rules = rulesAbout(id === 'info' ? ['info', 'agent/run', 'agent/connect'] : [id], policies)
    return { rules, cells: own, needed: combinationCount(rules, operators, config) * own.length }
  })
  const parts = new Map<object, Part>()
  let left = decisions
  for (const route of routes.toSorted((one, other) => one.needed - other.needed)) {
    const { rules, cells: own } = route
    const most = Math.max(1, Math.floor(left / (routes.length - parts.size) / own.length))
    const part = callersFor(rules, operators, config, most)
    left -= part.callers.length * own.length
    parts.set(route, { ...part, cells: own })
  }
  // Differences are told in the order of the routes.
  return routes.flatMap((route) => parts.get(route) ?? [])
}

function rulesAbout(ids: readonly RouteId[], policies: readonly Policy[]): readonly Rule[] {
  return [...new Set(policies.flatMap(({ rules }) => ids.flatMap((id) => rules.routes[id].rules)))]
}

/** Keeps only the parts of a verdict that differ from the other. */
function apart(verdict: Verdict, other: Verdict): Verdict {
  if (verdict.outcome === 'refused') return verdict
  if (other.outcome === 'refused') return { ...verdict, passes: {} }
  const names = Object.keys({ ...verdict.passes, ...other.passes }).filter((name) => verdict.passes[name] !== other.passes[name])
  return { ...verdict, passes: Object.fromEntries(names.map((name) => [name, verdict.passes[name] ?? 'none'])) }
}

type Mutable = { -readonly [Key in keyof Difference]: Difference[Key] extends readonly string[] ? string[] : Difference[Key] }

function nameOf({ descriptor: { route, ids }, ownership }: Cell) {
  return {
    routes: [`${route.method} ${route.id}`],
    threads: ownership === null ? [] : [ownership as string],
    agents: ids.agentId === undefined ? [] : [ids.agentId],
  }
}

function merged(differences: readonly Difference[], respect: 'routes' | 'threads' | 'agents'): Difference[] {
  const groups = new Map<string, Difference>()
  for (const one of differences) {
    const key = JSON.stringify({ ...one, [respect]: one[respect].length > 0 })
    const known = groups.get(key)
    groups.set(key, known === undefined ? one : { ...known, [respect]: [...known[respect], ...one[respect]] })
  }
  return [...groups.values()]
}

/** Newly permitted requests come first, then newly refused ones. */
function weight({ before, after }: Difference): number {
  if (before.outcome === after.outcome) return 2
  return after.outcome === 'permitted' ? 0 : 1
}
