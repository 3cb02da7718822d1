/** The result as Markdown. */
import { described } from '../machine.ts'
import { markdownTable, micros } from '../markdown.ts'
import { LOADS } from '../requests/loads.ts'
import { median } from '../requests/measuring.ts'
import { SIGNALS, type MeasuredSignals, type Signal, type SignalsResult } from './result.ts'

const TITLES: Readonly<Record<Signal, string>> = {
  none: 'nothing recorded',
  metrics: 'metrics',
  audit: 'metrics, and the audit to a file',
  traces: 'metrics, and traces of 10 % of the requests',
}

export function signalsTable({ date, machine, rounds, seconds, starts, connections, measured }: SignalsResult): string {
  const head = [
    `${date}, on ${described(machine)}.`,
    `${starts} processes, one after the other; ${rounds} rounds of ${seconds} s for each row, in turns; ${connections} connections.`,
  ]
  return [head.join(' '), ...measured.map(loadTable)].join('\n\n')
}

function loadTable({ load, cpus }: MeasuredSignals): string {
  const lines = SIGNALS.map((signal) => {
    const own = micros(median(cpus.map((round) => round[signal])))
    const against = (other: Signal): string => ratioCell(cpus.map((round) => round[signal] / round[other]))
    const ofMetrics = signal === 'none' || signal === 'metrics' ? '' : against('metrics')
    return [TITLES[signal], own, signal === 'none' ? '' : against('none'), ofMetrics]
  })
  return markdownTable([LOADS[load].title, 'CPU µs', 'against nothing recorded', 'against metrics'], lines)
}

function ratioCell(ratios: readonly number[]): string {
  const [low, high] = medianInterval(ratios)
  return `× ${median(ratios).toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`
}

/** Between which the median is with a certainty of 95 %: the ranks of the binomial distribution, in its normal approximation. */
export function medianInterval(values: readonly number[]): readonly [number, number] {
  const sorted = values.toSorted((one, other) => one - other)
  const half = sorted.length / 2
  const away = 0.98 * Math.sqrt(sorted.length)
  const at = (rank: number): number => sorted[Math.min(sorted.length - 1, Math.max(0, rank))] ?? Number.NaN
  return [at(Math.floor(half - away)), at(Math.ceil(half + away) - 1)]
}
