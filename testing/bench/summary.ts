/** The few figures of docs/explanation/performance.md and of docs/how-to/operate/capacity.md, made of the kept results. */
import { described } from './machine.ts'
import { counted, markdownTable, micros } from './markdown.ts'
import type { OwnershipResult } from './ownership/result.ts'
import { LOADS, type LoadName } from './requests/loads.ts'
import { ratioOf, UNTOLD } from './requests/report.ts'
import type { RequestsResult } from './requests/result.ts'
import { REFERENCE } from './requests/rows.ts'
import type { StreamsResult } from './streams/result.ts'

const GATEWAY = 'gateway'

const USUAL: readonly LoadName[] = ['get', 'run']
const COSTLY: readonly LoadName[] = ['mix', 'run-1mb', 'list']

/** What a request and a stream cost, beside the proxy. */
export function summary(requests: RequestsResult, streams: StreamsResult): string {
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

function memoryOf({ measured }: StreamsResult): readonly string[] {
  const memory = (name: string): number | null => measured.find(({ row }) => row === name)?.memoryEach ?? null
  const [own, reference] = [memory(GATEWAY), memory(REFERENCE)]
  return [
    'Memory, one open event stream',
    own === null ? UNTOLD : `${(own / 1024).toFixed(0)} KiB`,
    own === null || reference === null ? UNTOLD : `× ${(own / reference).toFixed(2)}`,
  ]
}

const SIZED: readonly LoadName[] = ['get', 'run', 'mix', 'run-1mb', 'list']

/** What one core, a gibibyte of memory and a gibibyte of disk are enough for. */
export function sizing(requests: RequestsResult, streams: StreamsResult, ownership: OwnershipResult): string {
  const own = requests.measured.filter(({ row }) => row === GATEWAY)
  const perSecond = SIZED.map((load) => {
    const { cpu = null } = own.find((one) => one.load === load) ?? {}
    return [LOADS[load].title, cpu === null ? UNTOLD : `${counted(rounded(1e6 / cpu))} per second`]
  })
  const { memoryEach = null, cpu: ofEvent = null } = streams.measured.find(({ row }) => row === GATEWAY) ?? {}
  const opened = [
    ['Open streams in 1 GiB of memory', memoryEach === null ? UNTOLD : counted(rounded(GIBIBYTE / memoryEach))],
    ['Events of streams', ofEvent === null ? UNTOLD : `${counted(rounded(1e6 / ofEvent))} per second`],
  ]
  const rows = ownership.tables
    .filter(({ size }) => size === 'large')
    .map(({ store, rows: count, bytes }) => [
      `Threads in 1 GiB of ${STORES[store]}`,
      counted(rounded((count * GIBIBYTE) / bytes)),
    ])
  return markdownTable(['What', 'Enough for'], [...perSecond, ...opened, ...rows])
}

const GIBIBYTE = 2 ** 30

const STORES: Readonly<Record<OwnershipResult['tables'][number]['store'], string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

/** Two digits: more would be noise. */
function rounded(value: number): number {
  return Number(value.toPrecision(2))
}
