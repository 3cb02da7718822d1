/** The calls between the primary and its workers. */
import type { LimitState } from '../../core/reasons.ts'
import type { BudgetUse, Rate } from '../../core/decide/limits.ts'
import type { RateName, Reservation, RunEnd } from '../../limits/port.ts'
import type { HeldFiles } from '../../document/sources.ts'
import type { LogForm } from '../../observe/log.ts'
import type { Figures } from '../../observe/metrics.ts'
import type { Checked } from '../../snapshot/load.ts'
import type { Activity } from '../inspection.ts'

export interface Beginning {
  readonly prepared: Checked
  /** As they were checked. By now, files that the gateway has refused may be in their place. */
  readonly files: HeldFiles
  readonly number: number
  /** The port to listen on: 0 for the port that the other workers got. */
  readonly port: number
  readonly worker: number
  readonly workers: number
  readonly logForm: LogForm
}

export interface Conditions {
  readonly pending: ReadonlyMap<string, string>
  readonly notes: ReadonlyMap<string, string>
}

export type PrimaryHandlers = {
  readonly begin: (asked: null) => Beginning
  readonly listening: (url: string) => void
  readonly failed: (why: string) => void
  readonly conditions: (conditions: Conditions) => void
  /** As Limiter.take. */
  readonly take: (asked: { readonly name: RateName; readonly who: string; readonly rate: Rate }) => Promise<LimitState | null>
  /** As Limiter.open, with a number that gives the stream back. */
  readonly open: (asked: { readonly who: string; readonly most: number }) => Promise<LimitState | number>
  readonly close: (stream: number) => void
  /** As TokenCounters. */
  readonly reserve: (uses: readonly BudgetUse[]) => Promise<Reservation | LimitState>
  readonly settle: (asked: { readonly id: string; readonly tokens: number; readonly end: RunEnd }) => Promise<void>
  readonly audit: (asked: { readonly text: string; readonly lost: number }) => void
}

export type WorkerHandlers = {
  /** Null without an admin API. */
  readonly activity: (part: keyof Activity) => Promise<Partial<Activity> | null>
  /** True if the request had an open stream in this worker. */
  readonly endStream: (requestId: string) => Promise<boolean>
  readonly figures: (asked: null) => Promise<Figures>
  readonly revocations: (asked: null) => Promise<void>
  /** As ConfigSnapshot.keysAttempted. */
  readonly keysAttempted: (asked: null) => Promise<void>
  /** The two steps of a change: first all workers prepare it, then all activate it. */
  readonly prepare: (next: Checked) => Promise<void>
  readonly activate: (asked: null) => Promise<void>
  readonly discard: (asked: null) => Promise<void>
  /** As RunningGateway.stop; the worker serves on until `served` is called. */
  readonly stop: (deadline: number) => Promise<void>
  readonly served: (asked: null) => void
}
