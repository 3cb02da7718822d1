/** The parts `requests` and `langgraph`: the cost of a request through the gateway and through other proxies. */
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import { LOADS, LOADS_OF, type LoadName } from './requests/loads.ts'
import { measureLoad, type RunningRow } from './requests/measuring.ts'
import { requestsPlot } from './requests/plot.ts'
import { requestsTable } from './requests/report.ts'
import type { MeasuredLoad, RequestsResult } from './requests/result.ts'
import type { Row } from './requests/row.ts'
import { REFERENCE, rowsOf } from './requests/rows.ts'
import { makeStarter } from './requests/starting.ts'
import { makeScratch } from './scratch.ts'

/** That send at the same time. */
const CONNECTIONS = 32

/** To the upstream: more than there are callers. */
const UPSTREAM_CONNECTIONS = 256

/** That count. */
const ROUNDS = 5

/** Of a round. */
const SECONDS = 2

export const requests: Part<RequestsResult> = {
  about: 'requests through the gateway and other proxies: CPU, throughput, latency, memory',
  run: (options) => measure(LOADS_OF.requests, options),
  table: requestsTable,
  plot: requestsPlot,
}

export const langgraph: Part<RequestsResult> = {
  about: 'the same for requests to a LangGraph server',
  run: (options) => measure(LOADS_OF.langgraph, options),
  table: requestsTable,
}

async function measure(names: readonly LoadName[], options: BenchOptions): Promise<RequestsResult> {
  const { load, also, only, rounds: wanted, seconds, warmUp, keep, progress } = options
  const scratch = makeScratch(keep)
  const starter = makeStarter(scratch.folder, UPSTREAM_CONNECTIONS)
  const rounds = wanted ?? ROUNDS
  const effort = { rounds, seconds: seconds ?? SECONDS, warmUp, connections: CONNECTIONS }
  const rows = rowsOf(also, only).map((row) => ({ row, version: row.version() }))
  try {
    const upstream = await starter.helper('requests/stub-upstream.ts')
    const generator = await starter.helper('requests/generator.ts')
    const running: (RunningRow & Pick<Row, 'loads'>)[] = []
    for (const { row, version } of rows) if (version !== null) running.push({ ...row, ...(await starter.row(row, upstream)) })
    const measured: MeasuredLoad[] = []
    for (const name of names.filter((one) => load?.includes(one) ?? true)) {
      progress.begin(`${name}, rounds`, rounds + 1)
      const made = { name, requests: LOADS[name].make(starter.token) }
      const loaded = running.filter(({ loads }) => loads?.includes(name) ?? true)
      measured.push(...(await measureLoad(made, loaded, generator, { ...effort, tell: (done) => progress.at(done) }, REFERENCE)))
    }
    const told = rows.map(({ row: { name, title }, version }) => ({ name, title, version }))
    return { date: today(), machine: thisMachine(), ...effort, rows: told, measured }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
}
