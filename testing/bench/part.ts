/** A part of the benchmark: something that is measured by itself. */
import type { Progress } from '../../src/cli/with-progress.ts'
import type { LoadName } from './requests/loads.ts'
import type { Other } from './requests/rows.ts'

/** What the command line says. A part takes of it what it has a use for. */
export interface BenchOptions {
  readonly rows: number
  readonly stores: readonly ('sqlite' | 'postgres')[]
  /** Of `requests` and `langgraph`: the loads; null for all. */
  readonly load: readonly LoadName[] | null
  /** The rows; null for all. */
  readonly only: readonly string[] | null
  /** Further checkouts, as rows. */
  readonly also: readonly Other[]
  /** That count; null for as many as a part thinks right. */
  readonly rounds: number | null
  /** Of `streams` alone: how many are opened. */
  readonly streams: number
  /** What a part measures for, whatever that is; null for what it thinks right. */
  readonly seconds: number | null
  /** Of `requests`, `langgraph`, `lists`, `claims` and `signals`: seconds of each row and load before what counts. */
  readonly warmUp: number
  readonly keep: boolean
  readonly progress: Progress
}

/** A part, and the result that it makes: plain JSON. */
export interface Part<Result> {
  /** What it measures, for the help. */
  readonly about: string
  run(options: BenchOptions): Promise<Result>
  /** The result as Markdown, for the terminal and for docs/contributing/benchmarks.md: the same for the same result. */
  table(result: Result): string
  /** It as a picture, an SVG; likewise the same for the same result. */
  plot?(result: Result): string
}
