/** What comes of measuring first runs on new threads. */
import type { Machine } from '../machine.ts'
import type { Against, RowResult } from '../requests/result.ts'

export interface MeasuredClaims {
  readonly row: string
  /** Each sends its next run when its answer is there. */
  readonly connections: number
  /** Runs of all rounds that count. Each was the first on its thread. */
  readonly count: number
  /** Median over the rounds, as all that follows. */
  readonly perSecond: number
  /** Microseconds. */
  readonly p50: number
  /** Microseconds of one write that the disk confirms, before each round. */
  readonly sync: number
  /** The time for each run (the round divided by its runs) as a multiple of such a write. */
  readonly against: Against
}

export interface ClaimsResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  /** Of each row and number of connections. */
  readonly rounds: number
  /** Of a round. */
  readonly seconds: number
  readonly rows: readonly RowResult[]
  readonly measured: readonly MeasuredClaims[]
}
