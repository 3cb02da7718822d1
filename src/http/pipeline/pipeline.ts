/** The way of a request: target, authenticate, classify, read the body, authorize, forward, settle. */
import { isPreflight, preflightHeaders, type CorsRules } from '../../core/wire/cors.ts'
import type { Enforcement } from '../../core/decide/decide.ts'
import type { Rules } from '../../core/decide/rules.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { KEY_SET_TARGET } from '../../core/route/target.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import { StoreUnavailable } from '../../store/port/state.ts'
import { refusalAnswer, type Answer } from './answer.ts'
import type { Authentication } from './authentication.ts'
import type { Authorize } from './authorization.ts'
import { admit, classify, makeTargetCache, type CachedTarget } from './classification.ts'
import { releaseLimits, type LimitLeases } from './limit-leases.ts'
import type { ReadRequestBody } from './payload.ts'
import type { Caller, Classified, Exchange, Pipeline, Undecided, UpstreamBinding } from './stages.ts'

export interface PipelineParts {
  /** No upstream's path is within another's. The first one answers for everything outside all paths. */
  readonly bindings: readonly [UpstreamBinding, ...UpstreamBinding[]]
  readonly cors: CorsRules
  /** Null if there are none. */
  readonly keySet: string | null
  readonly rules: Rules
  readonly enforcement: Enforcement
  readonly authentication: Authentication
  readonly readBody: ReadRequestBody
  readonly authorize: Authorize
  readonly metrics: Pick<RequestMetrics, 'dropped'>
  readonly state: { readonly isShuttingDown: boolean }
}

/** The most decisions for a request whose access changes each time before it is sent. */
const MOST_DECISIONS = 8

export function makePipeline(parts: PipelineParts): Pipeline {
  const { authentication, readBody, authorize, rules } = parts
  const targetOf = makeTargetCache(parts.bindings)

  const admitCaller = (
    caller: Caller | Refusal,
    target: CachedTarget<UpstreamBinding>,
    exchange: Exchange,
  ): Classified | Answer => {
    if ('outcome' in caller) return refused(caller, exchange)
    if (parts.state.isShuttingDown) return refused(refuse('shutting-down'), exchange)
    const upstream = target.binding.transport.facts
    if (upstream === null) return refused(refuse('upstream-transport-pending'), exchange)
    const dropped = target.target.droppedQueryNames
    if (dropped > 0) parts.metrics.dropped('query-name', dropped)
    const classified = classify(target, upstream, rules, exchange, caller)
    return classified.outcome === 'refused' ? refused(classified, exchange) : classified
  }

  const carryOut = async (request: Undecided): Promise<Answer | 'passed'> => {
    const { exchange, binding, body } = request
    const { record } = exchange
    const onPermitted = (): void => {
      body.forget()
      decided(exchange, 'permitted')
    }
    try {
      for (let attempt = 0; attempt < MOST_DECISIONS; attempt += 1) {
        const traced = exchange.trace?.begin('decide')
        const authorized = await authorize(request)
        traced?.end()
        if (authorized.outcome === 'refused') return refused(authorized, exchange)
        if (authorized.outcome === 'replaced') return await handOver(request)
        record.reason = 'permitted'
        record.rule = authorized.permit.rule
        record.observed = authorized.permit.observed
        const done = await binding.forward(authorized, onPermitted)
        if (done === 'passed') return done
        if (done !== 'outdated') return 'outcome' in done ? refused(done, exchange) : done
        record.observed = null
      }
      return refused(refuse('store-unavailable'), exchange)
    } catch (error) {
      if (error instanceof StoreUnavailable) return refused(refuse('store-unavailable'), exchange)
      throw error
    }
  }

  return {
    cors: parts.cors,
    enforcement: parts.enforcement,
    bindingOf: (key) => parts.bindings.find((binding) => binding.key === key),

    admit(message, exchange) {
      const { head, record } = exchange
      const target = targetOf(head.target)
      if (target.outcome === 'refused') return refused(target, exchange)
      record.upstream = target.binding
      exchange.snapshot.upstreamKey = target.binding.key
      if (head.fault !== null) return refused(head.fault, exchange)
      if (head.method === 'OPTIONS' && isPreflight(head.method, head.lines)) {
        const headers = preflightHeaders(head.lines, parts.cors)
        return headers === null ? refused(refuse('origin-not-listed'), exchange) : publicAnswer(exchange, 204, headers, '')
      }
      // Public by nature, and fetched by services that have no user token.
      if (head.target === KEY_SET_TARGET && head.method === 'GET' && parts.keySet !== null) {
        const headers = { 'content-type': 'application/jwk-set+json', 'cache-control': 'public, max-age=300' }
        return publicAnswer(exchange, 200, headers, parts.keySet)
      }
      const traced = exchange.trace?.begin('authenticate')
      const caller = authentication.authenticate(exchange, message.socket)
      if (caller instanceof Promise) {
        return caller.then((known) => {
          traced?.end()
          return admitCaller(known, target, exchange)
        })
      }
      traced?.end()
      return admitCaller(caller, target, exchange)
    },

    async complete(request, message) {
      const { exchange, binding, caller, upstream } = request
      const { response, signal } = exchange
      const { key, principal } = caller
      const leases: LimitLeases = { caller: key, principal, taken: [], streams: null, budget: null, isOver: false }
      response.once('close', () => {
        if (!response.writableFinished) signal.abort()
        releaseLimits(leases)
      })
      // Authentication may have taken long enough for the caller to leave: then nothing begins.
      if (response.destroyed) return refused(refuse('caller-left'), exchange)
      const reading = readBody(request, message)
      const read = reading instanceof Promise ? await reading : reading
      if (read.outcome === 'refused') return refused(read, exchange)
      try {
        const match = read.match ?? request.route?.match
        if (match === undefined) throw new Error('a body was read without its rules')
        return await carryOut({ exchange, binding, caller, upstream, body: read, match, leases })
      } finally {
        read.release()
      }
    },

    async resume(request) {
      const { exchange, caller, binding, body } = request
      exchange.record.principal = caller.principal
      const upstream = binding.transport.facts
      if (upstream === null) return refused(refuse('upstream-transport-pending'), exchange)
      // The body was read for an upstream of the other transport.
      if (upstream.transport !== request.upstream.transport) return refused(refuse('rules-changed'), exchange)
      const match = admit({ ...request, upstream }, body.descriptor, rules)
      return match.outcome === 'refused' ? refused(match, exchange) : carryOut({ ...request, upstream, match })
    },
  }
}

export function refused(refusal: Refusal, exchange: Exchange): Answer {
  exchange.record.reason = refusal.reason
  exchange.record.rule = refusal.rule
  decided(exchange, refusal)
  return refusalAnswer(refusal)
}

function decided(exchange: Exchange, outcome: Refusal | 'permitted'): void {
  if (exchange.isDecided) return
  exchange.isDecided = true
  exchange.snapshot.decided(exchange, outcome)
}

function publicAnswer({ record }: Exchange, status: number, headers: Answer['headers'], body: string): Answer {
  record.reason = 'permitted'
  return { status, headers, body }
}

/** The active snapshot decides a request whose own snapshot was replaced before the request was sent. */
async function handOver(request: Undecided): Promise<Answer | 'passed'> {
  const { exchange, caller } = request
  const next = exchange.snapshot.successor(caller.principal)
  if (next.outcome === 'refused') return refused(next, exchange)
  const { snapshot, binding, principal } = next
  exchange.snapshot = snapshot
  if (exchange.response.closed) snapshot.release()
  return snapshot.pipeline.resume({ ...request, binding, caller: { ...caller, principal } })
}
