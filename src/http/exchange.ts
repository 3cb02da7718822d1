/** One request on its way through the gateway, as far as it is known. */
import type { Credential } from '../core/credential.ts'
import type { Principal } from '../core/principal.ts'
import type { HeaderLines } from '../core/headers.ts'
import type { Reason, Refusal } from '../core/reasons.ts'
import type { RuntimeFacts, Transport } from '../core/transport.ts'
import type { RouteLabel } from '../observe/metrics.ts'
import type { Registration } from '../store/port.ts'

/** What the log line of a request is made of; the gate fills it in as it learns. */
export interface Exchange {
  readonly id: string
  /** Milliseconds of a monotonic clock. */
  readonly startedAt: number
  readonly lines: HeaderLines
  /** What is wrong with them. */
  readonly headerFault: Refusal | null
  /** Headers of every answer to this request: CORS and the request id. */
  readonly answerHeaders: Readonly<Record<string, string>>
  /** How the caller writes: in an envelope, or by a path. */
  client: Transport
  /** What the upstream was when the request was let in: it is written for that, whatever happens meanwhile. */
  upstream: RuntimeFacts | null
  principal: Principal | undefined
  /** What the principal came with; null without one. */
  credential: Credential | null
  route: RouteLabel
  threadId: string | undefined
  /** The place of this run in a row that is not settled yet. */
  registration: Registration
  reason: Reason | 'permitted' | undefined
}
