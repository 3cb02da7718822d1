/** Explains one request: it takes the way of every request (src/http/pipeline), to an upstream that records what it would get. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { headersOf, headersWith } from '../../auth/request-credentials.ts'
import { mountsOf, type Mount } from '../../config/mounts.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import type { Facts, OwnerRecord, Permit } from '../../core/decide/decide.ts'
import { BUILT_IN } from '../../core/wire/headers.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { isRefusal, type Refusal } from '../../core/reasons.ts'
import { QUERY_NAMES } from '../../core/route/all-routes.ts'
import { findMount, readTarget, type Target } from '../../core/route/target.ts'
import { traceOf, type Trace } from '../../core/decide/trace.ts'
import type { CursorSeal } from '../../http/lists/cursor.ts'
import { beginExchange } from '../../http/pipeline/exchange.ts'
import type { Identity } from '../../http/pipeline/identity.ts'
import { makeBudget } from '../../http/pipeline/request-body.ts'
import { makeRunsUnderWay } from '../../http/pipeline/claim.ts'
import type { OpenAnswers } from '../../http/upstream/open-answers.ts'
import type { Limiter } from '../../limits/port.ts'
import { makeLog } from '../../observe/log.ts'
import { makeMetrics } from '../../observe/metrics.ts'
import { assemblePipeline } from '../../snapshot/assemble-pipeline.ts'
import type { Config } from '../../config/schema.ts'
import type { Policy } from '../../policy/compile.ts'
import { callerOf, issuerOfClaims, type Presented } from './caller.ts'
import {
  AS_SENT,
  recordingHandle,
  sentOf,
  type Recorded,
  type Sent,
  permissiveStore,
  steadySnapshot,
} from './recording-upstream.ts'
import type { OwnerRecords } from '../../http/pipeline/authorization.ts'
import type { Exchange } from '../../http/pipeline/stages.ts'

export interface Question {
  /** In capitals. */
  readonly method: string
  /** As in the request line. */
  readonly target: string
  readonly presented: Presented
  /** JSON; empty for none. */
  readonly body: Uint8Array
  /** Of no interest where the surroundings have the real owners. */
  readonly record: OwnerRecord
  /** What the upstream would answer for a thread without a row, where the gateway asks it. */
  readonly upstreamHistory: 'none' | 'some'
}

/** The gateway's result for the request; a part that it does not reach is null. */
export interface Explanation {
  readonly target: Target | null
  /** The upstream of the request; null outside all public paths. */
  readonly mount: Mount | null
  /** True for a request in an envelope on the base path. */
  readonly enveloped: boolean
  readonly principal: Principal | null
  readonly descriptor: RouteDescriptor | null
  readonly facts: Facts | null
  /** True if the owner in the facts is the real one, and not that of the question. */
  readonly isFromStore: boolean
  readonly trace: Trace | null
  /** `key-set`: the gateway answers any caller with its public keys. */
  readonly outcome: Permit | Refusal | 'key-set'
  readonly sent: Sent | null
  readonly notes: readonly string[]
}

export interface Surroundings {
  readonly config: Config
  readonly policy: Policy
  readonly identity: Identity
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** The real owners; without them, the question says who owns the thread. */
  readonly records?: OwnerRecords
}

/** No explanation is refused for what other requests use. */
const UNLIMITED: Limiter = {
  take: async () => null,
  open: async () => () => {},
  reserve: async () => ({ id: '', left: [] }),
  settle: async () => {},
  spending: async () => [],
}
const ROOM = makeBudget(Number.MAX_SAFE_INTEGER)

/** Only the gateway that made a cursor can open it. Each is taken for one of the list that the request asks for. */
const ANY_CURSOR: CursorSeal = {
  seal: () => '',
  open: (_cursor, [kind]) => ({ page: kind === 'table' ? '' : null, offset: 0 }),
}

/** An answer is of no interest: it ends unread. */
const NO_ANSWERS: OpenAnswers = {
  pass: (body) => {
    body.destroy()
    return 'over'
  },
  refusal: () => null,
  count: () => 0,
  endAll: () => {},
  endRevoked: () => {},
  owners: () => [],
  streams: () => [],
  endStream: () => false,
  endOf: () => {},
}

/** One for all questions: each of them watches the event loop, and would do so until the process ends. */
const METRICS = makeMetrics()
const SILENCE = makeLog('silent', { write: () => {} })

export async function explain(question: Question, surroundings: Surroundings): Promise<Explanation> {
  const { config, policy, identity, clock } = surroundings
  const recorded: Recorded = { request: null, dropped: [] }
  let notes: readonly string[] = []
  const sent = credentialLines(question.presented, config)
  const pipeline = assemblePipeline(
    {
      config,
      policy,
      authenticate: async () => {
        const caller = await callerOf(question.presented, config, clock)
        const { principal } = caller
        notes = [...caller.notes, ...(sent['cookie'] === undefined ? [] : [sentInCookie(sent)])]
        return isRefusal(principal) ? principal : { outcome: 'authenticated', principal, credential: null, sentIn: null }
      },
      authenticateWithCookies: null,
      identity,
      records: surroundings.records ?? {
        record: () => question.record,
        records: async () => ({ get: () => null }),
        recordsOf: async () => null,
      },
      handles: new Map(mountsOf(config).map((mount) => [mount.key, recordingHandle(mount, recorded, question.upstreamHistory)])),
      onDropped: (_kind, name) => recorded.dropped.push(name),
      makeVerify: () => async () => null,
      makeCheckRun: () => async () => null,
    },
    {
      store: permissiveStore(question.record),
      sealOf: () => ANY_CURSOR,
      limiter: UNLIMITED,
      answers: NO_ANSWERS,
      runs: makeRunsUnderWay(clock),
      memory: { bodies: ROOM, reading: ROOM, answers: ROOM },
      metrics: METRICS,
      log: SILENCE,
      clock,
      state: { isRevoked: () => false, isShuttingDown: false },
    },
  )
  let refusal: Refusal | 'permitted' | null = null
  const message = messageOf(question, config, sent)
  const known = { id: 'made for each request', startedAt: 0, address: '', target: question.target }
  const snapshot = steadySnapshot(pipeline, { decided: (_exchange, outcome) => (refusal = outcome) })
  const exchange = beginExchange(message, new ServerResponse(message), known, snapshot)
  const admitted = await pipeline.admit(message, exchange)
  if ('outcome' in admitted) await pipeline.complete(admitted, message)
  return explanationOf(question, surroundings, exchange, refusal, { recorded, notes })
}

function explanationOf(
  question: Question,
  { config, policy, records }: Surroundings,
  { record }: Exchange,
  outcome: Refusal | 'permitted' | null,
  { recorded, notes }: { readonly recorded: Recorded; readonly notes: readonly string[] },
): Explanation {
  const { descriptor, principal = null } = record
  const target = readTarget(question.target, QUERY_NAMES)
  const mount = target.outcome === 'refused' ? null : (findMount(mountsOf(config), target)?.mount ?? null)
  // The decision asks only for the facts that it depends on; an explanation shows all that were given.
  const { upstreamHistory } = question
  const isFromStore = records !== undefined
  const { facts: decided } = record
  const facts =
    decided?.record === undefined
      ? decided
      : { ...decided, record: isFromStore ? decided.record : question.record, upstreamHistory }
  const trace =
    descriptor === null || principal === null || facts === null ? null : traceOf(descriptor, principal, policy.rules, facts)
  const decision = outcome === 'permitted' ? trace?.decision : (outcome ?? 'key-set')
  if (decision === undefined || (typeof decision === 'object' && decision.outcome === 'needs')) {
    throw new Error('a decision without a fact that was given')
  }
  const permit = typeof decision === 'object' && decision.outcome === 'permitted' ? decision : null
  return {
    target: target.outcome === 'refused' ? null : target,
    mount,
    enveloped: record.client === 'single-route',
    principal,
    descriptor,
    facts,
    isFromStore,
    trace,
    outcome: decision,
    sent: permit === null || mount === null ? null : sentOf(recorded, mount, config),
    notes,
  }
}

function credentialLines(presented: Presented, config: Config): Readonly<Record<string, string>> {
  switch (presented.kind) {
    case 'nothing':
      return {}
    case 'token':
      return headersWith(presented.token, config)
    case 'claims': {
      const issuer = issuerOfClaims(presented, config.authentication)?.[1]
      return issuer === undefined ? { authorization: 'Bearer claims' } : headersOf('claims', issuer, config)
    }
  }
}

function sentInCookie({ cookie = '', origin = '' }: Readonly<Record<string, string>>): string {
  const name = cookie.slice(0, cookie.indexOf('='))
  return `the token is in the cookie ${name}, from a page of ${origin}; from other pages the request is refused (cookie-cross-site)`
}

/** The request, with every header that may pass. */
function messageOf(
  { method, target, body }: Question,
  { forwardHeaders }: Config,
  credential: Readonly<Record<string, string>>,
): IncomingMessage {
  const message = new IncomingMessage(new Socket())
  const headers = new Map([...BUILT_IN, ...forwardHeaders].map((name) => [name.toLowerCase(), AS_SENT]))
  headers.set('host', 'gateway')
  headers.delete('authorization')
  headers.delete('content-type')
  // An OPTIONS request with this one would be a preflight.
  headers.delete('access-control-request-method')
  for (const [name, value] of Object.entries(credential)) headers.set(name, value)
  if (body.length > 0) headers.set('content-type', 'application/json').set('content-length', String(body.length))
  Object.assign(message, { method, url: target, httpVersion: '1.1', rawHeaders: [...headers].flat() })
  if (body.length > 0) message.push(body)
  message.push(null)
  return message
}
