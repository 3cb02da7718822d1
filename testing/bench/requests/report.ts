/** The result as Markdown. */
import { described } from '../machine.ts'
import { counted, markdownTable, micros } from '../markdown.ts'
import { LOAD_NAMES, LOADS, type LoadName } from './loads.ts'
import type { Against, MeasuredLoad, RequestsResult, RowResult } from './result.ts'
import { OWN_ROWS, REFERENCE } from './rows.ts'

/** The cell of a value that the system does not provide. */
export const UNTOLD = '–'

export function requestsTable(result: RequestsResult): string {
  const loads = LOAD_NAMES.filter((name) => result.measured.some(({ load }) => load === name))
  return [head(result), ...loads.map((load) => loadTable(result, load))].join('\n\n')
}

function head({ date, machine, rounds, seconds, warmUp, connections, rows, measured }: RequestsResult): string {
  return [
    `${date}, on ${described(machine)}.`,
    ...rowVersions(rows),
    `${connections} connections; medians of ${rounds} rounds of ${seconds} s for each row, in turns, after a warm-up of ${warmUp} s.`,
    ...absentRows(rows),
    ...(measured.some(({ cpu }) => cpu === null) ? ['CPU and memory of other processes are available on Linux only.'] : []),
  ].join(' ')
}

/** The versions of the other rows, in one sentence or none. */
export function rowVersions(rows: readonly RowResult[]): readonly string[] {
  const others = rows.filter(({ name, version }) => version !== null && !OWN_ROWS.includes(name))
  return others.length > 0 ? [`${others.map(({ name, version }) => `${name} ${version}`).join(', ')}.`] : []
}

/** The rows that were not measured, in one sentence or none. */
export function absentRows(rows: readonly RowResult[]): readonly string[] {
  const absent = rows.filter(({ version }) => version === null).map(({ name }) => name)
  return absent.length > 0 ? [`Not installed, and not measured: ${absent.join(', ')}.`] : []
}

/** A ratio with its quartiles. */
export function ratioOf({ median, quartiles }: Against): string {
  return `× ${median.toFixed(2)} (${quartiles.map((one) => one.toFixed(2)).join(' to ')})`
}

function loadTable({ rows, measured }: RequestsResult, load: LoadName): string {
  const mine = measured.filter((one) => one.load === load)
  const lines = rows.flatMap((row) => mine.filter((one) => one.row === row.name).map((one) => cells(row, one)))
  return markdownTable(
    [LOADS[load].title, 'CPU µs', `against ${REFERENCE}`, 'cold', 'per second', 'p50 µs', 'p99 µs', 'MiB'],
    lines,
  )
}

function cells({ title }: RowResult, { cpu, against, coldAgainst, perSecond, p50, p99, memory }: MeasuredLoad): string[] {
  return [
    title,
    cpu === null ? UNTOLD : micros(cpu),
    against === null ? UNTOLD : ratioOf(against),
    coldAgainst === null ? UNTOLD : `× ${coldAgainst.toFixed(2)}`,
    counted(Number(perSecond.toPrecision(3))),
    micros(p50),
    micros(p99),
    memory === null ? UNTOLD : (memory / 2 ** 20).toFixed(0),
  ]
}
