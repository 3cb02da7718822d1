/** Histograms of durations. The library's own would hash its labels and allocate with every observation. */
import type { Histogram as LibraryHistogram, Registry } from 'prom-client'

export interface Series {
  readonly labels: Readonly<Record<string, string>>
  /** One for each bound, and one for longer durations. Not cumulative. */
  readonly counts: number[]
  sum: number
}

export interface Histogram {
  /** In seconds, ascending. */
  readonly bounds: readonly number[]
  /** By the value of the first label, then by that of the second; `''` where there is none. */
  readonly series: Map<string, Map<string, Series>>
  /** Begins a series. */
  add(first: string, second: string): Series
}

export interface HistogramConfiguration {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly [string] | readonly [string, string]
  readonly bounds: readonly number[]
}

export function registerHistogram(registry: Registry, { name, help, labelNames, bounds }: HistogramConfiguration): Histogram {
  const [firstName, secondName] = labelNames
  const series: Histogram['series'] = new Map()
  const values = (): readonly object[] => [...series.values()].flatMap((some) => [...some.values()].flatMap(valuesOf))
  const valuesOf = ({ labels, counts, sum }: Series): readonly object[] => {
    let count = 0
    const buckets = counts.map((more, at) => {
      count += more
      return { metricName: `${name}_bucket`, labels: { ...labels, le: bounds[at] ?? '+Inf' }, value: count }
    })
    const totals = [
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ]
    return [...buckets, ...totals]
  }
  const metric = { name, labelNames, get: () => ({ name, help, type: 'histogram', aggregator: 'sum', values: values() }) }
  // The library registers such an object itself when it aggregates, but its types do not say so.
  registry.registerMetric(metric as unknown as LibraryHistogram)
  return {
    bounds,
    series,
    add(first, second) {
      const labels = secondName === undefined ? { [firstName]: first } : { [firstName]: first, [secondName]: second }
      const added: Series = { labels, counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }
      const ofFirst = series.get(first)
      if (ofFirst === undefined) series.set(first, new Map([[second, added]]))
      else ofFirst.set(second, added)
      return added
    },
  }
}
