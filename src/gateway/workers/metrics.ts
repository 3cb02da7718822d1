/** Joins the metrics of all workers into one endpoint. */
import { joined, type Figures, type Metrics } from '../../observe/metrics.ts'

export interface JoinedMetrics extends Metrics {
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
