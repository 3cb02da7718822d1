/** Counts where cases ended, so that a generator that only makes rubbish shows. */
import { ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import { TRANSPORT_PAIRS, type Pair } from './case.ts'
import type { Finding } from './differential.ts'

/** The counts of a run. */
export interface Tally {
  add(finding: Finding): void
  readonly cases: number
  /** How many cases the upstream was to serve, on any route. */
  readonly served: number
  /** How many cases on a route the upstream was to serve; all, or those of a pair of transports. */
  permitted(route: string, pair?: Pair): number
  /** How many cases were refused for a reason. */
  refused(reason: string): number
  /** All as tables, a line each. */
  lines(): readonly string[]
}

/** Makes an empty one. */
export function makeTally(): Tally {
  const permitted = new Map<string, number>(ROUTE_IDS.map((id) => [id, 0]))
  const refused = new Map<string, number>()
  const averted = new Map<string, number>()
  const pairs = new Map(
    TRANSPORT_PAIRS.map((pair) => [pair, { permitted: new Map<string, number>(), refused: new Map<string, number>() }] as const),
  )
  let cases = 0
  const count = (counts: Map<string, number>, name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1)
  return {
    add({ outcome, pair, permitted: isPermitted, asWritten }) {
      cases += 1
      count(isPermitted ? permitted : refused, outcome)
      const ofPair = pairs.get(pair)
      if (ofPair !== undefined) count(isPermitted ? ofPair.permitted : ofPair.refused, outcome)
      if (!isPermitted && asWritten !== undefined) count(averted, outcome)
    },
    get cases() {
      return cases
    },
    get served() {
      return sum(permitted)
    },
    permitted: (route, pair) => (pair === undefined ? permitted : pairs.get(pair)?.permitted)?.get(route) ?? 0,
    refused: (reason) => refused.get(reason) ?? 0,
    lines: () => [
      `${cases} cases, ${sum(permitted)} permitted, ${sum(refused)} refused, of which the runtime would have served ${sum(averted)}`,
      'permitted and refused, by transport of the caller and of the upstream:',
      ...[...pairs]
        .map(([pair, ofPair]) => [pair, sum(ofPair.permitted), sum(ofPair.refused)] as const)
        .filter(([, some, others]) => some + others > 0)
        .map(([pair, some, others]) => `${row(pair, some)} ${String(others).padStart(8)}`),
      'permitted, by route:',
      ...descending(permitted).map(([name, times]) => row(name, times)),
      'refused, by reason (in brackets how many of them the runtime would have served):',
      ...descending(refused).map(([name, times]) => `${row(name, times)} (${averted.get(name) ?? 0})`),
    ],
  }
}

function descending(counts: ReadonlyMap<string, number>): readonly (readonly [name: string, times: number])[] {
  return [...counts].sort(([, a], [, b]) => b - a)
}

function row(name: string, times: number): string {
  return `  ${name.padEnd(30)}${String(times).padStart(8)}`
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((all, times) => all + times, 0)
}
