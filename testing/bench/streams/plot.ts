/** The result as a picture. */
import { counted } from '../markdown.ts'
import { barChart, type Bar } from '../plot.ts'
import { kindOf } from '../requests/rows.ts'
import type { MeasuredStreams, StreamsResult } from './result.ts'

/** Latency and memory, and CPU where it is told. */
export function streamsPlot({ streams, rows, measured }: StreamsResult): string {
  const bars = (figure: (one: MeasuredStreams) => number | null, digits: number, unit: string): readonly Bar[] =>
    rows.flatMap(({ name, title }) => {
      const one = measured.find(({ row }) => row === name)
      const value = one === undefined ? null : figure(one)
      return value === null ? [] : [{ label: title, value, text: `${value.toFixed(digits)} ${unit}`, kind: kindOf(name) }]
    })
  const groups = [
    { title: 'latency from the upstream to the client, median', bars: bars(({ p50 }) => p50, 1, 'ms') },
    { title: 'memory for each stream', bars: bars(({ memoryEach }) => memoryEach && memoryEach / 1024, 0, 'KiB') },
    { title: 'CPU for each event', bars: bars(({ cpu }) => cpu, 0, 'µs') },
  ]
  return barChart({
    title: `${counted(streams)} open streams with an event a second each: less is better`,
    groups: groups.filter(({ bars: some }) => some.length > 0),
  })
}
