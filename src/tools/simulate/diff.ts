/** Which decisions differ between two policies, over a matrix that is made from both. */
import type { Config } from '../../config/schema.ts'
import { ROUTE_IDS, type RouteId } from '../../core/route/routes.ts'
import type { Rule } from '../../core/decide/rules.ts'
import type { Policy } from '../../policy/policy.ts'
import { agentsOf, cellsOf, type Cell } from './matrix.ts'
import { peopleFor, type People } from './people.ts'
import { isAlike, verdictOf, type Verdict } from './verdict.ts'
import { largest } from '../../core/json/extremes.ts'

/** Requests that come out differently, and all in the same way. */
export interface Difference {
  /** `POST agent/run` */
  readonly routes: readonly string[]
  /** Empty on routes about no thread. */
  readonly threads: readonly string[]
  /** Empty on routes about no agent. */
  readonly agents: readonly string[]
  /** By what they are. */
  readonly callers: readonly string[]
  readonly before: Verdict
  readonly after: Verdict
}

/** What was compared, and what came of it. */
export interface Comparison {
  readonly decisions: number
  readonly callers: number
  readonly agents: number
  /** What was left out because it would have been too much. */
  readonly cut: readonly ('callers' | 'agents')[]
  readonly differences: readonly Difference[]
}

/** Bounds of one comparison. */
export interface Bounds {
  readonly decisions: number
  readonly agents: number
}

/** By default. */
export const BOUNDS: Bounds = { decisions: 200_000, agents: 200 }

/** Compares two policies under the configuration's issuers, mode and facts. */
export function compare(before: Policy, after: Policy, config: Config, bounds: Bounds = BOUNDS): Comparison {
  const policies = [before, after]
  const named = agentsOf(policies)
  const agents = named.slice(0, bounds.agents)
  const parts = partsOf(policies, agents, config, bounds)
  const found = new Map<string, Mutable>()
  const usual = new Set<string>()
  for (const { people, cells } of parts) {
    for (const { label, principal, isOdd } of [...people].sort((one, other) => Number(one.isOdd) - Number(other.isOdd))) {
      for (const cell of cells) {
        const [one, other] = policies.map((policy) => verdictOf(cell, principal, policy, agents, config)) as [Verdict, Verdict]
        if (isAlike(one, other)) continue
        // Claims that nobody can read are worth a word where they change what is so for others.
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
    decisions: parts.reduce((sum, { people, cells }) => sum + people.length * cells.length, 0),
    callers: largest(parts.map(({ people }) => people.length)),
    agents: agents.length,
    cut: [
      ...(parts.some(({ cut }) => cut) ? ['callers' as const] : []),
      ...(agents.length < named.length ? ['agents' as const] : []),
    ],
    differences: differences.sort((one, other) => weight(one) - weight(other)),
  }
}

interface Part extends People {
  readonly cells: readonly Cell[]
}

/** The whole matrix with the same callers everywhere, or where that is too much, each route with those that its rules tell apart. */
function partsOf(policies: readonly Policy[], agents: readonly string[], config: Config, { decisions }: Bounds): readonly Part[] {
  const cells = cellsOf(
    agents,
    policies.some(({ rules }) => rules.sharing),
  )
  const operators = policies.flatMap(({ rules }) => rules.operators)
  const all = peopleFor(rulesAbout(ROUTE_IDS, policies), operators, config, Math.floor(decisions / cells.length))
  if (!all.cut) return [{ ...all, cells }]
  return ROUTE_IDS.map((id) => {
    const own = cells.filter(({ descriptor }) => descriptor.route.id === id)
    // What /info tells of agents hangs on who may use them.
    const rules = rulesAbout(id === 'info' ? ['info', 'agent/run', 'agent/connect'] : [id], policies)
    const most = Math.max(1, Math.floor(decisions / ROUTE_IDS.length / own.length))
    return { ...peopleFor(rules, operators, config, most), cells: own }
  })
}

function rulesAbout(ids: readonly RouteId[], policies: readonly Policy[]): readonly Rule[] {
  return [...new Set(policies.flatMap(({ rules }) => ids.flatMap((id) => rules.routes[id].rules)))]
}

/** A verdict with that alone in which it differs from another. */
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

/** Makes one of those that differ in one respect alone. */
function merged(differences: readonly Difference[], respect: 'routes' | 'threads' | 'agents'): Difference[] {
  const groups = new Map<string, Difference>()
  for (const one of differences) {
    const key = JSON.stringify({ ...one, [respect]: one[respect].length > 0 })
    const known = groups.get(key)
    groups.set(key, known === undefined ? one : { ...known, [respect]: [...known[respect], ...one[respect]] })
  }
  return [...groups.values()]
}

/** What is opened comes first, then what is closed. */
function weight({ before, after }: Difference): number {
  if (before.outcome === after.outcome) return 2
  return after.outcome === 'permitted' ? 0 : 1
}
