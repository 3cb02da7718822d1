/**
 * Sends a permitted request upstream and its answer back. The forwarder takes only a permit that `decide` made.
 * It writes the target from the descriptor and the body from what was checked, and then updates the ownership table.
 */
import type { ServerResponse } from 'node:http'
import { isPermit, type Permit } from '../../core/decide/decide.ts'
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
import type { Metrics } from '../../observe/metrics.ts'
import type { Access } from '../pipeline/access.ts'
import { refusalAnswer, type Answer } from '../pipeline/answer.ts'
import { toldEnd, wholeBody, type AnswerBody } from './answer-body.ts'
import { certainlyNotStarted, type Claims } from '../pipeline/claims.ts'
import type { ClientDisconnect } from '../pipeline/client-disconnect.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Identity } from '../pipeline/identity.ts'
import type { AnswerForm, AnswerOwner, AnswerRules, OpenAnswers } from './open-answers.ts'
import type { Payload } from '../pipeline/payload.ts'
import type { Written } from '../lists/rewriting.ts'
import type { TransportState } from './transport-probe.ts'
import { upstreamRequest } from './request.ts'
import type { Upstream, UpstreamAnswer, UpstreamFailure, UpstreamRequest } from './upstream.ts'

export interface ForwardParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly headerRules: UpstreamHeaderRules
  readonly identity: Pick<Identity, 'headers'>
  readonly transport: Pick<TransportState, 'suspect'>
  readonly claims: Claims
  readonly answers: OpenAnswers
  readonly answerRules: AnswerRules
  readonly access: Access
  readonly metrics: Metrics
  readonly log: Logger
}

export interface Forwarder {
  /** Sends a permitted request, for answers that the gateway reads itself. */
  ask(
    permit: Permit,
    exchange: Exchange,
    signal: ClientDisconnect,
    options?: AskOptions,
  ): Promise<UpstreamAnswer | UpstreamFailure>
  /** Gives the gateway's own answer where the request fails, or `outdated` where it has to be decided again. */
  pass(
    permit: Permit,
    exchange: Exchange,
    payload: Payload,
    response: ServerResponse,
    signal: ClientDisconnect,
  ): Promise<Answer | 'passed' | 'outdated'>
  /** Passes on an answer from `ask`, if its caller may still have it. */
  deliver(
    answer: UpstreamAnswer,
    permit: Permit,
    exchange: Exchange,
    response: ServerResponse,
  ): Promise<Answer | 'passed' | 'outdated'>
  /** Sends JSON that the gateway wrote from the upstream's answer or from the table, if its caller may still have it. */
  deliverWritten(
    written: Pick<Written, 'body' | 'tellsOf'> & { readonly status?: number },
    permit: Permit,
    exchange: Exchange,
    response: ServerResponse,
  ): Promise<Answer | 'passed' | 'outdated'>
  /** Why what was permitted is no longer done, where the gateway itself acts after the upstream has answered. */
  refusal(permit: Permit, exchange: Exchange): Refusal | Promise<Refusal | null> | null
  unusable(refusal: Refusal, exchange: Exchange): Answer
  failed(failure: UpstreamFailure, exchange: Exchange): Answer
}

export interface AskOptions {
  readonly payload?: Payload
  readonly query?: readonly (readonly [string, string])[]
}

export function makeForwarder(parts: ForwardParts): Forwarder {
  const { upstream, claims, answers, answerRules, access, metrics, log } = parts

  const ask: Forwarder['ask'] = async (permit, exchange, signal, options = {}) => {
    if (!isPermit(permit)) throw new Error('nothing is forwarded without a permit')
    if (exchange.upstream === null) throw new Error('nothing is forwarded to an upstream that nobody knows')
    const payload = options.payload ?? { kind: 'none' }
    if (permit.descriptor.route.own === true || payload.kind === 'own')
      throw new Error('what the gateway answers itself goes to nobody')
    const own: Record<string, string> = {
      ...parts.identity.headers(permit.principal, permit.descriptor),
      'x-request-id': exchange.id,
    }
    if (payload.kind === 'json') own['content-type'] = 'application/json'
    if (payload.kind === 'stream') {
      own['content-type'] = payload.type
      if (payload.length !== undefined) own['content-length'] = payload.length
    }
    const body = payload.kind === 'none' ? undefined : payload.kind === 'json' ? payload.bytes : payload.body
    const headers = upstreamHeaders(exchange.lines, narrowed(parts.headerRules, permit.rule), own)
    const question = { descriptor: permit.descriptor, query: options.query, headers, body }
    const request = upstreamRequest(exchange.upstream, parts.basePath, question)
    const result = await sendWhileAllowed(request, permit, exchange, signal)
    if (isTelling(result, exchange.upstream)) parts.transport.suspect()
    return result
  }

  /**
   * Sends a request if its permit lasts until there is a connection: connecting takes time.
   * Otherwise nothing is sent, and the request has to be decided again.
   */
  const sendWhileAllowed = async (
    request: UpstreamRequest,
    permit: Permit,
    exchange: Exchange,
    signal: ClientDisconnect,
  ): Promise<UpstreamAnswer | UpstreamFailure> => {
    const { threadId } = permit.descriptor.ids
    const owner = ownerOf(permit, exchange)
    const known = { isOutdated: false }
    const mayBegin = (): boolean => {
      const isChanged = threadId !== undefined && access.changedSince(exchange.permittedAt, [threadId])
      known.isOutdated = access.isReplaced() || isChanged || answers.refusal(owner, AT_EXPIRY) !== null
      if (!known.isOutdated) exchange.onSent()
      return !known.isOutdated
    }
    const result = await upstream.send({ ...request, mayBegin }, signal)
    return known.isOutdated && result.outcome === 'failed' && !result.maybeSent ? OUTDATED : result
  }

  const refused = (refusal: Refusal, exchange: Exchange, status?: number): Answer => {
    exchange.reason = refusal.reason
    metrics.upstreamFailed(refusal.reason)
    return refusalAnswer(refusal, status)
  }

  const failed: Forwarder['failed'] = ({ refusal, detail }, exchange) => {
    if (refusal.reason === 'caller-left') {
      exchange.reason = 'caller-left'
      return refusalAnswer(refusal)
    }
    log.warn({ requestId: exchange.id, reason: refusal.reason, detail }, 'the upstream gave no answer')
    return refused(refusal, exchange)
  }

  const ownerOf = (permit: Permit, { credential }: Exchange, tellsOf: readonly string[] = []): AnswerOwner => ({
    userId: permit.principal.id,
    credential,
    tellsOf,
    // The answer to a deletion holds nothing of the thread, and the deletion itself ends the access to it.
    ...(deletesThread(permit.descriptor.route) ? {} : { permit }),
  })

  /** Why an answer may not begin any more: what allowed its request may have ended while the upstream worked. */
  const lateRefusal = (owner: AnswerOwner, { permittedAt }: Exchange): Refusal | Promise<Refusal | null> | null => {
    const late = answers.refusal(owner, answerRules)
    return late ?? (owner.permit === undefined ? null : access.refusal(owner.permit, permittedAt))
  }

  const send = (
    body: AnswerBody,
    head: (length?: number) => void,
    form: AnswerForm,
    owner: AnswerOwner,
    exchange: Exchange,
    response: ServerResponse,
  ): 'passed' => {
    const onEnded = (why: Exchange['ended']): void => void (exchange.ended = why)
    const begun = answers.pass(body, { response, head, takePlace: exchange.takePlace, onEnded }, form, owner, answerRules)
    // The head tells the caller at once that there is an answer, whenever its body comes.
    if (!begun && form !== 'plain') response.flushHeaders()
    // An answer that was written whole is not checked again.
    if (!response.writableFinished) access.opened(owner, exchange.permittedAt)
    return 'passed'
  }

  const ifStillAllowed = async (
    permit: Permit,
    exchange: Exchange,
    body: AnswerBody,
    begin: (owner: AnswerOwner) => Answer | 'passed',
    owner = ownerOf(permit, exchange),
  ): Promise<Answer | 'passed' | 'outdated'> => {
    // The rules that were replaced decided which agents the answer names.
    if (permit.descriptor.route.id === 'info' && access.isReplaced()) {
      body.destroy()
      return 'outdated'
    }
    let late: Refusal | null
    try {
      const refusal = lateRefusal(owner, exchange)
      late = refusal instanceof Promise ? await refusal : refusal
    } catch (error) {
      body.destroy()
      throw error
    }
    if (late === null) return begin(owner)
    body.destroy()
    exchange.reason = late.reason
    exchange.rule = late.rule
    return refusalAnswer(late)
  }

  const deliver: Forwarder['deliver'] = (answer, permit, exchange, response) => {
    const kind = answerKind(answer.status, answer.headers)
    return ifStillAllowed(permit, exchange, answer.body, (owner) => {
      if (kind === 'redirect' || kind === 'html') {
        answer.body.destroy()
        // An error keeps its status. A page or redirect in place of an answer is not an answer
        // (runtime-behaviour.md, "Clients": clients show nothing).
        const status = kind === 'html' && answer.status >= 400 ? answer.status : undefined
        return refused(refuse(kind === 'redirect' ? 'upstream-redirect' : 'upstream-html'), exchange, status)
      }
      const headers = Object.assign(forwardedAnswerHeaders(answer.headers, kind), merged(answer, exchange))
      const head = (length?: number): void => {
        // An answer without content has no length either (RFC 9110 §8.6).
        if (length !== undefined && answer.status !== 204) headers['content-length'] = String(length)
        response.writeHead(answer.status, headers)
      }
      return send(answer.body, head, kind === 'stream' ? streamForm(answer.headers) : 'plain', owner, exchange, response)
    })
  }

  const deliverWritten: Forwarder['deliverWritten'] = ({ body: written, tellsOf, status = 200 }, permit, exchange, response) => {
    const body = wholeBody(typeof written === 'string' ? Buffer.from(written) : written)
    const begin = (owner: AnswerOwner): 'passed' => {
      const head = (length = 0): void => {
        response.writeHead(status, {
          'content-type': 'application/json',
          'cache-control': permit.descriptor.route.own === true ? 'no-store' : 'private, no-store',
          ...exchange.answerHeaders,
          'content-length': length,
        })
      }
      return send(body, head, 'plain', owner, exchange, response)
    }
    return ifStillAllowed(permit, exchange, body, begin, ownerOf(permit, exchange, tellsOf))
  }

  const pass: Forwarder['pass'] = async (permit, exchange, payload, response, signal) => {
    const result = await ask(permit, exchange, signal, { payload })
    const { endRun } = exchange
    if (endRun !== null && !(result.outcome === 'answered' && result.status < 300)) endRun(certainlyNotStarted(result))
    const settling = claims.settle(permit, exchange, payload, result)
    if (settling !== null) await settling
    if (result.outcome === 'answered') {
      const answer = endRun === null ? result : { ...result, body: toldEnd(result.body, endRun) }
      return deliver(answer, permit, exchange, response)
    }
    if (payload.kind !== 'stream') return result.isOutdated === true ? 'outdated' : failed(result, exchange)
    // A recording that is not sent is discarded, or its connection would stall. It cannot be read again.
    payload.body.destroy()
    if (result.isOutdated !== true) return failed(result, exchange)
    return refused(answers.refusal(ownerOf(permit, exchange), AT_EXPIRY) ?? refuse('rules-changed'), exchange)
  }

  const refusal: Forwarder['refusal'] = (permit, exchange) => lateRefusal({ ...ownerOf(permit, exchange), permit }, exchange)

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

/**
 * How a runtime of the other transport answers a request for this transport, besides other causes of these statuses
 * (runtime-behaviour.md, "Single-route transport").
 */
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
  const ours = exchange.answerHeaders['vary']
  if (theirs === undefined || ours === undefined) return exchange.answerHeaders
  return { ...exchange.answerHeaders, vary: `${String(theirs)}, ${ours}` }
}
