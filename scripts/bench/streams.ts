/** The part `streams`: many open event streams through the gateway, and through what one would otherwise put there. */
import { openFilesOf } from './figures.ts'
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import { ALICE } from './requests/people.ts'
import type { Row } from './requests/row.ts'
import { rowsOf } from './requests/rows.ts'
import { makeStarter, type Starter } from './requests/starting.ts'
import { makeScratch } from './scratch.ts'
import { measureStreams, type StreamsWanted } from './streams/measuring.ts'
import { tooFewFiles } from './streams/open-files.ts'
import { streamsPlot } from './streams/plot.ts'
import { streamsTable } from './streams/report.ts'
import type { MeasuredStreams, StreamsResult } from './streams/result.ts'

/** That is measured, once they are open. */
const SECONDS = 10

/** The part. */
export const streams: Part<StreamsResult> = {
  about: 'open event streams, --streams of them: what arrives and when, memory, CPU',
  run,
  table: streamsTable,
  plot: streamsPlot,
}

async function run({ streams: count, also, only, seconds, keep, progress }: BenchOptions): Promise<StreamsResult> {
  // Node takes as many as it may have, and so does what it starts: what is told of this process holds for all of them.
  const fault = tooFewFiles(count, openFilesOf(process.pid))
  if (fault !== null) throw new Error(fault)
  const scratch = makeScratch(keep)
  // Each stream holds one connection to the upstream.
  const starter = makeStarter(scratch.folder, count + 1000)
  const rows = rowsOf(also, only).map((row) => ({ row, version: row.version() }))
  const wanted = { streams: count, seconds: seconds ?? SECONDS, token: starter.token(ALICE) }
  const measured: MeasuredStreams[] = []
  try {
    progress.begin('streams, rows', rows.length)
    for (const [at, { row, version }] of rows.entries()) {
      if (version !== null) measured.push(await measure(starter, row, wanted))
      progress.at(at + 1)
    }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
  const told = rows.map(({ row: { name, title }, version }) => ({ name, title, version }))
  return { date: today(), machine: thisMachine(), streams: count, seconds: wanted.seconds, rows: told, measured }
}

/** A row with an upstream and a client of its own. They are gone before the next one begins. */
async function measure(starter: Starter, row: Row, wanted: StreamsWanted): Promise<MeasuredStreams> {
  const upstream = await starter.helper('streams/event-upstream.ts')
  const client = await starter.helper('streams/stream-client.ts')
  const result = await measureStreams(await starter.row(row, upstream), upstream, client, wanted)
  await starter.stop()
  return result
}
