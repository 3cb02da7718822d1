/** Sends a permitted request upstream and its answer back. Takes only a permit that `decide` made. */
import type { ServerResponse } from 'node:http'
import { isPermit } from '../../core/decide/decide.ts'
import {
  answerKind,
  forwardedAnswerHeaders,
  streamForm,
  upstreamHeaders,
  type UpstreamHeaderRules,
} from '../../core/wire/headers.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import type { UpstreamKind } from '../../core/route/transport.ts'
import type { Logger } from '../../observe/log.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import { refusalAnswer, type Answer } from '../pipeline/answer.ts'
import { wholeBody, type AnswerBody } from './answer-body.ts'
import { certainlyNotStarted, type Settlement } from '../pipeline/settlement.ts'
import type { EndRun } from '../pipeline/claim.ts'
import type { IdentityHeaders } from '../pipeline/identity.ts'
import type { SeenEnd } from '../pipeline/run-budget.ts'
import type { AnswerForm, AnswerOwner, AnswerRules, OpenAnswers } from './open-answers.ts'
import type { Written } from '../lists/rewriting.ts'
import type { TransportState } from './transport-probe.ts'
import { upstreamRequest, type Upstream, type UpstreamAnswer, type UpstreamFailure } from './upstream.ts'
import type { Authorized, Exchange, Payload } from '../pipeline/stages.ts'

export interface ForwardParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly headerRules: UpstreamHeaderRules
  readonly identity: IdentityHeaders
  readonly transport: Pick<TransportState, 'suspect'>
  readonly settlement: Settlement
  readonly answers: OpenAnswers
  readonly answerRules: AnswerRules
  readonly metrics: RequestMetrics
  readonly log: Logger
}

/** `outdated`: has to be decided again. */
export type Delivered = Answer | 'passed' | 'outdated'

export interface Forwarder {
  ask(request: Authorized, options?: AskOptions): Promise<UpstreamAnswer | UpstreamFailure>
  /** Calls `onDecided` once the decision is final, before anything is sent. It may be called again. */
  pass(request: Authorized, onDecided: () => void): Promise<Delivered>
  /** Only if the caller may still have it. */
  deliver(answer: UpstreamAnswer, request: Authorized): Delivered | Promise<Delivered>
  deliverWritten(
    written: Pick<Written, 'body' | 'tellsOf' | 'headers'> & { readonly status?: number },
    request: Authorized,
  ): Delivered | Promise<Delivered>
  /** For use after the upstream has answered. */
  refusal(request: Authorized): Refusal | Promise<Refusal | null> | null
  unusable(refusal: Refusal, exchange: Exchange): Answer
  failed(failure: UpstreamFailure, exchange: Exchange): Answer
}

export interface AskOptions {
  readonly payload?: Payload
  readonly query?: readonly (readonly [string, string])[]
  /** Another question to the upstream by which the gateway answers the request. */
  readonly descriptor?: RouteDescriptor
  /** The decision is then final. */
  readonly onSent?: () => void
}

export function makeForwarder(parts: ForwardParts): Forwarder {
  const { upstream, settlement, answers, answerRules, metrics, log } = parts

  /** Connecting takes time: if the permit has ended by then, sends nothing. */
  const askFor = async (
    request: Authorized,
    owner: AnswerOwner,
    { payload = NO_PAYLOAD, query, descriptor: question, onSent }: AskOptions,
  ): Promise<UpstreamAnswer | UpstreamFailure> => {
    const { permit, exchange, permittedAt } = request
    const { descriptor } = permit
    if (!isPermit(permit)) throw new Error('nothing is forwarded without a permit')
    if (descriptor.route.own === true || payload.kind === 'own') throw new Error('the gateway answers this request itself')
    const own: Record<string, string> = { ...parts.identity(permit.principal, descriptor), 'x-request-id': exchange.head.id }
    if (payload.kind === 'json') own['content-type'] = 'application/json'
    if (payload.kind === 'stream') {
      own['content-type'] = payload.type
      if (payload.length !== undefined) own['content-length'] = payload.length
    }
    const body = payload.kind === 'none' ? undefined : payload.kind === 'json' ? payload.bytes : payload.body
    const headers = upstreamHeaders(exchange.head.lines, parts.headerRules, own, permit.rule.passes.headers)
    const known = { isOutdated: false }
    const mayBegin = (): boolean => {
      const { snapshot } = exchange
      known.isOutdated = snapshot.outdated(permittedAt, descriptor.ids.threadId) || answers.refusal(owner, AT_EXPIRY) !== null
      if (!known.isOutdated) onSent?.()
      return !known.isOutdated
    }
    const traced = exchange.trace?.begin('upstream')
    traced?.inject(headers)
    const asked = { descriptor: question ?? descriptor, query, headers, body, mayBegin }
    const sent = upstreamRequest(request.upstream, parts.basePath, asked)
    const sentAt = performance.now()
    const result = await upstream.send(sent, exchange.signal)
    const taken = performance.now() - sentAt
    exchange.timing.waited += taken
    traced?.end(result.outcome === 'answered' ? { status: result.status } : { fault: result.refusal.reason })
    if (result.outcome === 'answered') metrics.took('upstream', descriptor.route.id, result.status, taken)
    if (known.isOutdated && result.outcome === 'failed' && !result.maybeSent) return OUTDATED
    // A changed transport or an absent upstream would explain such a result.
    const isTelling =
      result.outcome === 'answered'
        ? TELLING[request.upstream.transport].includes(result.status)
        : result.refusal.reason === 'upstream-unreachable' || result.refusal.reason === 'upstream-broke-off'
    if (isTelling) parts.transport.suspect()
    return result
  }

  const refused = (refusal: Refusal, { record }: Exchange, status?: number): Answer => {
    record.reason = refusal.reason
    metrics.upstreamFailed(refusal.reason)
    return refusalAnswer(refusal, status)
  }

  const failed: Forwarder['failed'] = ({ refusal, detail }, exchange) => {
    if (refusal.reason === 'caller-left') {
      exchange.record.reason = 'caller-left'
      return refusalAnswer(refusal)
    }
    log.warn({ requestId: exchange.head.id, reason: refusal.reason, detail }, 'the upstream gave no answer')
    return refused(refusal, exchange)
  }

  const send = (
    body: AnswerBody,
    head: (length?: number) => void,
    form: AnswerForm,
    owner: AnswerOwner,
    { exchange, takePlace, permittedAt, budget }: Authorized,
  ): 'passed' => {
    const { response, record, snapshot, timing } = exchange
    timing.answeredAt = performance.now()
    const onEnded = (why: Exchange['record']['ended']): void => void (record.ended = why)
    const state = answers.pass(body, { response, head, takePlace, budget, onEnded }, form, owner, answerRules)
    // An answer that the caller has whole is not checked again.
    if (state === 'over') return 'passed'
    // The head tells the caller at once that there is an answer, whenever its body comes.
    if (state === 'waiting' && form !== 'plain') response.flushHeaders()
    snapshot.opened(owner, permittedAt)
    return 'passed'
  }

  /** Why an answer may not begin any more: what allowed its request may have ended while the upstream worked. */
  const lateRefusal = (owner: AnswerOwner, { exchange, permittedAt }: Authorized): Refusal | Promise<Refusal | null> | null => {
    const late = answers.refusal(owner, answerRules)
    return late ?? (owner.permit === undefined ? null : exchange.snapshot.refusal(owner.permit, permittedAt))
  }

  /** Calls `begin` at once where nothing has to be looked up. */
  const ifStillAllowed = (
    request: Authorized,
    body: AnswerBody,
    owner: AnswerOwner,
    begin: () => Answer | 'passed',
  ): Delivered | Promise<Delivered> => {
    const { snapshot, record } = request.exchange
    // The rules that were replaced decided which agents the answer names.
    if (request.permit.descriptor.route.id === 'info' && snapshot.isReplaced()) {
      body.destroy()
      return 'outdated'
    }
    const late = lateRefusal(owner, request)
    if (late === null) return begin()
    const decided = (refusal: Refusal | null): Delivered => {
      if (refusal === null) return begin()
      body.destroy()
      record.reason = refusal.reason
      record.rule = refusal.rule
      return refusalAnswer(refusal)
    }
    if (!(late instanceof Promise)) return decided(late)
    return late.then(decided, (error: unknown) => {
      body.destroy()
      throw error
    })
  }

  const deliverTo = (owner: AnswerOwner, answer: UpstreamAnswer, request: Authorized): Delivered | Promise<Delivered> => {
    const { exchange } = request
    const { status, body } = answer
    return ifStillAllowed(request, body, owner, () => {
      const kind = answerKind(status, answer.headers)
      if (kind === 'redirect' || kind === 'html') {
        body.destroy()
        // An error keeps its status; a page or redirect does not count as an answer (runtime-behaviour.md, "Clients").
        const kept = kind === 'html' && status >= 400 ? status : undefined
        return refused(refuse(kind === 'redirect' ? 'upstream-redirect' : 'upstream-html'), exchange, kept)
      }
      const { answerHeaders } = exchange.head
      const headers = Object.assign(forwardedAnswerHeaders(answer.headers, kind), answerHeaders)
      const theirs = answer.headers['vary']
      if (theirs !== undefined && answerHeaders['vary'] !== undefined)
        headers['vary'] = `${String(theirs)}, ${answerHeaders['vary']}`
      // Bound, because what lives as long as the answer must not keep the request.
      const head = writeHead.bind(null, exchange.response, status, headers)
      return send(body, head, kind === 'stream' ? streamForm(answer.headers) : 'plain', owner, request)
    })
  }

  const pass: Forwarder['pass'] = async (request, onDecided) => {
    const { permit, exchange, payload, begun, budget } = request
    const { endRun } = begun
    const owner = ownerOf(request)
    const noteSent = (): void => {
      budget?.sent()
      onDecided()
    }
    const result = await askFor(request, owner, { payload, onSent: budget === null ? onDecided : noteSent })
    const isOutdated = result.outcome === 'failed' && result.isOutdated === true
    const isAccepted = result.outcome === 'answered' && result.status < 300
    if (endRun !== null && !isAccepted) endRun(certainlyNotStarted(result) ? 'over' : 'unknown')
    if (!isAccepted && !isOutdated) budget?.over(endOf(result))
    const settling = settlement.settle(permit, begun, payload, result)
    if (settling !== null) {
      const traced = exchange.trace?.begin('store')
      await settling
      traced?.end()
    }
    // A recording cannot be read again for another decision.
    if (!isOutdated || payload.kind === 'stream') onDecided()
    if (result.outcome === 'answered') {
      const { answersEarly } = permit.descriptor.route
      // Bound, as the head is.
      if (endRun !== null) result.body.onOver = runOver.bind(null, endRun, answersEarly === true)
      return deliverTo(owner, result, request)
    }
    if (payload.kind !== 'stream') return isOutdated ? 'outdated' : failed(result, exchange)
    // A recording that is not sent is discarded, or its connection would stall.
    payload.body.destroy()
    if (!isOutdated) return failed(result, exchange)
    return refused(answers.refusal(owner, AT_EXPIRY) ?? refuse('rules-changed'), exchange)
  }

  return {
    ask: (request, options = {}) => askFor(request, ownerOf(request), options),
    pass,
    deliver: (answer, request) => deliverTo(ownerOf(request), answer, request),
    deliverWritten({ body: written, tellsOf, headers, status = 200 }, request) {
      const { exchange, permit } = request
      const body = wholeBody(typeof written === 'string' ? Buffer.from(written) : written)
      const owner = ownerOf(request, tellsOf)
      const head = writeHead.bind(null, exchange.response, status, {
        ...headers,
        'content-type': 'application/json',
        'cache-control': permit.descriptor.route.own === true ? 'no-store' : 'private, no-store',
        ...exchange.head.answerHeaders,
      })
      return ifStillAllowed(request, body, owner, () => send(body, head, 'plain', owner, request))
    },
    refusal: (request) => lateRefusal({ ...ownerOf(request), permit: request.permit }, request),
    failed,
    unusable: refused,
  }
}

function writeHead(response: ServerResponse, status: number, headers: Record<string, string | string[]>, length?: number): void {
  // An answer without content has no length either (RFC 9110 §8.6).
  if (length !== undefined && status !== 204) headers['content-length'] = String(length)
  response.writeHead(status, headers)
}

function runOver(endRun: EndRun, answersEarly: boolean, how: 'whole' | 'broken-off'): void {
  endRun(how === 'whole' && !answersEarly ? 'over' : 'unknown')
}

/** How a run ended that the upstream has not accepted. */
function endOf(result: UpstreamAnswer | UpstreamFailure): SeenEnd {
  if (certainlyNotStarted(result)) return 'not-started'
  // A gateway that no longer waits does not stop a run.
  return result.outcome === 'failed' && result.refusal.reason === 'upstream-timeout' ? 'gateway' : 'upstream'
}

const NO_PAYLOAD: Payload = { kind: 'none' }

function ownerOf({ permit, caller, exchange }: Authorized, tellsOf?: readonly string[]): AnswerOwner {
  return {
    requestId: exchange.head.id,
    userId: permit.principal.id,
    credential: caller.credential,
    tellsOf,
    // The answer to a deletion holds nothing of the thread, and the deletion itself ends the access to it.
    permit: permit.descriptor.route.deletesThread === true ? undefined : permit,
  }
}

/** A request begins only with a valid token, whatever an answer may outlast. */
const AT_EXPIRY = { tokenExpiry: 'close', grace: 0 } as const

const OUTDATED: UpstreamFailure = {
  outcome: 'failed',
  refusal: refuse('rules-changed'),
  maybeSent: false,
  isOutdated: true,
  detail: 'access may have changed before anything was sent',
}

/** Statuses with which a runtime of the other transport answers (runtime-behaviour.md, "Single-route transport"). */
const TELLING: Readonly<Record<UpstreamKind, readonly number[]>> = {
  'multi-route': [400, 404, 405, 415],
  'single-route': [404],
  endpoint: [],
  langgraph: [],
}
