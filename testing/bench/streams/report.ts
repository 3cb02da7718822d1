/** The result as Markdown. */
import { counted, markdownTable } from '../markdown.ts'
import { described } from '../machine.ts'
import { absentRows, rowVersions, UNTOLD } from '../requests/report.ts'
import type { RowResult } from '../requests/result.ts'
import type { MeasuredStreams, StreamsResult } from './result.ts'

export function streamsTable(result: StreamsResult): string {
  const { date, machine, streams, rounds, seconds, rows, measured } = result
  const head = [
    `${date}, on ${described(machine)}.`,
    ...rowVersions(rows),
    `${counted(streams)} streams with one event a second each; ${span(rounds, seconds)}.`,
    ...absentRows(rows),
  ].join(' ')
  const names = ['Row', 'open', 'cut', 'events', 'of', 'p50 ms', 'p99 ms', 'KiB per stream', 'CPU µs per event']
  const lines = rows.flatMap((row) => measured.filter((one) => one.row === row.name).map((one) => cells(row, one)))
  return [head, markdownTable(names, lines)].join('\n\n')
}

function span(rounds: number, seconds: number): string {
  return rounds === 1
    ? `one round of ${seconds} s for each row`
    : `medians of ${rounds} rounds of ${seconds} s for each row, in turns`
}

function cells({ title }: RowResult, { opened, cut, events, expected, p50, p99, memoryEach, cpu }: MeasuredStreams): string[] {
  const figure = (value: number | null, digits: number): string => value?.toFixed(digits) ?? UNTOLD
  const counts = [opened, cut, events, expected].map(counted)
  return [title, ...counts, figure(p50, 1), figure(p99, 1), figure(memoryEach && memoryEach / 1024, 0), figure(cpu, 0)]
}
