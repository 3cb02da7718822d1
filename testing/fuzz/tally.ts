/** Counts where cases ended, so that a generator that only makes rubbish shows. */
import type { RouteId } from '../../src/core/route/routes.ts'

/** What came of a case. */
export interface Finding {
  /** The route that was permitted and served, or why it was not. */
  readonly outcome: string
  /** One of the subject's groups. */
  readonly group: string
  readonly permitted: boolean
  /** What the upstream would have done, had the request reached it as it was written; undefined for nothing. */
  readonly asWritten: string | undefined
  /** How the property is broken; empty where it holds. */
  readonly faults: readonly string[]
}

/** What is fuzzed. */
export interface Subject<One> {
  /** Where counter-examples are kept. */
  readonly file: string
  /** Writes a case as it would stand in a test. */
  readonly source: (one: One) => string
  readonly routes: readonly RouteId[]
  readonly groups: { readonly title: string; readonly names: readonly string[] }
  /** What `asWritten` counts. */
  readonly averted: string
}

/** The counts of a run. */
export interface Tally {
  add(finding: Finding): void
  readonly cases: number
  /** How many cases the upstream was to serve, on any route. */
  readonly served: number
  /** How many cases on a route the upstream was to serve; all, or those of a group. */
  permitted(route: string, group?: string): number
  /** How many cases were refused for a reason. */
  refused(reason: string): number
  /** All as tables, a line each. */
  lines(): readonly string[]
}

/** Makes an empty one. */
export function makeTally({ routes, groups, averted: what }: Pick<Subject<never>, 'routes' | 'groups' | 'averted'>): Tally {
  const permitted = new Map<string, number>(routes.map((id) => [id, 0]))
  const refused = new Map<string, number>()
  const averted = new Map<string, number>()
  const byGroup = new Map(
    groups.names.map((name) => [name, { permitted: new Map<string, number>(), refused: new Map<string, number>() }] as const),
  )
  let cases = 0
  const count = (counts: Map<string, number>, name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1)
  return {
    add({ outcome, group, permitted: isPermitted, asWritten }) {
      cases += 1
      count(isPermitted ? permitted : refused, outcome)
      const ofGroup = byGroup.get(group)
      if (ofGroup !== undefined) count(isPermitted ? ofGroup.permitted : ofGroup.refused, outcome)
      if (!isPermitted && asWritten !== undefined) count(averted, outcome)
    },
    get cases() {
      return cases
    },
    get served() {
      return sum(permitted)
    },
    permitted: (route, group) => (group === undefined ? permitted : byGroup.get(group)?.permitted)?.get(route) ?? 0,
    refused: (reason) => refused.get(reason) ?? 0,
    lines: () => [
      `${cases} cases, ${sum(permitted)} permitted, ${sum(refused)} refused, ${what} ${sum(averted)}`,
      `permitted and refused, by ${groups.title}:`,
      ...[...byGroup]
        .map(([name, of]) => [name, sum(of.permitted), sum(of.refused)] as const)
        .filter(([, some, others]) => some + others > 0)
        .map(([name, some, others]) => `${row(name, some)} ${String(others).padStart(8)}`),
      'permitted, by route:',
      ...descending(permitted).map(([name, times]) => row(name, times)),
      `refused, by reason (in brackets, ${what}):`,
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
