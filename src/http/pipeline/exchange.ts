/** The record of one request on its way through the gateway. */
import type { IncomingMessage } from 'node:http'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { corsHeaders, type CorsRules } from '../../core/wire/cors.ts'
import type { Credential } from '../../core/decide/credential.ts'
import type { Enforcement, Facts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { headerFault, headerLines, MAX_HEADER_LINES, type HeaderLines } from '../../core/wire/headers.ts'
import { refuse, type Reason, type Refusal, type RulePlace } from '../../core/reasons.ts'
import type { RuntimeFacts, Transport } from '../../core/route/transport.ts'
import type { RouteLabel } from '../../observe/metrics.ts'
import type { Registration } from '../../store/port.ts'
import type { Mark } from './access.ts'
import type { EndReason } from '../upstream/open-answers.ts'
import type { Deletion, EndRun } from './runs-under-way.ts'

export interface Exchange {
  readonly id: string
  /** Milliseconds of a monotonic clock. */
  readonly startedAt: number
  readonly address: string
  enforcement: Enforcement
  readonly lines: HeaderLines
  readonly headerFault: Refusal | null
  /** Headers of every answer to this request: CORS and the request id. */
  readonly answerHeaders: Readonly<Record<string, string>>
  client: Transport
  scope: string
  upstreamKey: string
  /** What the upstream was when the request was let in: the request is written for that, whatever happens meanwhile. */
  upstream: RuntimeFacts | null
  principal: Principal | undefined
  credential: Credential | null
  route: RouteLabel
  descriptor: RouteDescriptor | null
  threadId: string | undefined
  /** The place of this run in a row that is not settled yet. */
  registration: Registration
  /** Ends the note of this run among those that may be executing; null for a request that is not a run. */
  endRun: EndRun | null
  /** The deletion that this request begins in the table; null for a request that deletes nothing there. */
  deletion: Deletion | null
  reason: Reason | 'permitted' | undefined
  /** True once the decision was reported: a request has one decision, whatever goes wrong after it. */
  isDecided: boolean
  /** What the decision used; facts that it did not ask for are absent. */
  facts: Facts | null
  rule: RulePlace | undefined
  /** Under `observe`: why enforcement would have refused the request. */
  observed: Reason | null
  /** Under `observe`: how many threads of a list enforcement would have hidden. */
  hidden: number
  /** Called when the request is sent by its permit: the decision is then final. */
  onSent: () => void
  permittedAt: Mark
  /** Takes a place among the caller's open streams; null where that is not limited, or was done. */
  takePlace: (() => Promise<boolean>) | null
  ended: EndReason | undefined
}

export function beginExchange(
  { rawHeaders, httpVersion }: Pick<IncomingMessage, 'rawHeaders' | 'httpVersion'>,
  known: Pick<Exchange, 'id' | 'startedAt' | 'address' | 'enforcement'>,
  cors: CorsRules,
): Exchange {
  const lines = headerLines(rawHeaders)
  return {
    ...known,
    lines,
    headerFault: rawHeaders.length > 2 * MAX_HEADER_LINES ? refuse('http-headers-too-large') : headerFault(lines, httpVersion),
    answerHeaders: { ...corsHeaders(lines, cors), 'x-request-id': known.id },
    client: 'multi-route',
    scope: '',
    upstreamKey: '',
    upstream: null,
    principal: undefined,
    credential: null,
    route: 'none',
    descriptor: null,
    threadId: undefined,
    registration: null,
    endRun: null,
    deletion: null,
    reason: undefined,
    isDecided: false,
    facts: null,
    rule: undefined,
    observed: null,
    hidden: 0,
    onSent: () => {},
    permittedAt: 0,
    takePlace: null,
    ended: undefined,
  }
}
