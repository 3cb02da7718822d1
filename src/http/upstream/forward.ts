/** Sends a permitted request upstream and its answer back. Takes only a permit that `decide` made. */
import { isPermit } from '../../core/decide/decide.ts'
import {
  answerKind,
  forwardedAnswerHeaders,
  narrowed,
  streamForm,
  upstreamHeaders,
  type UpstreamHeaderRules,
} from '../../core/wire/headers.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { deletesThread } from '../../core/route/routes.ts'
import type { RuntimeFacts, UpstreamKind } from '../../core/route/transport.ts'
import type { Logger } from '../../observe/log.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import { refusalAnswer, type Answer } from '../pipeline/answer.ts'
import { toldEnd, wholeBody, type AnswerBody } from './answer-body.ts'
import { certainlyNotStarted, type Settlement } from '../pipeline/settlement.ts'
import type { Identity } from '../pipeline/identity.ts'
import type { AnswerForm, AnswerOwner, AnswerRules, OpenAnswers } from './open-answers.ts'
import type { Payload } from '../pipeline/payload.ts'
import type { Written } from '../lists/rewriting.ts'
import type { TransportState } from './transport-probe.ts'
import { upstreamRequest } from './request.ts'
import type { Upstream, UpstreamAnswer, UpstreamFailure, UpstreamRequest } from './upstream.ts'
import type { Authorized, Exchange } from '../pipeline/stages.ts'

export interface ForwardParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly headerRules: UpstreamHeaderRules
  readonly identity: Pick<Identity, 'headers'>
  readonly transport: Pick<TransportState, 'suspect'>
  readonly settlement: Settlement
  readonly answers: OpenAnswers
  readonly answerRules: AnswerRules
  readonly metrics: RequestMetrics
  readonly log: Logger
}

export interface Forwarder {
  ask(request: Authorized, options?: AskOptions): Promise<UpstreamAnswer | UpstreamFailure>
  /** `outdated`: has to be decided again. */
  pass(request: Authorized, onSent: () => void): Promise<Answer | 'passed' | 'outdated'>
  /** Only if the caller may still have it. */
  deliver(answer: UpstreamAnswer, request: Authorized): Promise<Answer | 'passed' | 'outdated'>
  deliverWritten(
    written: Pick<Written, 'body' | 'tellsOf'> & { readonly status?: number },
    request: Authorized,
  ): Promise<Answer | 'passed' | 'outdated'>
  /** For use after the upstream has answered. */
  refusal(request: Authorized): Refusal | Promise<Refusal | null> | null
  unusable(refusal: Refusal, exchange: Exchange): Answer
  failed(failure: UpstreamFailure, exchange: Exchange): Answer
}

export interface AskOptions {
  readonly payload?: Payload
  readonly query?: readonly (readonly [string, string])[]
  /** The decision is then final. */
  readonly onSent?: () => void
}

export function makeForwarder(parts: ForwardParts): Forwarder {
  const { upstream, settlement, answers, answerRules, metrics, log } = parts

  const ask: Forwarder['ask'] = async (request, options = {}) => {
    const { permit, exchange } = request
    if (!isPermit(permit)) throw new Error('nothing is forwarded without a permit')
    const payload = options.payload ?? { kind: 'none' }
    if (permit.descriptor.route.own === true || payload.kind === 'own')
      throw new Error('what the gateway answers itself goes to nobody')
    const own: Record<string, string> = {
      ...parts.identity.headers(permit.principal, permit.descriptor),
      'x-request-id': exchange.head.id,
    }
    if (payload.kind === 'json') own['content-type'] = 'application/json'
    if (payload.kind === 'stream') {
      own['content-type'] = payload.type
      if (payload.length !== undefined) own['content-length'] = payload.length
    }
    const body = payload.kind === 'none' ? undefined : payload.kind === 'json' ? payload.bytes : payload.body
    const headers = upstreamHeaders(exchange.head.lines, narrowed(parts.headerRules, permit.rule), own)
    const question = { descriptor: permit.descriptor, query: options.query, headers, body }
    const result = await sendWhileAllowed(upstreamRequest(request.upstream, parts.basePath, question), request, options.onSent)
    if (isTelling(result, request.upstream)) parts.transport.suspect()
    return result
  }

  /** Connecting takes time: if the permit has ended by then, sends nothing. */
  const sendWhileAllowed = async (
    message: UpstreamRequest,
    request: Authorized,
    onSent: (() => void) | undefined,
  ): Promise<UpstreamAnswer | UpstreamFailure> => {
    const { snapshot, signal } = request.exchange
    const { threadId } = request.permit.descriptor.ids
    const owner = ownerOf(request)
    const known = { isOutdated: false }
    const mayBegin = (): boolean => {
      const isChanged = threadId !== undefined && snapshot.changedSince(request.permittedAt, [threadId])
      known.isOutdated = snapshot.isReplaced() || isChanged || answers.refusal(owner, AT_EXPIRY) !== null
      if (!known.isOutdated) onSent?.()
      return !known.isOutdated
    }
    const result = await upstream.send({ ...message, mayBegin }, signal)
    return known.isOutdated && result.outcome === 'failed' && !result.maybeSent ? OUTDATED : result
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

  const ownerOf = ({ permit, caller }: Authorized, tellsOf: readonly string[] = []): AnswerOwner => ({
    userId: permit.principal.id,
    credential: caller.credential,
    tellsOf,
    // The answer to a deletion holds nothing of the thread, and the deletion itself ends the access to it.
    ...(deletesThread(permit.descriptor.route) ? {} : { permit }),
  })

  /** Why an answer may not begin any more: what allowed its request may have ended while the upstream worked. */
  const lateRefusal = (owner: AnswerOwner, { exchange, permittedAt }: Authorized): Refusal | Promise<Refusal | null> | null => {
    const late = answers.refusal(owner, answerRules)
    return late ?? (owner.permit === undefined ? null : exchange.snapshot.refusal(owner.permit, permittedAt))
  }

  const send = (
    body: AnswerBody,
    head: (length?: number) => void,
    form: AnswerForm,
    owner: AnswerOwner,
    { exchange, takePlace, permittedAt }: Authorized,
  ): 'passed' => {
    const { response, record, snapshot } = exchange
    const onEnded = (why: Exchange['record']['ended']): void => void (record.ended = why)
    const begun = answers.pass(body, { response, head, takePlace, onEnded }, form, owner, answerRules)
    // The head tells the caller at once that there is an answer, whenever its body comes.
    if (!begun && form !== 'plain') response.flushHeaders()
    // An answer that was written whole is not checked again.
    if (!response.writableFinished) snapshot.opened(owner, permittedAt)
    return 'passed'
  }

  const ifStillAllowed = async (
    request: Authorized,
    body: AnswerBody,
    begin: (owner: AnswerOwner) => Answer | 'passed',
    owner = ownerOf(request),
  ): Promise<Answer | 'passed' | 'outdated'> => {
    const { snapshot, record } = request.exchange
    // The rules that were replaced decided which agents the answer names.
    if (request.permit.descriptor.route.id === 'info' && snapshot.isReplaced()) {
      body.destroy()
      return 'outdated'
    }
    let late: Refusal | null
    try {
      const refusal = lateRefusal(owner, request)
      late = refusal instanceof Promise ? await refusal : refusal
    } catch (error) {
      body.destroy()
      throw error
    }
    if (late === null) return begin(owner)
    body.destroy()
    record.reason = late.reason
    record.rule = late.rule
    return refusalAnswer(late)
  }

  const deliver: Forwarder['deliver'] = (answer, request) => {
    const { exchange } = request
    const kind = answerKind(answer.status, answer.headers)
    return ifStillAllowed(request, answer.body, (owner) => {
      if (kind === 'redirect' || kind === 'html') {
        answer.body.destroy()
        // An error keeps its status; a page or redirect does not count as an answer (runtime-behaviour.md, "Clients").
        const status = kind === 'html' && answer.status >= 400 ? answer.status : undefined
        return refused(refuse(kind === 'redirect' ? 'upstream-redirect' : 'upstream-html'), exchange, status)
      }
      const headers = Object.assign(forwardedAnswerHeaders(answer.headers, kind), merged(answer, exchange))
      const head = (length?: number): void => {
        // An answer without content has no length either (RFC 9110 §8.6).
        if (length !== undefined && answer.status !== 204) headers['content-length'] = String(length)
        exchange.response.writeHead(answer.status, headers)
      }
      return send(answer.body, head, kind === 'stream' ? streamForm(answer.headers) : 'plain', owner, request)
    })
  }

  const deliverWritten: Forwarder['deliverWritten'] = ({ body: written, tellsOf, status = 200 }, request) => {
    const { exchange, permit } = request
    const body = wholeBody(typeof written === 'string' ? Buffer.from(written) : written)
    const begin = (owner: AnswerOwner): 'passed' => {
      const head = (length = 0): void => {
        exchange.response.writeHead(status, {
          'content-type': 'application/json',
          'cache-control': permit.descriptor.route.own === true ? 'no-store' : 'private, no-store',
          ...exchange.head.answerHeaders,
          'content-length': length,
        })
      }
      return send(body, head, 'plain', owner, request)
    }
    return ifStillAllowed(request, body, begin, ownerOf(request, tellsOf))
  }

  const pass: Forwarder['pass'] = async (request, onSent) => {
    const { permit, exchange, payload, begun } = request
    const { endRun } = begun
    const result = await ask(request, { payload, onSent })
    if (endRun !== null && !(result.outcome === 'answered' && result.status < 300)) endRun(certainlyNotStarted(result))
    const settling = settlement.settle(permit, begun, payload, result)
    if (settling !== null) await settling
    if (result.outcome === 'answered') {
      return deliver(endRun === null ? result : { ...result, body: toldEnd(result.body, endRun) }, request)
    }
    if (payload.kind !== 'stream') return result.isOutdated === true ? 'outdated' : failed(result, exchange)
    // A recording that is not sent is discarded, or its connection would stall. It cannot be read again.
    payload.body.destroy()
    if (result.isOutdated !== true) return failed(result, exchange)
    return refused(answers.refusal(ownerOf(request), AT_EXPIRY) ?? refuse('rules-changed'), exchange)
  }

  const refusal: Forwarder['refusal'] = (request) => lateRefusal({ ...ownerOf(request), permit: request.permit }, request)

  return { ask, pass, deliver, deliverWritten, refusal, failed, unusable: refused }
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
}

/** True for a result that a changed transport or an absent upstream would explain. */
function isTelling(result: UpstreamAnswer | UpstreamFailure, { transport }: RuntimeFacts): boolean {
  if (result.outcome === 'answered') return TELLING[transport].includes(result.status)
  return result.refusal.reason === 'upstream-unreachable' || result.refusal.reason === 'upstream-broke-off'
}

/** The gateway's own answer headers; `Vary` is joined, not replaced. */
function merged(answer: UpstreamAnswer, exchange: Exchange): Readonly<Record<string, string>> {
  const theirs = answer.headers['vary']
  const ours = exchange.head.answerHeaders['vary']
  if (theirs === undefined || ours === undefined) return exchange.head.answerHeaders
  return { ...exchange.head.answerHeaders, vary: `${String(theirs)}, ${ours}` }
}
