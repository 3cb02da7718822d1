/**
 * The way of a request: read the target, authenticate, classify, gather facts, decide, transform, forward. What
 * `arrive` does needs no body; `proceed` does the rest. Each gives the answer to send, or passes the request on.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authenticate } from '../auth/authenticate.ts'
import { classify, type RouteDescriptor } from '../core/classify.ts'
import { corsHeaders, isPreflight, preflightHeaders, type CorsRules } from '../core/cors.ts'
import type { Credential } from '../core/credential.ts'
import { decide, type Facts, type Permit, type Rules } from '../core/decide.ts'
import { headerFault, headerLines, upstreamHeaders, type UpstreamHeaderRules } from '../core/headers.ts'
import type { Principal } from '../core/principal.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { QUERY_NAMES, ROUTES } from '../core/routes.ts'
import { readTarget } from '../core/target.ts'
import { hasOperation, type RuntimeFacts, type Transport } from '../core/transport.ts'
import { StoreUnavailable, type OwnershipStore } from '../store/port.ts'
import { refusalAnswer, type Answer } from './answer.ts'
import { threadKey } from './claims.ts'
import type { Exchange } from './exchange.ts'
import type { Forwarder } from './forward.ts'
import type { Identity } from './identity.ts'
import type { AskHistory } from './history.ts'
import { readEnveloped, readPayload, type Payload, type PayloadParts } from './payload.ts'
import type { Rewritten } from './rewriting.ts'
import { bridgedInfo } from './runtime-info.ts'
import type { ThreadList } from './thread-list.ts'
import type { TransportState } from './transport-probe.ts'

/** What the gate works with. */
export interface GateParts extends PayloadParts {
  readonly publicPath: string
  readonly cors: CorsRules
  readonly authenticate: Authenticate
  /** True for a credential that was revoked. */
  readonly isRevoked: (userId: string, credential: Credential) => boolean
  readonly rules: Rules
  readonly facts: Pick<Facts, 'userScoped' | 'unknownThread'>
  readonly scope: string
  readonly store: OwnershipStore
  readonly transport: TransportState
  readonly headerRules: UpstreamHeaderRules
  readonly identity: Identity
  readonly forwarder: Forwarder
  readonly list: ThreadList
  readonly askHistory: AskHistory
  /** Told that a client of this transport was let through to an upstream of the other. */
  readonly onBridged: (client: Transport) => void
  /** Told that `verify` met an upstream that does not serve thread histories. */
  readonly onHistoryUntold: () => void
  /** Told of a fault of the gateway's own. */
  readonly onFault: (error: unknown, requestId: string) => void
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly isShuttingDown: () => boolean
}

/** A request that may go on to its body. */
export interface Arrived {
  readonly outcome: 'arrived'
  readonly principal: Principal
  /** What it is about; null for an envelope on the base path, of which only the body tells. */
  readonly descriptor: RouteDescriptor | null
}

/** The gate. */
export interface Gate {
  /** Starts the record of a request. */
  open(message: IncomingMessage, id: string, now: number): Exchange
  /** Everything that needs no body. */
  arrive(message: IncomingMessage, target: string, exchange: Exchange): Promise<Arrived | Answer>
  /** The rest; answers itself, or passes the request on. */
  proceed(arrived: Arrived, message: IncomingMessage, response: ServerResponse, exchange: Exchange): Promise<Answer | 'passed'>
}

/** Where the keys of assertions are published (design, invariant 1). */
const KEY_SET = '/.well-known/jwks.json'

const LARGE = ROUTES.filter((route) => route.largeBody)

/** Makes the gate. */
export function makeGate(parts: GateParts): Gate {
  const { metrics } = parts

  const refused = (refusal: Refusal, exchange: Exchange): Answer => {
    exchange.reason = refusal.reason
    metrics.decided(exchange.route, refusal.reason)
    return refusalAnswer(refusal)
  }

  const arrive: Gate['arrive'] = async (message, rawTarget, exchange) => {
    const { lines } = exchange
    const method = message.method ?? ''
    const target = readTarget(rawTarget, parts.publicPath, QUERY_NAMES)
    if (target.outcome === 'refused') return refused(target, exchange)
    if (exchange.headerFault !== null) return refused(exchange.headerFault, exchange)
    if (isPreflight(method, lines)) {
      const headers = preflightHeaders(lines, parts.cors)
      if (headers === null) return refused(refuse('origin-not-listed'), exchange)
      exchange.reason = 'permitted'
      return { status: 204, headers, body: '' }
    }
    // Public by its nature, and asked for by those who have no token of a user's.
    if (rawTarget === KEY_SET && method === 'GET' && parts.identity.keySet !== null) {
      exchange.reason = 'permitted'
      const headers = { 'content-type': 'application/jwk-set+json', 'cache-control': 'public, max-age=300' }
      return { status: 200, headers, body: parts.identity.keySet }
    }
    const authenticated = await parts.authenticate(lines.get('authorization')?.[0]).catch((error: unknown): Refusal => {
      parts.onFault(error, exchange.id)
      return refuse('identity-failed')
    })
    if (authenticated.outcome === 'refused') return refused(authenticated, exchange)
    const { principal, credential } = authenticated
    exchange.principal = principal
    exchange.credential = credential
    const late = outdated(parts, exchange)
    if (late !== null) return refused(late, exchange)
    if (parts.isShuttingDown()) return refused(refuse('shutting-down'), exchange)
    const upstream = parts.transport.current()
    if (upstream === null) return refused(refuse('upstream-transport-pending'), exchange)
    exchange.upstream = upstream
    metrics.dropped('query-name', target.droppedQueryNames)

    // The one place for envelopes: what they ask for stands in their body alone (contract §1.3).
    if (target.segments?.length === 0) {
      if (method !== 'POST') return refused(refuse('route-unknown'), exchange)
      // The runtime would take for a param what stands in the address and not in the params.
      if (target.query.size > 0) return refused(refuse('query-beside-envelope'), exchange)
      exchange.client = 'single-route'
      return { outcome: 'arrived', principal, descriptor: null }
    }
    const descriptor = classify(method, target.segments, target.query)
    if (descriptor.outcome === 'refused') return refused(descriptor, exchange)
    const refusal = admit(descriptor, principal, exchange)
    return refusal === null ? { outcome: 'arrived', principal, descriptor } : refused(refusal, exchange)
  }

  /** What can be said without the body. */
  const admit = (descriptor: RouteDescriptor, principal: Principal, exchange: Exchange): Refusal | null => {
    exchange.route = descriptor.route.id
    if (!hasOperation(upstreamOf(exchange), descriptor.route)) return refuse('upstream-lacks-route')
    const early = decide(descriptor, principal, parts.rules, parts.facts)
    return early.outcome === 'refused' ? early : null
  }

  /** True for somebody who may use a route with a large body at all: nobody else's envelope is read beyond a small one. */
  const mayBringMuch = (principal: Principal): boolean =>
    LARGE.some((route) => {
      const descriptor = { outcome: 'classified', route, ids: {}, query: [] } as const
      return decide(descriptor, principal, parts.rules, parts.facts).outcome !== 'refused'
    })

  const proceed: Gate['proceed'] = async ({ principal, descriptor }, message, response, exchange) => {
    const left = new AbortController()
    response.once('close', () => {
      if (!response.writableFinished) left.abort()
    })
    // Authentication may have taken long enough for the caller to leave: nothing is begun for nobody.
    if (response.destroyed) return refused(refuse('caller-left'), exchange)
    const arriving = {
      message,
      lines: exchange.lines,
      onWanted: () => {
        // Only now is the body wanted: before, an answer was possible without it. HTTP/1.0 knows no such answer (RFC 9110 §10.1.1).
        if (exchange.lines.has('expect') && message.httpVersion !== '1.0') response.writeContinue()
      },
    }
    const body =
      descriptor === null
        ? await readEnveloped(parts, (asked) => admit(asked, principal, exchange), mayBringMuch(principal), arriving)
        : await readPayload(parts, descriptor, upstreamOf(exchange), arriving)
    if (body.outcome === 'refused') return refused(body, exchange)
    try {
      const permit = await permitFor(parts, body.descriptor, principal, exchange, left.signal)
      if (permit.outcome === 'refused') return refused(permit, exchange)
      exchange.reason = 'permitted'
      return await act(permit, body.payload, response, exchange, left.signal)
    } catch (error) {
      if (error instanceof StoreUnavailable) return refused(refuse('store-unavailable'), exchange)
      throw error
    } finally {
      body.release()
    }
  }

  const act = async (
    permit: Permit,
    payload: Payload,
    response: ServerResponse,
    exchange: Exchange,
    signal: AbortSignal,
  ): Promise<Answer | 'passed'> => {
    const bridged = upstreamOf(exchange).transport !== exchange.client
    const rewritten = await rewrite(permit, exchange, bridged, signal)
    // A cursor or limit that is none is a refusal like any other; what else becomes of a list was permitted.
    if (rewritten?.outcome === 'refused' && rewritten.code === 'target-malformed') return refused(rewritten, exchange)
    metrics.decided(exchange.route, 'permitted')
    if (bridged) parts.onBridged(exchange.client)
    if (rewritten === null) {
      if (permit.answerEmpty) return emptyThread(upstreamOf(exchange).managed)
      return parts.forwarder.pass(permit, exchange, payload, response, signal)
    }
    switch (rewritten.outcome) {
      case 'rewritten':
        return {
          status: 200,
          headers: { 'content-type': 'application/json', 'cache-control': 'private, no-store' },
          body: rewritten.body,
        }
      case 'elsewise':
        return parts.forwarder.deliver(rewritten.answer, exchange, response)
      case 'failed':
        return parts.forwarder.failed(rewritten, exchange)
      case 'refused':
        return parts.forwarder.unusable(rewritten, exchange)
    }
  }

  /** The answers that don't pass as the upstream gives them; null for those that do. */
  const rewrite = async (
    permit: Permit,
    exchange: Exchange,
    bridged: boolean,
    signal: AbortSignal,
  ): Promise<Rewritten | null> => {
    const { id } = permit.descriptor.route
    if (id === 'threads/list') return parts.list(permit, exchange, signal)
    return id === 'info' && bridged ? bridgedInfo(parts.forwarder, permit, exchange, signal) : null
  }

  return {
    open: (message, id, now) => {
      const lines = headerLines(message.rawHeaders)
      const answerHeaders = { ...corsHeaders(lines, parts.cors), 'x-request-id': id }
      return {
        id,
        startedAt: now,
        lines,
        headerFault: headerFault(lines, message.httpVersion),
        answerHeaders,
        client: 'multi-route',
        upstream: null,
        principal: undefined,
        credential: null,
        route: 'none',
        threadId: undefined,
        registration: null,
        reason: undefined,
      }
    },
    arrive,
    proceed,
  }
}

/** Gathers the facts that the decision asks for, and claims the thread where the permit says so. */
async function permitFor(
  parts: GateParts,
  descriptor: RouteDescriptor,
  principal: Principal,
  exchange: Exchange,
  signal: AbortSignal,
): Promise<Permit | Refusal> {
  const { threadId } = descriptor.ids
  exchange.threadId = threadId
  let facts: Facts = parts.facts
  // At most: a record, a history, a lost race. Whatever goes on asking has gone wrong, and is refused.
  for (let turn = 0; turn < 4; turn += 1) {
    const decision = decide(descriptor, principal, parts.rules, facts)
    if (decision.outcome === 'refused') return decision
    if (decision.outcome === 'needs') {
      if (threadId === undefined) throw new Error('a decision about a thread without its id')
      if (decision.fact === 'upstreamHistory') {
        const history = await parts.askHistory(
          upstreamOf(exchange),
          threadId,
          upstreamHeaders(exchange.lines, parts.headerRules, {
            ...parts.identity.headers(principal, descriptor),
            'x-request-id': exchange.id,
          }),
          signal,
        )
        if (isRefusal(history)) {
          parts.metrics.upstreamFailed(history.reason)
          return history
        }
        if (history === 'cannot-tell') parts.onHistoryUntold()
        facts = { ...facts, upstreamHistory: history === 'none' ? 'none' : 'some' }
      }
      // After a history again: the question took its time, and somebody may own the thread by now.
      facts = { ...facts, record: await parts.store.owner({ scope: parts.scope, threadId }) }
      continue
    }
    // Body and history took their time, and nothing is begun for a credential that ended or was revoked meanwhile.
    const late = outdated(parts, exchange)
    if (late !== null) return late
    const key = decision.claim ? threadKey(decision, parts.scope) : null
    if (key === null) return decision
    const claim = await parts.store.claim(key, decision.owner, descriptor.ids.agentId ?? '', parts.clock())
    if (claim.outcome !== 'foreign') {
      exchange.registration = claim.registration
      if (claim.outcome === 'new') parts.metrics.claimed('new')
      return decision
    }
    // Somebody was faster: decide again with what the store says now.
    parts.metrics.claimed('lost-race')
    facts = { ...facts, record: claim.record }
  }
  throw new Error('a decision that comes to no end')
}

/** What is wrong with a credential by now, though it was good at the head of the request. */
function outdated({ clock, isRevoked }: GateParts, { principal, credential }: Exchange): Refusal | null {
  if (principal === undefined || credential === null) return null
  if (isRevoked(principal.id, credential)) return refuse('token-revoked')
  return credential.expiresAt !== undefined && credential.expiresAt <= clock() ? refuse('token-expired') : null
}

/** What the upstream was when the request was let in. */
function upstreamOf({ upstream }: Exchange): RuntimeFacts {
  if (upstream === null) throw new Error('a request went on before anybody knew the upstream')
  return upstream
}

/** What the runtime answers to a connect with a thread that it never heard of (contract §1). */
function emptyThread(managed: boolean): Answer {
  if (managed) return { status: 204, headers: { 'cache-control': 'no-store' }, body: '' }
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' },
    body: '',
  }
}
