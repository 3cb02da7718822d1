/** The part `ownership`: what the ownership table costs a request, with few rows and with many, in both stores. */
import { join } from 'node:path'
import { thisMachine, today } from './machine.ts'
import { measureOn, type Bench } from './ownership/measuring.ts'
import { setUp } from './ownership/operations.ts'
import { populate, randomFrom } from './ownership/population.ts'
import { startBenchServer, type BenchServer } from './ownership/postgres-server.ts'
import { buildPostgresTable } from './ownership/postgres-table.ts'
import { ownershipTable } from './ownership/report.ts'
import type { OwnershipResult, Size } from './ownership/result.ts'
import { buildSqliteTable } from './ownership/sqlite-table.ts'
import type { StoreKind, Tell } from './ownership/table.ts'
import type { BenchOptions, Part } from './part.ts'
import { makeScratch } from './scratch.ts'

/** What tables are compared with. */
const SMALL = 10_000

/** The part. */
export const ownership: Part<OwnershipResult> = {
  about: 'look-ups, claims and lists in --store, with --rows rows and with 10000',
  run,
  table: ownershipTable,
}

/** For each number. */
const SECONDS = 3

async function run(options: BenchOptions): Promise<OwnershipResult> {
  const seconds = options.seconds ?? SECONDS
  const scratch = makeScratch(options.keep)
  const server = options.stores.includes('postgres') ? await startBenchServer(options.keep) : null
  const benches: Bench[] = []
  try {
    for (const store of options.stores) {
      for (const size of ['small', 'large'] as const) benches.push(await build(store, size, scratch.folder, server, options))
    }
    const operations = await measureOn(benches, { seconds, progress: options.progress })
    const versions = await Promise.all(benches.filter(({ built }) => built.size === 'large').map(({ table }) => table.version()))
    if (server !== null) versions.push(server.settings)
    const tables = benches.map(({ built }) => built)
    return { date: today(), machine: thisMachine(), versions, seconds, tables, operations }
  } finally {
    options.progress.end()
    for (const bench of benches) await bench.close()
    await server?.remove()
    scratch.remove()
  }
}

async function build(
  store: StoreKind,
  size: Size,
  folder: string,
  server: BenchServer | null,
  { rows, progress }: BenchOptions,
): Promise<Bench> {
  const population = populate(size === 'small' ? SMALL : rows)
  const began = performance.now()
  let current = ''
  const tell: Tell = (what, done, of) => {
    if (what !== current) progress.begin(`${store}, ${what}`, of)
    current = what
    progress.at(done)
  }
  const table =
    server !== null && store === 'postgres'
      ? await buildPostgresTable(await server.makeDatabase(), population, tell)
      : await buildSqliteTable(join(folder, `${size}.db`), population, tell)
  const buildSeconds = Math.round((performance.now() - began) / 1000)
  const built = { store, size, rows: population.total, bytes: await table.bytes(), buildSeconds }
  return { built, ...(await setUp(table, population, randomFrom(1))) }
}
