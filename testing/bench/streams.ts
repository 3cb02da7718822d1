/** The part `streams`: many open event streams through the gateway, and through what one would otherwise put there. */
import { openFilesOf } from './figures.ts'
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import { ALICE } from './requests/people.ts'
import type { Row } from './requests/row.ts'
import { rowsOf, SINGLE_ROWS } from './requests/rows.ts'
import { makeStarter, type Starter } from './requests/starting.ts'
import { makeScratch } from './scratch.ts'
import { measureStreams, medianOf, type StreamsWanted } from './streams/measuring.ts'
import { tooFewFiles } from './streams/open-files.ts'
import { streamsPlot } from './streams/plot.ts'
import { streamsTable } from './streams/report.ts'
import type { MeasuredStreams, StreamsResult } from './streams/result.ts'

/** A row takes half a minute for each. */
const ROUNDS = 3

/** That is measured, once they are open. */
const SECONDS = 10

/** The part. */
export const streams: Part<StreamsResult> = {
  about: '--streams open event streams: events, latency, memory, CPU',
  run,
  table: streamsTable,
  plot: streamsPlot,
}

async function run({
  streams: count,
  also,
  only,
  rounds: wantedRounds,
  seconds,
  keep,
  progress,
}: BenchOptions): Promise<StreamsResult> {
  // Node takes as many as it may have, and so does what it starts: what is told of this process holds for all of them.
  const fault = tooFewFiles(count, openFilesOf(process.pid))
  if (fault !== null) throw new Error(fault)
  const scratch = makeScratch(keep)
  // Each stream holds one connection to the upstream.
  const starter = makeStarter(scratch.folder, count + 1000)
  const rows = rowsOf(also, only ?? SINGLE_ROWS).map((row) => ({ row, version: row.version() }))
  const wanted = { streams: count, seconds: seconds ?? SECONDS, token: starter.token(ALICE) }
  const rounds = wantedRounds ?? ROUNDS
  const slices: MeasuredStreams[] = []
  try {
    const installed = rows.filter(({ version }) => version !== null)
    progress.begin('streams, rows of all rounds', rounds * installed.length)
    for (let round = 0; round < rounds; round += 1) {
      for (const { row } of installed) {
        slices.push(await measure(starter, row, wanted))
        progress.at(slices.length)
      }
    }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
  const told = rows.map(({ row: { name, title }, version }) => ({ name, title, version }))
  const measured = Array.from(Map.groupBy(slices, ({ row }) => row).values(), medianOf)
  return { date: today(), machine: thisMachine(), streams: count, rounds, seconds: wanted.seconds, rows: told, measured }
}

/** A row with an upstream and a client of its own. They are gone before the next one begins. */
async function measure(starter: Starter, row: Row, wanted: StreamsWanted): Promise<MeasuredStreams> {
  const upstream = await starter.helper('streams/event-upstream.ts')
  const client = await starter.helper('streams/stream-client.ts')
  const result = await measureStreams(await starter.row(row, upstream), upstream, client, wanted)
  await starter.stop()
  return result
}
