/** The result as a picture. */
import { micros } from '../markdown.ts'
import { barChart } from '../plot.ts'
import { LOAD_NAMES, LOADS } from './loads.ts'
import type { RequestsResult } from './result.ts'
import { kindOf, REFERENCE } from './rows.ts'

/** CPU for each request against the reference, load by load. Without the reference, or where no CPU is told, there is none. */
export function requestsPlot({ rows, measured }: RequestsResult): string {
  const groups = LOAD_NAMES.map((load) => {
    const mine = measured.filter((one) => one.load === load)
    const bars = rows.flatMap(({ name, title }) => {
      const { cpu = null, against = null } = mine.find(({ row }) => row === name) ?? {}
      if (cpu === null || against === null) return []
      const value = against.median
      return [{ label: title, value, text: `× ${value.toFixed(2)}  (${micros(cpu)} µs)`, kind: kindOf(name) }]
    })
    return { title: LOADS[load].title, bars }
  })
  return barChart({
    title: `CPU for each request, against ${REFERENCE}: less is better`,
    groups: groups.filter(({ bars }) => bars.length > 0),
  })
}
