/** What comes of measuring metrics, traces and the audit. */
import type { Machine } from '../machine.ts'
import type { LoadName } from '../requests/loads.ts'

/** What is recorded of a request: nothing, metrics, metrics and an audit line, or metrics and traces of 10 % of the requests. */
export const SIGNALS = ['none', 'metrics', 'audit', 'traces'] as const

export type Signal = (typeof SIGNALS)[number]

export interface MeasuredSignals {
  readonly load: LoadName
  /** Of each round of each process: microseconds of CPU for each request. */
  readonly cpus: readonly Readonly<Record<Signal, number>>[]
}

export interface SignalsResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  /** Of each process and load. */
  readonly rounds: number
  /** Of a round, for each of the signals. */
  readonly seconds: number
  /** Processes. */
  readonly starts: number
  readonly connections: number
  readonly measured: readonly MeasuredSignals[]
}
