/** What comes of measuring requests. */
import type { Machine } from '../machine.ts'
import type { LoadName } from './loads.ts'

/** A row that was measured, or wasn't. */
export interface RowResult {
  readonly name: string
  readonly title: string
  /** Null: it is not installed. */
  readonly version: string | null
}

/** The CPU of a row as a multiple of the reference's, round by round. */
export interface Against {
  readonly median: number
  /** The lower and the upper quartile: where half of the rounds lie between. */
  readonly quartiles: readonly [number, number]
}

/** How a row did with a load: medians over the rounds that count. Times are in microseconds. */
export interface MeasuredLoad {
  readonly load: LoadName
  readonly row: string
  /** Requests of all of these rounds. */
  readonly count: number
  /** Of the process and its children, for each request; null where the system doesn't tell it. */
  readonly cpu: number | null
  /** Null where there is no reference, or its CPU isn't told. */
  readonly against: Against | null
  /** The same of the first quarter of the warm-up, in which most code is not compiled yet. */
  readonly coldAgainst: number | null
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Bytes that are resident after the last round; null where the system doesn't tell it. */
  readonly memory: number | null
}

/** All of it. */
export interface RequestsResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  /** That count, after the warm-up. */
  readonly rounds: number
  /** Of a round. */
  readonly seconds: number
  /** Seconds of the warm-up of each row and load. */
  readonly warmUp: number
  readonly connections: number
  readonly rows: readonly RowResult[]
  readonly measured: readonly MeasuredLoad[]
}
