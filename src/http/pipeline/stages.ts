/** The types of a request, phase by phase. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Credential } from '../../core/decide/credential.ts'
import type { Enforcement, Facts, Permit, StandingFacts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Rule, RuleMatch } from '../../core/decide/rules.ts'
import type { Json, JsonObject } from '../../core/json/read.ts'
import type { Reason, Refusal, RulePlace } from '../../core/reasons.ts'
import type { Passing } from '../../core/route/bodies.ts'
import type { UpstreamApi } from '../../core/route/all-routes.ts'
import type { ClaimedHistory } from '../../core/route/claimed-history.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import type { Route } from '../../core/route/routes.ts'
import type { RuntimeFacts, Transport } from '../../core/route/transport.ts'
import type { CorsRules } from '../../core/wire/cors.ts'
import type { HeaderLines } from '../../core/wire/headers.ts'
import type { EndReason } from '../../observe/metrics.ts'
import type { RequestTrace } from '../../observe/traces.ts'
import type { AnswerOwner } from '../upstream/open-answers.ts'
import type { TransportState } from '../upstream/transport-probe.ts'
import type { Answer } from './answer.ts'
import type { Begun } from './claim.ts'
import type { ClientDisconnectSignal } from '../upstream/upstream.ts'
import type { History } from './history.ts'
import type { LimitLeases } from './limit-leases.ts'
import type { RunBudget } from './run-budget.ts'

export interface RequestHead {
  readonly id: string
  /** Milliseconds of a monotonic clock. */
  readonly startedAt: number
  /** The caller's, as far as the trusted proxies tell. */
  readonly address: string
  readonly method: string
  readonly target: string
  readonly lines: HeaderLines
  readonly fault: Refusal | null
  /** Headers of every answer to this request: CORS and the request id. */
  readonly answerHeaders: Readonly<Record<string, string>>
}

export interface RequestRecord {
  upstream: { readonly key: string; readonly scope: string } | null
  client: Transport
  principal: Principal | undefined
  /** Where the credential was sent; null without one, and where authentication failed. */
  credential: 'header' | 'cookie' | null
  descriptor: RouteDescriptor | null
  /** What the decision used; facts that it did not ask for are absent. */
  facts: Facts | null
  reason: Reason | 'permitted' | undefined
  rule: RulePlace | undefined
  /** Under `observe`: why enforcement would have refused the request. */
  observed: Reason | null
  /** Under `observe`: how many threads of a list enforcement would have hidden. */
  hidden: number
  ended: EndReason | undefined
}

/** In milliseconds of the clock of `startedAt`. */
export interface Timing {
  /** How long the request waited for its own body and for the upstream. */
  waited: number
  /** When its answer began; 0 before. */
  answeredAt: number
}

export interface Exchange {
  readonly head: RequestHead
  readonly record: RequestRecord
  readonly timing: Timing
  readonly response: ServerResponse
  readonly signal: ClientDisconnectSignal
  /** Null while requests are not traced. */
  readonly trace: RequestTrace | null
  /** The snapshot that decides the request: another one once that was replaced before the request was sent. */
  snapshot: RequestSnapshot
  /** True once the decision was reported: a request has one decision, whatever goes wrong after it. */
  isDecided: boolean
}

export interface Caller {
  readonly principal: Principal
  readonly credential: Credential | null
  readonly key: string
}

/** The upstream of a request, as it is when the request arrives: the request is written for that, whatever happens meanwhile. */
export interface Addressed {
  readonly exchange: Exchange
  readonly binding: UpstreamBinding
  readonly caller: Caller
  readonly upstream: RuntimeFacts
}

export interface Classified extends Addressed {
  readonly outcome: 'classified'
  /** Null for an envelope on the base path: only the body says what the request is about. */
  readonly route: ClassifiedRoute | null
}

export interface ClassifiedRoute {
  readonly descriptor: RouteDescriptor
  readonly match: RuleMatch
}

/** A JSON body was checked, and comes with the name and archived flag that it sets. */
export type Payload =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'json'
      readonly bytes: readonly Uint8Array[]
      readonly name: Json | undefined
      readonly archived: Json | undefined
      /** Earlier messages to verify; null where the rule trusts them. */
      readonly claimed: ClaimedHistory | null
    }
  | { readonly kind: 'stream'; readonly type: string; readonly length: string | undefined; readonly body: Readable }
  /** The gateway refuses what it does not know in the body, and drops nothing. */
  | { readonly kind: 'own'; readonly body: JsonObject }

export interface ReadBody {
  readonly outcome: 'read'
  readonly descriptor: RouteDescriptor
  /** Where the content names the route (an envelope) or the agent: their rules are matched then. */
  readonly match?: RuleMatch
  /** `most` bounds the sent body, in bytes. */
  readonly write: (policy: Passing, most: number) => Payload | Refusal | Promise<Payload | Refusal>
  /** Called after the last write: an upstream may take long to answer. */
  readonly forget: () => void
  readonly release: () => void
}

/** A request whose body was read and whose rules were matched. */
export interface Undecided extends Addressed {
  readonly body: ReadBody
  readonly match: RuleMatch
  readonly leases: LimitLeases
}

/** A request that may be sent, as long as nothing has changed since `permittedAt`. */
export interface Authorized extends Addressed {
  readonly outcome: 'authorized'
  readonly permit: Permit
  readonly payload: Payload
  readonly begun: Begun
  readonly permittedAt: Mark
  /** Null where that is not limited, or was done. */
  readonly takePlace: (() => Promise<boolean>) | null
  /** Null where no budget of tokens applies. */
  readonly budget: RunBudget | null
}

/** A moment in the sequence of changes. */
export type Mark = number

export interface AccessChanges {
  mark(): Mark
  /** True where a decision about a thread that was made at `since` has to be made again. */
  outdated(since: Mark, threadId: string | undefined): boolean
  /** True once another snapshot is active: only that may decide a request that was not sent yet. */
  isReplaced(): boolean
  /** Checks the current ownership and configuration. @returns null if allowed; at once where nothing has changed since */
  refusal(permit: Permit, permittedAt: Mark): Promise<Refusal | null> | null
  /** @returns null if the caller may read all of them; at once where nothing has changed since */
  hidden(permit: Permit, threadIds: readonly string[], listedAt: Mark): Promise<ReadonlySet<string>> | null
  /** The gateway checks the answer again whenever something changes. */
  opened(owner: AnswerOwner, permittedAt: Mark): void
}

/** The handle of one request on its snapshot. It keeps the snapshot's upstream connections open. */
export interface RequestSnapshot extends AccessChanges {
  readonly pipeline: Pipeline
  upstreamKey: string
  decided(exchange: Exchange, outcome: Refusal | 'permitted'): void
  /** Where a request continues in the active snapshot; a refusal where that no longer takes it. */
  successor(principal: Principal): Successor | Refusal
  release(): void
}

export interface Successor {
  readonly outcome: 'succeeds'
  readonly snapshot: RequestSnapshot
  readonly binding: UpstreamBinding
  readonly principal: Principal
}

export interface UpstreamBinding {
  readonly key: string
  readonly scope: string
  /** True where other upstreams have the same scope: one may hold what another has deleted. */
  readonly sharesScope: boolean
  /** `''` or `/a/b`. */
  readonly publicPath: string
  readonly api: UpstreamApi
  /** The id of a self-hosted agent; null for all other upstreams. */
  readonly agentId: string | null
  readonly facts: StandingFacts
  readonly transport: TransportState
  readonly hasOperation: (upstream: RuntimeFacts, route: Route) => boolean
  readonly history: ThreadHistory
  readonly forward: Forward
}

/** What the upstream holds of an unowned thread. */
export interface ThreadHistory {
  /** @param rule would allow the request if the upstream holds nothing of its thread */
  readonly ask: (request: Undecided, rule: Rule, threadId: string) => Promise<History | Refusal>
  /** Verifies what the request claims as earlier messages of its thread. */
  readonly verify: (request: Undecided, rule: Rule, threadId: string, claimed: ClaimedHistory) => Promise<Refusal | null>
  /** Called when the upstream does not serve thread histories. */
  readonly onUntold: () => void
}

/** Calls `onPermitted` once the decision is final. `outdated`: not sent, and has to be decided again. */
export type Forward = (request: Authorized, onPermitted: () => void) => Promise<Answer | Refusal | 'passed' | 'outdated'>

export interface Pipeline {
  readonly cors: CorsRules
  readonly enforcement: Enforcement
  /** An answer ends the request. */
  admit(message: IncomingMessage, exchange: Exchange): Classified | Answer | Promise<Classified | Answer>
  complete(request: Classified, message: IncomingMessage): Promise<Answer | 'passed'>
  /** Continues a request of a snapshot that was replaced while the body was on its way. */
  resume(request: Undecided): Promise<Answer | 'passed'>
  bindingOf(key: string): UpstreamBinding | undefined
}
