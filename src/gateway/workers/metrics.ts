/** One endpoint for the figures of all workers. */
import { joined, type Figures, type Metrics } from '../../observe/metrics.ts'

/** The figures of the primary and its workers. */
export interface JoinedMetrics extends Metrics {
  /** Keeps what a worker had counted that is gone: a sum that falls would look like a restart of everything. */
  keep(figures: Figures): void
}

/** What only counts up; of a worker that is gone there is no state. */
const COUNTED: ReadonlySet<unknown> = new Set(['counter', 'histogram', 'summary'])

/** @param ask gives the figures of those that live */
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
