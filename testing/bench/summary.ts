/** The few figures of docs/explanation/performance.md, made of the kept results. */
import { described } from './machine.ts'
import { markdownTable, micros } from './markdown.ts'
import { LOADS, type LoadName } from './requests/loads.ts'
import { UNTOLD } from './requests/report.ts'
import type { Against, RequestsResult } from './requests/result.ts'
import { REFERENCE } from './requests/rows.ts'
import type { StreamsResult } from './streams/result.ts'

const GATEWAY = 'gateway'

const BEGIN = '<!-- performance: written by npm run bench -- --read --page -->'
const END = '<!-- end of performance -->'

const USUAL: readonly LoadName[] = ['get', 'run']
const COSTLY: readonly LoadName[] = ['mix', 'run-1mb', 'list']

/** @throws an Error if the page has no place for the summary */
export function withSummary(page: string, requests: RequestsResult, streams: StreamsResult): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`docs/explanation/performance.md has no place for the summary: ${BEGIN} … ${END}`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${summary(requests, streams)}\n\n${page.slice(to)}`
}

function summary(requests: RequestsResult, streams: StreamsResult): string {
  return [
    `Measured ${measuredOn(requests)}.`,
    tableOf([...USUAL.map((load) => cpuOf(requests, load)), memoryOf(streams)]),
    'These cost more:',
    tableOf(COSTLY.map((load) => cpuOf(requests, load))),
  ].join('\n\n')
}

function measuredOn({ date, machine }: RequestsResult): string {
  return `${date} on ${described(machine)}`
}

function tableOf(rows: readonly (readonly string[])[]): string {
  return markdownTable(['What', 'Threadwarden', `Multiple of ${REFERENCE}`], rows)
}

function cpuOf({ measured }: RequestsResult, load: LoadName): readonly string[] {
  const one = measured.find(({ row, load: of }) => row === GATEWAY && of === load)
  const { cpu = null, against = null } = one ?? {}
  return [`CPU, ${LOADS[load].title}`, cpu === null ? UNTOLD : `${micros(cpu)} µs`, against === null ? UNTOLD : ratioOf(against)]
}

function ratioOf({ median, quartiles }: Against): string {
  return `× ${median.toFixed(2)} (${quartiles.map((one) => one.toFixed(2)).join(' to ')})`
}

function memoryOf({ measured }: StreamsResult): readonly string[] {
  const memory = (name: string): number | null => measured.find(({ row }) => row === name)?.memoryEach ?? null
  const [own, reference] = [memory(GATEWAY), memory(REFERENCE)]
  return [
    'Memory, one open event stream',
    own === null ? UNTOLD : `${(own / 1024).toFixed(0)} KiB`,
    own === null || reference === null ? UNTOLD : `× ${(own / reference).toFixed(2)}`,
  ]
}
