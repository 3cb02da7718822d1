/** The result as Markdown. */
import { described } from '../machine.ts'
import { counted, markdownTable, micros } from '../markdown.ts'
import { absentRows, rowVersions, UNTOLD } from '../requests/report.ts'
import { REFERENCE } from '../requests/rows.ts'
import type { ListsResult, MeasuredLists } from './result.ts'

export function listsTable(result: ListsResult): string {
  return [head(result), costs(result), others(result)].join('\n\n')
}

/**
 * What a list takes beyond passing its bytes on, in microseconds of CPU.
 * @returns null of what passes them on, and where one of both is not known
 */
export function beyondReference({ row, cpu }: MeasuredLists, measured: readonly MeasuredLists[]): number | null {
  const reference = measured.find((one) => one.row === REFERENCE)?.cpu ?? null
  return row === REFERENCE || cpu === null || reference === null ? null : cpu - reference
}

function head({ date, machine, rounds, seconds, list, rows, parse }: ListsResult): string {
  return [
    `${date}, on ${described(machine)}.`,
    ...rowVersions(rows),
    `A list of ${counted(list.threads)} threads, ${kibs(list.bytes)} KiB. One parse of it takes ${millis(parse)} ms of CPU.`,
    `Medians of ${rounds} rounds of ${seconds} s for each value, in turns, after one warm-up round.`,
    ...absentRows(rows),
  ].join(' ')
}

function costs({ rows, measured, parse }: ListsResult): string {
  const names = [
    'A list',
    'threads delivered',
    'KiB',
    'CPU ms',
    '× one parse',
    `more than ${REFERENCE}, ms`,
    '× one parse',
    'p50 ms',
  ]
  const times = (cpu: number | null): readonly string[] =>
    cpu === null ? [UNTOLD, UNTOLD] : [millis(cpu), `× ${(cpu / parse).toFixed(2)}`]
  return tableOf({ rows, measured }, names, (one) => [
    counted(one.given.threads),
    kibs(one.given.bytes),
    ...times(one.cpu),
    ...times(beyondReference(one, measured)),
    millis(one.p50),
  ])
}

function others({ rows, measured }: ListsResult): string {
  const names = ['GET of messages', 'alone: p50 µs', 'p99 µs', 'during lists: p50 µs', 'p99 µs', 'lists per second']
  return tableOf({ rows, measured }, names, ({ alone, beside }) => [
    micros(alone.p50),
    micros(alone.p99),
    micros(beside.p50),
    micros(beside.p99),
    beside.listsPerSecond.toFixed(0),
  ])
}

function tableOf(
  { rows, measured }: Pick<ListsResult, 'rows' | 'measured'>,
  names: readonly string[],
  cells: (one: MeasuredLists) => readonly string[],
): string {
  const lines = rows.flatMap(({ name, title }) => measured.filter(({ row }) => row === name).map((one) => [title, ...cells(one)]))
  return markdownTable(names, lines)
}

function millis(value: number): string {
  return (value / 1000).toFixed(1)
}

function kibs(bytes: number): string {
  return counted(Math.round(bytes / 1024))
}
