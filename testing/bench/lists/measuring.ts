/** Measures lists in rounds: what they cost, what parsing them costs, and what others notice of them, row by row in turns. */
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuOf } from '../figures.ts'
import type { Helper } from '../processes.ts'
import type { LoadOrder, Round, RoundOrder } from '../requests/generator.ts'
import { BASE } from '../requests/loads.ts'
import { median, type Effort, type RunningRow } from '../requests/measuring.ts'
import { MANY_PATH } from '../requests/thread-lists.ts'
import type { ParseOrder, Parsed } from './parser.ts'
import type { Latency, ListsResult, ListSize, MeasuredLists } from './result.ts'

/** A row that runs, and what it answers to whoever asks for the list. */
export interface MeasuredRow extends RunningRow {
  readonly given: ListSize
}

/** What is sent. */
export interface ListLoads {
  readonly lists: readonly Buffer[]
  /** The other requests. */
  readonly gets: readonly Buffer[]
}

/** Who sends it, and who parses: processes of their own. */
export type ListHelpers = Readonly<Record<'lists' | 'gets' | 'parser', Helper>>

/** So long before and after the other requests lists are asked for, in milliseconds. */
const AROUND = 100

interface Slice {
  readonly lists: Round
  readonly cpu: number | null
  readonly alone: Round
  readonly beside: Round
  readonly listsBeside: Round
}

/**
 * Asks a row for the list once.
 * @returns what is in its answer
 * @throws an Error if that is none
 */
export async function ask({ name, proxy }: RunningRow, token: string): Promise<ListSize> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`http://127.0.0.1:${proxy.port}${BASE}${MANY_PATH}`, { headers })
  if (!answer.ok) throw new Error(`${name} does not give the list: ${answer.status}`)
  const body = Buffer.from(await answer.arrayBuffer())
  const { threads } = JSON.parse(body.toString()) as { threads: readonly unknown[] }
  return { threads: threads.length, bytes: body.length }
}

/**
 * Measures.
 * @returns what came of parsing, and of each row, in their order
 * @throws an Error if a row answers anything but 2xx
 */
export async function measureLists(
  loads: ListLoads,
  rows: readonly MeasuredRow[],
  helpers: ListHelpers,
  { rounds, seconds, warmUp, tell }: Omit<Effort, 'connections'>,
): Promise<Pick<ListsResult, 'parse' | 'measured'>> {
  await helpers.lists.ask({ requests: loads.lists } satisfies LoadOrder)
  await helpers.gets.ask({ requests: loads.gets } satisfies LoadOrder)
  const parses: number[] = []
  const slices = new Map<string, Slice[]>(rows.map(({ name }) => [name, []]))
  for (let round = 0; round <= rounds; round += 1) {
    const milliseconds = 1000 * (round === 0 ? warmUp : seconds)
    const { count, cpu } = await helpers.parser.ask<Parsed>({ milliseconds } satisfies ParseOrder)
    if (round > 0) parses.push(cpu / count)
    for (const row of rows) {
      const slice = await sliceOf(row, helpers, milliseconds)
      if (round > 0) slices.get(row.name)?.push(slice)
    }
    tell(round + 1)
  }
  const measured = rows.map(({ name, given }) => ({ row: name, given, ...measuredOf(slices.get(name) ?? []) }))
  return { parse: median(parses), measured }
}

async function sliceOf({ name, proxy }: RunningRow, helpers: ListHelpers, milliseconds: number): Promise<Slice> {
  const play = async (helper: Helper, during: number): Promise<Round> => {
    const order = { port: proxy.port, connections: 1, milliseconds: during } satisfies RoundOrder
    const round = await helper.ask<Round>(order)
    if (round.bad > 0) throw new Error(`${name} gave ${round.bad} bad answers: ${round.firstBad}`)
    return round
  }
  const before = cpuOf(proxy.pid)
  const lists = await play(helpers.lists, milliseconds)
  const after = cpuOf(proxy.pid)
  const alone = await play(helpers.gets, milliseconds)
  const [listsBeside, beside] = await Promise.all([
    play(helpers.lists, milliseconds + 2 * AROUND),
    sleep(AROUND).then(() => play(helpers.gets, milliseconds)),
  ])
  return { lists, cpu: before === null || after === null ? null : after - before, alone, beside, listsBeside }
}

function measuredOf(slices: readonly Slice[]): Omit<MeasuredLists, 'row' | 'given'> {
  const each = (figure: (slice: Slice) => number): number => median(slices.map(figure))
  const latency = (which: 'alone' | 'beside'): Latency => ({
    p50: each((slice) => slice[which].p50),
    p99: each((slice) => slice[which].p99),
  })
  return {
    count: slices.reduce((sum, { lists }) => sum + lists.count, 0),
    cpu: slices.some(({ cpu }) => cpu === null) ? null : each(({ cpu, lists }) => (cpu ?? 0) / lists.count),
    p50: each(({ lists }) => lists.p50),
    alone: latency('alone'),
    beside: { ...latency('beside'), listsPerSecond: each(({ listsBeside }) => listsBeside.perSecond) },
  }
}
