/** Measures rows in turns, so that a machine that drifts moves all of them alike. */
import { cpuOf, memoryOf } from '../figures.ts'
import type { Helper } from '../processes.ts'
import type { LoadOrder, Round, RoundOrder } from './generator.ts'
import type { Against, MeasuredLoad } from './result.ts'
import type { Proxy } from './row.ts'

/** A row that runs. */
export interface RunningRow {
  readonly name: string
  readonly proxy: Proxy
}

/** How long it takes. */
export interface Effort {
  /** That count, after the warm-up. */
  readonly rounds: number
  readonly seconds: number
  /** Seconds before the first round: connections are opened in them, and code is compiled that runs often. */
  readonly warmUp: number
  readonly connections: number
  /** Is told that so many rounds are over. */
  readonly tell: (done: number) => void
}

/** The part of the warm-up in which a row is cold. */
const COLD = 1 / 4

/** What a round took. */
export interface CpuSlice {
  /** In microseconds; null where it isn't told. */
  readonly cpu: number | null
  /** How many requests it was for. */
  readonly count: number
}

type Slice = Round & CpuSlice

/**
 * Measures one load. Each round begins with another row, or one of them would always come behind the same.
 * @param reference the row that the others are held against, which may not be there
 * @returns what came of each row, in their order
 * @throws an Error if a row answers anything but 2xx: its figures would mean nothing
 */
export async function measureLoad(
  { name: load, requests }: { readonly name: MeasuredLoad['load']; readonly requests: readonly Buffer[] },
  rows: readonly RunningRow[],
  generator: Helper,
  { rounds, seconds, warmUp, connections, tell }: Effort,
  reference: string,
): Promise<readonly MeasuredLoad[]> {
  await generator.ask({ requests } satisfies LoadOrder)
  const play = async ({ name, proxy }: RunningRow, length: number): Promise<Slice> => {
    const before = cpuOf(proxy.pid)
    const order = { port: proxy.port, connections, milliseconds: 1000 * length } satisfies RoundOrder
    const played = await generator.ask<Round>(order)
    const after = cpuOf(proxy.pid)
    if (played.bad > 0) throw new Error(`${name} gave ${played.bad} bad answers to ${load}: ${played.firstBad}`)
    return { ...played, cpu: before === null || after === null ? null : after - before }
  }
  const cold = new Map<string, Slice[]>()
  for (const row of rows) {
    cold.set(row.name, [await play(row, warmUp * COLD)])
    await play(row, warmUp * (1 - COLD))
  }
  tell(1)
  const slices = new Map<string, Slice[]>(rows.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round += 1) {
    const first = round % rows.length
    for (const row of [...rows.slice(first), ...rows.slice(0, first)]) slices.get(row.name)?.push(await play(row, seconds))
    tell(round + 1)
  }
  return rows.map(({ name, proxy }) => {
    const own = slices.get(name) ?? []
    return {
      load,
      row: name,
      ...measuredOf(own),
      against: againstOf(own, slices.get(reference) ?? []),
      coldAgainst: againstOf(cold.get(name) ?? [], cold.get(reference) ?? [])?.median ?? null,
      memory: memoryOf(proxy.pid),
    }
  })
}

/** What a request took, round by round; null where it isn't told. */
function cpusOf(slices: readonly CpuSlice[]): readonly number[] | null {
  const cpus = slices.flatMap(({ cpu, count }) => (cpu === null ? [] : [cpu / count]))
  return cpus.length < slices.length ? null : cpus
}

/**
 * Holds each round against the same round of the reference: a machine that others use is not as fast in the next one.
 * @returns null where there is no reference, or CPU isn't told
 */
export function againstOf(slices: readonly CpuSlice[], references: readonly CpuSlice[]): Against | null {
  const own = cpusOf(slices)
  const others = cpusOf(references)
  if (own === null || others === null || others.length === 0) return null
  return quartilesOf(own.map((cpu, round) => cpu / (others[round] ?? Number.NaN)))
}

/** What lies in the middle of the ratios of all rounds, and between which two half of them lie. */
export function quartilesOf(ratios: readonly number[]): Against {
  const sorted = ratios.toSorted((a, b) => a - b)
  const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] ?? Number.NaN
  return { median: median(sorted), quartiles: [at(0.25), at(0.75)] }
}

function measuredOf(slices: readonly Slice[]): Omit<MeasuredLoad, 'load' | 'row' | 'memory' | 'against' | 'coldAgainst'> {
  const each = (figure: (slice: Slice) => number): number => median(slices.map(figure))
  const cpus = cpusOf(slices)
  return {
    count: slices.reduce((sum, { count }) => sum + count, 0),
    cpu: cpus === null ? null : median(cpus),
    perSecond: each(({ perSecond }) => perSecond),
    p50: each(({ p50 }) => p50),
    p99: each(({ p99 }) => p99),
  }
}

/** The one in the middle; of an even number, the mean of the two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  return ((sorted[Math.ceil(half) - 1] ?? Number.NaN) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2
}
