/** What a running gateway offers, and what it gets from its surroundings. */
import type { Audit } from '../audit/sinks.ts'
import type { Config } from '../config/schema.ts'
import type { Outcome } from '../document/document.ts'
import type { ReloadResult } from '../http/admin/admin.ts'
import type { Readiness } from '../http/listeners/readiness.ts'
import type { OpenLimiter } from '../limits/open.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Prepared } from '../snapshot/load.ts'

export interface RunningGateway {
  readonly readiness: Readiness
  reload(cause: string): Promise<ReloadResult>
  /** For log rotation: opens the audit file again by its name. */
  reopenAudit(): void
  config(): Config
  /**
   * Reports the shutdown on /readyz, then accepts no more connections, waits for running requests, and closes everything.
   * @param deadline milliseconds after which open streams are ended with a RUN_ERROR event
   * @param served until this resolves, the gateway serves as before, but closes each connection with its next answer
   */
  stop(deadline: number, served?: Promise<unknown>): Promise<void>
}

export interface Machine {
  readonly mounts: string
  readonly addresses: readonly string[]
}

export interface Surroundings {
  readonly machine?: Machine
  /** Reads the configuration again; by default it never changes. */
  readonly prepare?: () => Outcome<Prepared>
  readonly primary?: Primary
}

/** What a worker leaves to the primary, which reports to operators, forgets old threads, and changes rules. */
export interface Primary {
  readonly limiter: OpenLimiter | null
  readonly audit: Audit
  readonly readiness: Readiness
  readonly metrics: Metrics
  readonly before: number
  readonly bodiesInFlight: number
}
