/** What comes of measuring lists. */
import type { Machine } from '../machine.ts'
import type { RowResult } from '../requests/result.ts'

/** What is in a list. */
export interface ListSize {
  readonly threads: number
  readonly bytes: number
}

/** Other requests, one after the other. In microseconds. */
export interface Latency {
  readonly p50: number
  readonly p99: number
}

/** How a row did: medians over the rounds that count. Times are in microseconds. */
export interface MeasuredLists {
  readonly row: string
  /** What it answers. */
  readonly given: ListSize
  /** Lists of all rounds, of those that were asked for while nothing else was. */
  readonly count: number
  /** Of the process and its children, for each list; null where the system doesn't tell it. */
  readonly cpu: number | null
  readonly p50: number
  /** Other requests while there are no lists. */
  readonly alone: Latency
  /** Other requests while lists are asked for without pause, and how many of those were answered in a second. */
  readonly beside: Latency & { readonly listsPerSecond: number }
}

/** All of it. */
export interface ListsResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  /** That count, after one that warms up. */
  readonly rounds: number
  /** Of a round, for each figure. */
  readonly seconds: number
  /** The upstream's. */
  readonly list: ListSize
  readonly rows: readonly RowResult[]
  /** Microseconds of CPU that a process takes to parse the upstream's list once, and does nothing else. */
  readonly parse: number
  readonly measured: readonly MeasuredLists[]
}
