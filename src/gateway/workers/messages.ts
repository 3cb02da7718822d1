/** What the primary and its workers ask of each other. */
import type { LimitState } from '../../core/reasons.ts'
import type { Rate } from '../../core/decide/rules.ts'
import type { RateName } from '../../limits/port.ts'
import type { Figures } from '../../observe/metrics.ts'
import type { Prepared } from '../../snapshot/load.ts'

export interface Beginning {
  /** The active configuration and its number. */
  readonly prepared: Prepared
  readonly number: number
  /** The port to listen on: 0 for the one that the others got. */
  readonly port: number
  /** Which of the workers it is, from 1. */
  readonly worker: number
  readonly workers: number
}

/** What /readyz says, as readiness.ts has it. */
export interface Conditions {
  readonly pending: ReadonlyMap<string, string>
  readonly notes: ReadonlyMap<string, string>
}

export type PrimaryHandlers = {
  readonly begin: (asked: null) => Beginning
  /** Its listener is open. */
  readonly listening: (url: string) => void
  readonly failed: (why: string) => void
  readonly conditions: (conditions: Conditions) => void
  /** As Limiter.take. */
  readonly take: (asked: { readonly name: RateName; readonly who: string; readonly rate: Rate }) => Promise<LimitState | null>
  /** As Limiter.open, with a number by which a stream is given back. */
  readonly open: (asked: { readonly who: string; readonly most: number }) => Promise<LimitState | number>
  readonly close: (stream: number) => void
  /** Lines of the audit, each with its end, and how many were lost on the way. */
  readonly audit: (asked: { readonly text: string; readonly lost: number }) => void
}

export type WorkerHandlers = {
  readonly figures: (asked: null) => Promise<Figures>
  readonly revocations: (asked: null) => Promise<void>
  /** The two steps of a change: everybody can do it, then everybody does. */
  readonly prepare: (next: Prepared) => Promise<void>
  readonly put: (asked: null) => Promise<void>
  readonly discard: (asked: null) => Promise<void>
  /** As RunningGateway.stop; it serves on until `served` is asked. */
  readonly stop: (deadline: number) => Promise<void>
  readonly served: (asked: null) => void
}
