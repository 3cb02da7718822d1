/** What all workers report together: metrics, and conditions for /readyz. */
import { joined, type Figures, type Metrics } from '../../observe/metrics.ts'
import type { Readiness } from '../../http/listeners/readiness.ts'
import type { Conditions } from './messages.ts'

interface JoinedMetrics extends Metrics {
  /** Keeps the counts of a worker that is gone: a falling sum would look like a restart of everything. */
  keep(figures: Figures): void
}

/** Metrics that only count up; a worker that is gone has no state. */
const COUNTED: ReadonlySet<unknown> = new Set(['counter', 'histogram', 'summary'])

export function joinMetrics(own: Metrics, ask: () => Promise<readonly Figures[]>): JoinedMetrics {
  let kept: Figures = []
  return {
    ...own,
    keep(figures) {
      const counted = figures.filter(({ type }) => COUNTED.has(type))
      kept = joined([kept, counted]).getMetricsAsArray()
    },
    async expose() {
      const registry = joined([await own.figures(), ...(await ask()), kept])
      return { type: registry.contentType, text: await registry.metrics() }
    },
  }
}

/** Ready when all workers are: what one worker waits for, all wait for. */
export function joinReadiness(own: Readiness, workers: () => readonly Conditions[]): Readiness {
  const all = (of: (one: Conditions) => ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
    new Map([...workers().flatMap((one) => [...of(one)]), ...of({ pending: own.pending(), notes: own.notes() })])
  return { ...own, pending: () => all(({ pending }) => pending), notes: () => all(({ notes }) => notes) }
}

export function reportedReadiness(own: Readiness, send: (conditions: Conditions) => void): Readiness {
  const report = (): void => send({ pending: new Map(own.pending()), notes: new Map(own.notes()) })
  return {
    ...own,
    set(name, pending) {
      own.set(name, pending)
      report()
    },
    note(name, text) {
      own.note(name, text)
      report()
    },
  }
}
