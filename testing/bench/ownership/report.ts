/** The result as Markdown. */
import { described } from '../machine.ts'
import { counted, markdownTable, micros } from '../markdown.ts'
import type { MeasuredOperation, OwnershipResult } from './result.ts'
import { STORES, type StoreKind } from './table.ts'

const NAMES: Readonly<Record<StoreKind, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

export function ownershipTable(result: OwnershipResult): string {
  const { date, machine, versions, seconds } = result
  const head = `${date}, on ${described(machine)}. ${versions.join('; ')}. ${seconds} s for each value, in alternating rounds.`
  const stores = STORES.filter((store) => result.tables.some((table) => table.store === store))
  return [head, tablesTable(result), ...stores.map((store) => operationsTable(result, store))].join('\n\n')
}

function tablesTable({ tables }: OwnershipResult): string {
  const rows = tables.map(({ store, rows, bytes, buildSeconds }) => [
    NAMES[store],
    counted(rows),
    bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(0)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`,
    (bytes / rows).toFixed(0),
    `${buildSeconds} s`,
  ])
  return markdownTable(['Table', 'Rows', 'Size on disk, with indexes', 'Bytes per row', 'Built in'], rows)
}

function operationsTable({ tables, operations }: OwnershipResult, store: StoreKind): string {
  const [small, large] = (['small', 'large'] as const).map((size) =>
    tables.find((one) => one.store === store && one.size === size),
  )
  const mine = operations.filter((one) => one.store === store)
  const rows = mine
    .filter(({ size }) => size === 'large')
    .map((one) => {
      const before = mine.find(({ operation, size }) => operation === one.operation && size === 'small')
      return [one.title, ...cells(one), before === undefined ? '' : `× ${ratio(one.p50 / before.p50)}`]
    })
  const server = store === 'postgres' ? ['server'] : []
  const head = [
    `${NAMES[store]}, ${counted(large?.rows ?? 0)} rows`,
    'p50 µs',
    'p99 µs',
    'CPU µs',
    ...server,
    'per second',
    'statements',
    `p50 against ${counted(small?.rows ?? 0)} rows`,
  ]
  return markdownTable(head, rows)
}

function cells({ store, p50, p99, cpu, otherCpu, perSecond, statements }: MeasuredOperation): string[] {
  const server = store === 'postgres' ? [otherCpu === null ? '–' : micros(otherCpu)] : []
  return [micros(p50), micros(p99), micros(cpu), ...server, counted(Number(perSecond.toPrecision(2))), String(statements)]
}

function ratio(value: number): string {
  return value < 10 ? value.toFixed(1) : value.toFixed(0)
}
