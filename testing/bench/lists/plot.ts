/** The result as a picture. */
import { counted, micros } from '../markdown.ts'
import { barChart, type Bar } from '../plot.ts'
import { kindOf } from '../requests/rows.ts'
import type { ListsResult, MeasuredLists } from './result.ts'

/** CPU of a list against parsing it, where it is told, and how long other requests take, alone and meanwhile. */
export function listsPlot({ list, rows, measured, parse }: ListsResult): string {
  const bars = (figure: (one: MeasuredLists) => number | null, text: (value: number) => string): readonly Bar[] =>
    rows.flatMap(({ name, title }) => {
      const one = measured.find(({ row }) => row === name)
      const value = one === undefined ? null : figure(one)
      return value === null ? [] : [{ label: title, value, text: text(value), kind: kindOf(name) }]
    })
  const ratio = (value: number): string => `× ${(value / parse).toFixed(2)}  (${(value / 1000).toFixed(1)} ms)`
  const cpu = bars(({ cpu: value }) => value, ratio)
  // Here it is parsing that everything is held against: passing the bytes on takes next to nothing.
  const held = cpu.map((bar) => ({ ...bar, kind: bar.kind === 'reference' ? ('other' as const) : bar.kind }))
  const parsing: Bar = { label: 'JSON.parse, once', value: parse, text: ratio(parse), kind: 'reference' }
  const time = (value: number): string => `${micros(value)} µs`
  const groups = [
    { title: 'CPU for each list', bars: cpu.length === 0 ? [] : [...held, parsing] },
    { title: 'GET of messages, p99, alone', bars: bars(({ alone }) => alone.p99, time) },
    { title: 'GET of messages, p99, during lists', bars: bars(({ beside }) => beside.p99, time) },
  ]
  return barChart({
    title: `Lists of ${counted(list.threads)} threads: less is better`,
    groups: groups.filter(({ bars: some }) => some.length > 0),
  })
}
