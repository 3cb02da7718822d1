/** The part `requests`: what a request costs through the whole gateway, and through what one would otherwise put there. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { thisMachine } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import { startHelper, type Helper } from './processes.ts'
import { LOAD_NAMES, LOADS } from './requests/loads.ts'
import { measureLoad, type RunningRow } from './requests/measuring.ts'
import { requestsTable } from './requests/report.ts'
import type { MeasuredLoad, RequestsResult } from './requests/result.ts'
import type { Row } from './requests/row.ts'
import { rowsOf } from './requests/rows.ts'
import { makeIssuer } from './requests/tokens.ts'
import { makeScratch } from './scratch.ts'

/** That send at the same time. */
const CONNECTIONS = 32

/** To the upstream, at most: as many as the peers are given for so many callers. */
const UPSTREAM_CONNECTIONS = 256

/** Of a round. */
const SECONDS = 2

/** The part. */
export const requests: Part<RequestsResult> = {
  about: 'requests through the whole gateway, beside other proxies: CPU, throughput, latency, memory',
  run,
  table: requestsTable,
}

async function run({ load, also, only, rounds, seconds, keep, progress }: BenchOptions): Promise<RequestsResult> {
  const scratch = makeScratch(keep)
  const effort = { rounds, seconds: seconds ?? SECONDS, connections: CONNECTIONS }
  const rows = rowsOf(also, only).map((row) => ({ row, version: row.version() }))
  const running: RunningRow[] = []
  const helpers: Helper[] = []
  const helper = async (name: string): Promise<Helper> => {
    const started = await startHelper(join(import.meta.dirname, `requests/${name}.ts`))
    helpers.push(started)
    return started
  }
  try {
    const publicKeyFile = join(scratch.folder, 'issuer.pem')
    const token = makeIssuer(publicKeyFile)
    const upstream = await helper('stub-upstream')
    const generator = await helper('generator')
    const start = async (row: Row): Promise<void> => {
      const folder = join(scratch.folder, row.name)
      mkdirSync(folder)
      const setting = { folder, publicKeyFile, upstreamPort: upstream.port, connections: UPSTREAM_CONNECTIONS }
      running.push({ name: row.name, proxy: await row.start(setting) })
    }
    for (const { row, version } of rows) if (version !== null) await start(row)
    const measured: MeasuredLoad[] = []
    for (const name of LOAD_NAMES.filter((one) => load?.includes(one) ?? true)) {
      progress.begin(`${name}, rounds`, rounds + 1)
      const made = { name, requests: LOADS[name].make(token) }
      measured.push(...(await measureLoad(made, running, generator, { ...effort, tell: progress.at.bind(progress) })))
    }
    const told = rows.map(({ row: { name, title }, version }) => ({ name, title, version }))
    return { date: new Date().toISOString().slice(0, 10), machine: thisMachine(), ...effort, rows: told, measured }
  } finally {
    progress.end()
    await Promise.all([...running.map(({ proxy }) => proxy.stop()), ...helpers.map((one) => one.stop())])
    scratch.remove()
  }
}
