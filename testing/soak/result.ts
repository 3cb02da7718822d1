/** What comes of a soak. */
import type { Machine } from '../bench/machine.ts'
import type { KindCounts } from './account.ts'
import type { Answer, KindName } from './answer.ts'

/** How long it went on, and how much was asked. */
export interface SoakOptions {
  readonly minutes: number
  /** Minutes at the beginning that don't count for the memory. */
  readonly warmUp: number
  readonly workers: number
  /** Questions a second, besides the streams. */
  readonly rate: number
  /** Streams that are open all the time. */
  readonly streams: number
}

/** Figures of a moment. Bytes. */
export interface Sample {
  /** Seconds since the load began. */
  readonly at: number
  /** Null where the system doesn't tell it. */
  readonly rss: number | null
  readonly heap: number
}

/** Figures at rest: before the load, and after it. */
export interface AtRest {
  readonly files: number | null
  readonly resources: number
  readonly openStreams: number
}

/** A fault that was made. */
export interface MadeFault {
  readonly fault: 'upstream' | 'reload' | 'keys'
  /** What was done. */
  readonly what: string
  /** Seconds since the load began, and how many it lasted. */
  readonly at: number
  readonly seconds: number
}

/** What the ownership table and its file hold. */
export interface TableSize {
  readonly rows: number
  /** Of the file and what lies beside it. */
  readonly bytes: number
}

/** All of it. */
export interface SoakResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  readonly options: SoakOptions
  /** Of the life of a token, on average. */
  readonly tokenSeconds: number
  readonly kinds: Readonly<Record<KindName, KindCounts>>
  /** The first answers that nothing explains. */
  readonly examples: readonly Answer[]
  /** Questions that were not asked, because too many were under way. */
  readonly heldBack: number
  readonly faults: readonly MadeFault[]
  /** What was not as it had to be when a fault was made. */
  readonly failedFaults: readonly string[]
  /** How many lines of the log had this message, of level `warn` and above, the level before it. */
  readonly log: Readonly<Record<string, number>>
  /** All that were taken. */
  readonly samples: readonly Sample[]
  readonly before: AtRest
  readonly after: AtRest
  readonly tableBefore: TableSize
  readonly tableAfter: TableSize
  /** First runs that were answered to their end, and that were asked for. */
  readonly claimed: number
  readonly firstRuns: number
}
