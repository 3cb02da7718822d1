/** The part `lists`: what it costs to make a caller's list out of everybody's, and what others notice of it meanwhile. */
import { ask, measureLists, type MeasuredRow } from './lists/measuring.ts'
import { listsPlot } from './lists/plot.ts'
import { listsTable } from './lists/report.ts'
import type { ListsResult } from './lists/result.ts'
import { thisMachine, today } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'
import { get, LOADS } from './requests/loads.ts'
import { CAROL, MANY } from './requests/people.ts'
import { REFERENCE, rowsOf } from './requests/rows.ts'
import { makeStarter } from './requests/starting.ts'
import { MANY_BODY, MANY_PATH } from './requests/thread-lists.ts'
import { makeScratch } from './scratch.ts'

/** The others but pass the bytes on, each in its way. */
const ROWS = ['gateway', REFERENCE] as const

/** To the upstream: more than there are callers. */
const UPSTREAM_CONNECTIONS = 16

/** That count. */
const ROUNDS = 5

/** Of a round. */
const SECONDS = 2

/** The part. */
export const lists: Part<ListsResult> = {
  about: 'lists of 10,000 threads, compared with one parse, and other requests meanwhile',
  run,
  table: listsTable,
  plot: listsPlot,
}

async function run({ also, only, rounds, seconds, warmUp, keep, progress }: BenchOptions): Promise<ListsResult> {
  const scratch = makeScratch(keep)
  const starter = makeStarter(scratch.folder, UPSTREAM_CONNECTIONS)
  const effort = { rounds: rounds ?? ROUNDS, seconds: seconds ?? SECONDS }
  const rows = rowsOf(also, only ?? ROWS).map((row) => ({ row, version: row.version() }))
  const token = starter.token(CAROL)
  try {
    const upstream = await starter.helper('requests/stub-upstream.ts')
    const helpers = {
      lists: await starter.helper('requests/generator.ts'),
      gets: await starter.helper('requests/generator.ts'),
      parser: await starter.helper('lists/parser.ts'),
    }
    const running: MeasuredRow[] = []
    for (const { row, version } of rows) {
      if (version === null) continue
      const started = await starter.row(row, upstream)
      running.push({ ...started, given: await ask(started, token) })
    }
    progress.begin('lists, rounds', effort.rounds + 1)
    const made = { lists: [get(MANY_PATH, token)], gets: LOADS.get.make(starter.token) }
    const figures = await measureLists(made, running, helpers, { ...effort, warmUp, tell: (done) => progress.at(done) })
    const told = rows.map(({ row: { name, title }, version }) => ({ name, title, version }))
    const list = { threads: MANY.length, bytes: MANY_BODY.length }
    return { date: today(), machine: thisMachine(), ...effort, list, rows: told, ...figures }
  } finally {
    progress.end()
    await starter.stop()
    scratch.remove()
  }
}
