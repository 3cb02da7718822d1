/** What comes of measuring open streams. */
import type { Machine } from '../machine.ts'
import type { RowResult } from '../requests/result.ts'

/** How a row did: medians over the rounds, and counts of all of them. Latencies are in milliseconds, and null where no event arrived. */
export interface MeasuredStreams {
  readonly row: string
  /** That were open when the measurement began, in the round that had the fewest. */
  readonly opened: number
  /** That ended before the measurement was over. */
  readonly cut: number
  /** That the upstream sent within the time, and that arrived of those. */
  readonly expected: number
  readonly events: number
  readonly p50: number | null
  readonly p99: number | null
  /** Microseconds of the process and its children, for each event; null where the system doesn't tell it, or none arrived. */
  readonly cpu: number | null
  /** Bytes: what the memory that is resident has grown by, for each stream; null where the system doesn't tell it, or none was opened. */
  readonly memoryEach: number | null
}

/** All of it. */
export interface StreamsResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  /** That were to be opened. */
  readonly streams: number
  /** Each with processes of its own. */
  readonly rounds: number
  /** Of a round: that were measured, once the streams were open. */
  readonly seconds: number
  readonly rows: readonly RowResult[]
  readonly measured: readonly MeasuredStreams[]
}
