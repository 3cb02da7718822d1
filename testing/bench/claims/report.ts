/** The result as Markdown. */
import { described } from '../machine.ts'
import { counted, markdownTable, micros } from '../markdown.ts'
import { ratioOf } from '../requests/report.ts'
import type { ClaimsResult } from './result.ts'

export function claimsTable({ date, machine, rounds, seconds, rows, measured }: ClaimsResult): string {
  const head = `${date}, on ${described(machine)}. Medians of ${rounds} rounds of ${seconds} s for each row, in turns.`
  const lines = rows.flatMap(({ name, title }) =>
    measured
      .filter(({ row }) => row === name)
      .map(({ connections, perSecond, p50, sync, against }) => [
        title,
        String(connections),
        counted(Number(perSecond.toPrecision(3))),
        micros(p50),
        micros(sync),
        ratioOf(against),
      ]),
  )
  const columns = ['Row', 'connections', 'first runs per second', 'p50 µs', 'one fsync µs', 'time for each, of one fsync']
  return `${head}\n\n${markdownTable(columns, lines)}`
}
