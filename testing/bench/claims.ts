/** The part `claims`: first runs on new threads, each of which is claimed and confirmed, against one fsync on the same disk. */
import { syncTime } from './claims/disk.ts'
import { claimsTable } from './claims/report.ts'
import type { ClaimsResult, MeasuredClaims } from './claims/result.ts'
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import type { Helper } from './processes.ts'
import type { LoadOrder, Round, RoundOrder } from './requests/generator.ts'
import { run as runOn } from './requests/loads.ts'
import { median, quartilesOf, type RunningRow } from './requests/measuring.ts'
import { ALICE, NEW_THREAD } from './requests/people.ts'
import { rowsOf } from './requests/rows.ts'
import { makeStarter } from './requests/starting.ts'
import { makeScratch } from './scratch.ts'

/** Only the gateway claims threads. */
const ROWS = ['gateway'] as const

/** Alone, a claim waits for nobody; claims of many callers can share what they wait for. */
const CONNECTIONS = [1, 8, 32] as const

/** To the upstream: more than there are callers. */
const UPSTREAM_CONNECTIONS = 64

/** That count, of each row and number of connections. */
const ROUNDS = 5

/** Of a round. */
const SECONDS = 2

/** About as long as the body of such a run is, in bytes. */
const BODY = 1000

export const claims: Part<ClaimsResult> = {
  about: 'first runs on new threads, which are claimed and confirmed, against one fsync',
  run,
  table: claimsTable,
}

async function run({ also, only, rounds, seconds, warmUp, keep, progress }: BenchOptions): Promise<ClaimsResult> {
  const scratch = makeScratch(keep)
  const starter = makeStarter(scratch.folder, UPSTREAM_CONNECTIONS)
  const effort = { rounds: rounds ?? ROUNDS, seconds: seconds ?? SECONDS }
  const rows = rowsOf(also, only ?? ROWS).map((row) => ({ row, version: row.version() }))
  try {
    const upstream = await starter.helper('requests/stub-upstream.ts')
    const generator = await starter.helper('requests/generator.ts')
    const requests = [runOn(NEW_THREAD, starter.token(ALICE), BODY)]
    await generator.ask({ requests, numbered: NEW_THREAD } satisfies LoadOrder)
    const running: RunningRow[] = []
    for (const { row, version } of rows) if (version !== null) running.push(await starter.row(row, upstream))
    for (const row of running) await play(generator, row, CONNECTIONS.at(-1) ?? 1, warmUp)
    progress.begin('claims, rounds', CONNECTIONS.length * effort.rounds)
    const measured: MeasuredClaims[] = []
    for (const [at, connections] of CONNECTIONS.entries()) {
      const slices = new Map(running.map(({ name }) => [name, [] as Slice[]]))
      for (let round = 1; round <= effort.rounds; round += 1) {
        const first = round % running.length
        for (const row of [...running.slice(first), ...running.slice(0, first)]) {
          const sync = syncTime(scratch.folder)
          slices.get(row.name)?.push({ ...(await play(generator, row, connections, effort.seconds)), sync })
        }
        progress.at(at * effort.rounds + round)
      }
      measured.push(...Array.from(slices, ([row, own]) => ({ row, connections, ...measuredOf(own) })))
    }
    const told = rows.map(({ row: { name, title }, version }) => ({ name, title, version }))
    return { date: today(), machine: thisMachine(), ...effort, rows: told, measured }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
}

interface Slice extends Round {
  readonly sync: number
}

/** @throws an Error if a row answers anything but 2xx: its figures would mean nothing */
async function play(generator: Helper, { name, proxy }: RunningRow, connections: number, seconds: number): Promise<Round> {
  const order = { port: proxy.port, connections, milliseconds: 1000 * seconds } satisfies RoundOrder
  const played = await generator.ask<Round>(order)
  if (played.bad > 0) throw new Error(`${name} gave ${played.bad} bad answers to first runs: ${played.firstBad}`)
  return played
}

function measuredOf(slices: readonly Slice[]): Omit<MeasuredClaims, 'row' | 'connections'> {
  const each = (figure: (slice: Slice) => number): number => median(slices.map(figure))
  return {
    count: slices.reduce((sum, { count }) => sum + count, 0),
    perSecond: each(({ perSecond }) => perSecond),
    p50: each(({ p50 }) => p50),
    sync: each(({ sync }) => sync),
    against: quartilesOf(slices.map(({ perSecond, sync }) => 1e6 / perSecond / sync)),
  }
}
