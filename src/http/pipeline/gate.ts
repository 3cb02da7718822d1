/**
 * Takes a request through its steps: read the target, authenticate, classify, gather facts, decide, transform, forward.
 * `arrive` needs no body; `proceed` does the rest. Each returns the answer to send, or passes the request on.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authenticate, Authenticated } from '../../auth/authenticate.ts'
import { configuredBody } from '../../core/route/bodies.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { isPreflight, preflightHeaders, type CorsRules } from '../../core/wire/cors.ts'
import type { Credential } from '../../core/decide/credential.ts'
import { callerKey } from '../../core/decide/callers.ts'
import { decide, mostBody, mostBodyOfAny, type Enforcement } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import type { Route } from '../../core/route/routes.ts'
import { KEY_SET_TARGET } from '../../core/route/target.ts'
import { hasOperation, isBridged, type RuntimeFacts, type Transport } from '../../core/route/transport.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { StoreUnavailable } from '../../store/port.ts'
import type { Access } from './access.ts'
import { AnswerMemory } from '../lists/answer-memory.ts'
import { refusalAnswer, type Answer } from './answer.ts'
import { ClientDisconnectSignal, type ClientDisconnect } from './client-disconnect.ts'
import { beginExchange, type Exchange } from './exchange.ts'
import type { Forwarder } from '../upstream/forward.ts'
import type { Grants } from '../admin/grants.ts'
import type { Identity } from './identity.ts'
import { readEnveloped, readPayload, type PayloadParts, type ReadBody } from './payload.ts'
import { limitsTaken, permitFor, type Granted, type LimitsTaken, type PermitParts } from './permit.ts'
import { makeTargetCache, type CachedTarget } from './target-cache.ts'
import type { SharedBudget } from './request-body.ts'
import type { Rewriter } from '../lists/rewriter.ts'
import type { Rewritten } from '../lists/rewriting.ts'
import type { TransportState } from '../upstream/transport-probe.ts'

/** The most decisions for a request whose access changes each time before it is sent. */
const MOST_DECISIONS = 8

type PermitPartsOfMount = Pick<
  PermitParts,
  'scope' | 'sharesScope' | 'facts' | 'headerRules' | 'identity' | 'askHistory' | 'onHistoryUntold'
>

export interface Successor {
  readonly outcome: 'succeeds'
  readonly gate: Gate
  readonly mount: UpstreamBinding
  readonly principal: Principal
  readonly hold: () => () => void
}

export interface UpstreamBinding extends PermitPartsOfMount {
  readonly key: string
  readonly access: Access
  /** Where the caller's request continues once another configuration is active; a refusal where that no longer takes it. */
  readonly successor: (principal: Principal) => Successor | Refusal
  /** `''` or `/a/b`. */
  readonly publicPath: string
  /** The name of a self-hosted agent; null for a runtime. */
  readonly agentId: string | null
  readonly transport: TransportState
  readonly forwarder: Forwarder
  readonly rewriter: Rewriter
  readonly grants: Grants
}

export interface GateParts extends PayloadParts, Omit<PermitParts, keyof PermitPartsOfMount | 'access' | 'outdated' | 'metrics'> {
  /** No mount is within another. The first mount answers for everything outside all mounts. */
  readonly mounts: readonly [UpstreamBinding, ...UpstreamBinding[]]
  readonly cors: CorsRules
  readonly authenticate: Authenticate
  readonly isRevoked: (userId: string, credential: Credential) => boolean
  readonly limits: PayloadParts['limits'] & PermitParts['limits']
  readonly answerMemory: SharedBudget
  /** The public keys of assertions; null where there are none. */
  readonly keySet: Identity['keySet']
  readonly enforcement: Enforcement
  readonly metrics: Metrics
  /** Called for every decision when it is made: the exchange has all that the decision used. */
  readonly onDecision: (exchange: Exchange, outcome: Refusal | 'permitted') => void
  /** Called when a client of this transport was forwarded to an upstream of the other. */
  readonly onBridged: (client: Transport) => void
  readonly onFault: (error: unknown, requestId: string) => void
  readonly isShuttingDown: () => boolean
}

export interface Admitted {
  readonly outcome: 'arrived'
  readonly mount: UpstreamBinding
  readonly principal: Principal
  /** Null for an envelope on the base path: only the body says what the request is about. */
  readonly descriptor: RouteDescriptor | null
}

interface Target {
  readonly method: string
  readonly place: CachedTarget<UpstreamBinding>
}

export interface Undecided {
  readonly mount: UpstreamBinding
  readonly principal: Principal
  readonly body: ReadBody
  readonly response: ServerResponse
  readonly exchange: Exchange
  readonly signal: ClientDisconnect
  readonly taken: LimitsTaken
}

export interface Gate {
  /** `now` is in milliseconds of a monotonic clock. `address` is the caller's, as far as the trusted proxies tell. */
  open(message: IncomingMessage, id: string, now: number, address: string): Exchange
  arrive(message: IncomingMessage, target: string, exchange: Exchange): Admitted | Answer | Promise<Admitted | Answer>
  proceed(arrived: Admitted, message: IncomingMessage, response: ServerResponse, exchange: Exchange): Promise<Answer | 'passed'>
  mountOf(key: string): UpstreamBinding | undefined
  /** Decides a request that came to another gate, which was replaced while the body was on its way. */
  resume(request: Undecided): Promise<Answer | 'passed'>
  /** The answer to a refusal from around the gate. The refusal counts as the decision if there was none. */
  refused(refusal: Refusal, exchange: Exchange): Answer
}

export function makeGate(parts: GateParts): Gate {
  const { metrics } = parts
  const placeOf = makeTargetCache(parts.mounts)
  const permitParts = new Map<UpstreamBinding, PermitParts>(
    parts.mounts.map((mount) => [mount, { ...parts, ...mount, outdated: (exchange) => outdated(parts, exchange) }]),
  )

  const note = (exchange: Exchange, outcome: Refusal | 'permitted'): void => {
    if (exchange.isDecided) return
    exchange.isDecided = true
    parts.onDecision(exchange, outcome)
  }

  const refused = (refusal: Refusal, exchange: Exchange): Answer => {
    exchange.reason = refusal.reason
    exchange.rule = refusal.rule
    note(exchange, refusal)
    return refusalAnswer(refusal)
  }

  const arrive: Gate['arrive'] = (message, rawTarget, exchange) => {
    const { lines } = exchange
    const method = message.method ?? ''
    const place = placeOf(rawTarget)
    if (place.outcome === 'refused') return refused(place, exchange)
    exchange.scope = place.mount.scope
    exchange.upstreamKey = place.mount.key
    if (exchange.headerFault !== null) return refused(exchange.headerFault, exchange)
    if (isPreflight(method, lines)) {
      const headers = preflightHeaders(lines, parts.cors)
      if (headers === null) return refused(refuse('origin-not-listed'), exchange)
      exchange.reason = 'permitted'
      return { status: 204, headers, body: '' }
    }
    // Public by nature, and fetched by services that have no user token.
    if (rawTarget === KEY_SET_TARGET && method === 'GET' && parts.keySet !== null) {
      exchange.reason = 'permitted'
      const headers = { 'content-type': 'application/jwk-set+json', 'cache-control': 'public, max-age=300' }
      return { status: 200, headers, body: parts.keySet }
    }
    const entered = (authenticated: Authenticated | Refusal) => enter(authenticated, { method, place }, exchange)
    const authenticated = whoAsks(parts, exchange, message.socket)
    return authenticated instanceof Promise ? authenticated.then(entered) : entered(authenticated)
  }

  const enter = (authenticated: Authenticated | Refusal, asked: Target, exchange: Exchange): ReturnType<Gate['arrive']> => {
    if (authenticated.outcome === 'refused') return refused(authenticated, exchange)
    const { principal, credential } = authenticated
    exchange.principal = principal
    exchange.credential = credential
    const late = outdated(parts, exchange)
    if (late !== null) return refused(late, exchange)
    const { requests } = parts.limits
    if (requests === 'off') return findRoute(asked, principal, exchange)
    return parts.limiter
      .take('requests', callerKey(principal, exchange.address), requests)
      .then((limit) =>
        limit === null ? findRoute(asked, principal, exchange) : refused(refuse('requests-limited', { limit }), exchange),
      )
  }

  const findRoute = ({ method, place }: Target, principal: Principal, exchange: Exchange): Admitted | Answer => {
    const { mount, segments, target } = place
    if (parts.isShuttingDown()) return refused(refuse('shutting-down'), exchange)
    const upstream = mount.transport.current()
    if (upstream === null) return refused(refuse('upstream-transport-pending'), exchange)
    exchange.upstream = upstream
    metrics.dropped('query-name', target.droppedQueryNames)

    if (segments === null) return refused(refuse('route-unknown'), exchange)
    // The only place for envelopes. An envelope says in its body alone what it asks for
    // (runtime-behaviour.md, "Single-route transport").
    if (mount.agentId === null && segments.length === 0) {
      if (method !== 'POST') return refused(refuse('route-unknown'), exchange)
      // The runtime would take a query value for a param that the envelope does not have.
      if (target.query.size > 0) return refused(refuse('query-beside-envelope'), exchange)
      exchange.client = 'single-route'
      return { outcome: 'arrived', mount, principal, descriptor: null }
    }
    const descriptor = place.classified(method)
    if (descriptor.outcome === 'refused') return refused(descriptor, exchange)
    const refusal = admit(mount, descriptor, principal, exchange)
    return refusal === null ? { outcome: 'arrived', mount, principal, descriptor } : refused(refusal, exchange)
  }

  const admit = (
    mount: UpstreamBinding,
    descriptor: RouteDescriptor,
    principal: Principal,
    exchange: Exchange,
  ): Refusal | null => {
    exchange.route = descriptor.route.id
    exchange.descriptor = descriptor
    exchange.threadId = descriptor.ids.threadId
    const upstream = upstreamOf(exchange)
    const { route } = descriptor
    if (!hasOperation(upstream, route) && !mount.rewriter.hasOperation(upstream, route)) return refuse('upstream-lacks-route')
    exchange.facts = mount.facts
    const early = decide(descriptor, principal, parts.rules, mount.facts)
    return early.outcome === 'refused' ? early : null
  }

  const configured = (route: Route): number => configuredBody(parts.limits, route)

  const proceed: Gate['proceed'] = async ({ mount, principal, descriptor }, message, response, exchange) => {
    const { facts } = mount
    const left = new ClientDisconnectSignal()
    const caller = (): string => callerKey(principal, exchange.address)
    const taken = limitsTaken(caller)
    response.once('close', () => {
      if (!response.writableFinished) left.abort()
      taken.release()
    })
    // Authentication may have taken long enough for the caller to leave: then nothing begins.
    if (response.destroyed) return refused(refuse('caller-left'), exchange)
    const arriving = {
      message,
      lines: exchange.lines,
      caller,
      onWanted: () => {
        // The body is wanted only now: before, an answer was possible without it.
        // HTTP/1.0 has no interim answer (RFC 9110 §10.1.1).
        if (exchange.lines.has('expect') && message.httpVersion !== '1.0') response.writeContinue()
      },
    }
    const mostOf = (asked: RouteDescriptor): number => mostBody(asked, principal, parts.rules, facts, configured(asked.route))
    // The gateway reads no envelope beyond what the caller may send on some route, or beyond a small body.
    const mostOfAny = (): number => Math.max(parts.limits.body, mostBodyOfAny(principal, parts.rules, facts, configured))
    const reading =
      descriptor === null
        ? readEnveloped(parts, mostOfAny(), { admit: (asked) => admit(mount, asked, principal, exchange), mostOf }, arriving)
        : readPayload(parts, descriptor, upstreamOf(exchange), () => mostOf(descriptor), arriving)
    const body = reading instanceof Promise ? await reading : reading
    if (body.outcome === 'refused') return refused(body, exchange)
    try {
      return await settle({ mount, principal, body, response, exchange, signal: left, taken })
    } finally {
      body.release()
    }
  }

  const settle = async (request: Undecided): Promise<Answer | 'passed'> => {
    const { mount, principal, body, response, exchange, signal, taken } = request
    try {
      for (let attempt = 0; attempt < MOST_DECISIONS; attempt += 1) {
        const granted = await permitFor(permitPartsOf(mount), body, upstreamOf(exchange), principal, taken, exchange, signal)
        if (granted.outcome === 'refused') return refused(granted, exchange)
        if (granted.outcome === 'replaced') return await handOver(request)
        exchange.reason = 'permitted'
        exchange.rule = granted.permit.rule
        exchange.observed = granted.permit.observed
        const done = await act(mount, granted, body, response, exchange, signal)
        if (done !== 'outdated') return done
        // The deletion was begun for the thread as it was then, and beside the runs of that moment.
        exchange.deletion = null
        exchange.observed = null
      }
      return refused(refuse('store-unavailable'), exchange)
    } catch (error) {
      if (error instanceof StoreUnavailable) return refused(refuse('store-unavailable'), exchange)
      throw error
    }
  }

  const handOver = (request: Undecided): Promise<Answer | 'passed'> | Answer => {
    const { mount, principal, exchange, response } = request
    const next = mount.successor(principal)
    if (next.outcome === 'refused') return refused(next, exchange)
    const letGo = next.hold()
    if (response.closed) letGo()
    else response.once('close', letGo)
    return next.gate.resume({ ...request, mount: next.mount, principal: next.principal })
  }

  const resume: Gate['resume'] = async (request) => {
    const { mount, principal, body, exchange } = request
    exchange.principal = principal
    exchange.enforcement = parts.enforcement
    const upstream = mount.transport.current()
    if (upstream === null) return refused(refuse('upstream-transport-pending'), exchange)
    // The body was read for an upstream of the other transport.
    if (upstream.transport !== exchange.upstream?.transport) return refused(refuse('rules-changed'), exchange)
    exchange.upstream = upstream
    const refusal = admit(mount, body.descriptor, principal, exchange)
    return refusal === null ? settle(request) : refused(refusal, exchange)
  }

  const permitPartsOf = (mount: UpstreamBinding): PermitParts => {
    const own = permitParts.get(mount)
    if (own === undefined) throw new Error('a request to an upstream that this gate does not have')
    return own
  }

  /** Null for an answer that passes. What is written is held until the caller has it. */
  const rewrite = async (
    { rewriter }: UpstreamBinding,
    granted: Pick<Granted, 'permit' | 'payload'>,
    response: ServerResponse,
    exchange: Exchange,
    signal: ClientDisconnect,
  ): Promise<Rewritten | null> => {
    const memory = new AnswerMemory(parts.answerMemory.of(callerKey(granted.permit.principal, exchange.address)))
    let held = 0
    try {
      const rewritten = await rewriter.rewrite(granted, exchange, upstreamOf(exchange), signal, memory)
      if (rewritten?.outcome === 'rewritten' && !response.closed) {
        held = Buffer.byteLength(rewritten.body)
        response.once('close', () => memory.release())
      }
      return rewritten
    } finally {
      memory.wrote(held)
    }
  }

  const act = async (
    mount: UpstreamBinding,
    { permit, payload }: Granted,
    body: ReadBody,
    response: ServerResponse,
    exchange: Exchange,
    signal: ClientDisconnect,
  ): Promise<Answer | 'passed' | 'outdated'> => {
    if (permit.descriptor.route.own === true) {
      const answer = await mount.grants(permit, payload, exchange)
      if (isRefusal(answer)) return refused(answer, exchange)
      note(exchange, 'permitted')
      return answer.body === '' ? answer : mount.forwarder.deliverWritten(answer, permit, exchange, response)
    }
    const upstream = upstreamOf(exchange)
    const rewritten = await rewrite(mount, { permit, payload }, response, exchange, signal)
    // An invalid cursor or limit is a refusal like any other; everything else about a list was permitted.
    if (rewritten?.outcome === 'refused' && rewritten.code !== 'upstream-unusable') return refused(rewritten, exchange)
    if (rewritten?.outcome === 'failed' && rewritten.isOutdated === true) return 'outdated'
    if (isBridged(upstream, exchange.client)) parts.onBridged(exchange.client)
    if (rewritten === null && !permit.answerEmpty) {
      // A request that is not sent is decided again, or fails.
      exchange.onSent = () => {
        body.forget()
        note(exchange, 'permitted')
      }
      const passed = await mount.forwarder.pass(permit, exchange, payload, response, signal)
      if (passed !== 'outdated') note(exchange, 'permitted')
      return passed
    }
    note(exchange, 'permitted')
    if (rewritten === null) return emptyThread(upstream.managed)
    switch (rewritten.outcome) {
      case 'rewritten':
        return mount.forwarder.deliverWritten(rewritten, permit, exchange, response)
      case 'elsewise':
        return mount.forwarder.deliver(rewritten.answer, permit, exchange, response)
      case 'failed':
        return mount.forwarder.failed(rewritten, exchange)
      case 'refused':
        return mount.forwarder.unusable(rewritten, exchange)
    }
  }

  return {
    open: (message, id, now, address) =>
      beginExchange(message, { id, startedAt: now, address, enforcement: parts.enforcement }, parts.cors),
    arrive,
    proceed,
    mountOf: (key) => parts.mounts.find((mount) => mount.key === key),
    resume,
    refused,
  }
}

function whoAsks({ authenticate, onFault }: GateParts, { id, lines }: Exchange, connection: object): ReturnType<Authenticate> {
  const failed = (error: unknown): Refusal => {
    onFault(error, id)
    return refuse('identity-failed')
  }
  try {
    const answer = authenticate(lines.get('authorization')?.[0], connection)
    return answer instanceof Promise ? answer.catch(failed) : answer
  } catch (error) {
    return failed(error)
  }
}

/** What is wrong with a credential by now, though it was good at the head of the request; null for nothing. */
function outdated({ clock, isRevoked }: GateParts, { principal, credential }: Exchange): Refusal | null {
  if (principal === undefined || credential === null) return null
  if (isRevoked(principal.id, credential)) return refuse('token-revoked')
  return credential.expiresAt !== undefined && credential.expiresAt <= clock() ? refuse('token-expired') : null
}

function upstreamOf({ upstream }: Exchange): RuntimeFacts {
  if (upstream === null) throw new Error('a request went on before anybody knew the upstream')
  return upstream
}

/** The runtime's answer to a connect with a thread that it does not know (runtime-behaviour.md, "Routes"). */
function emptyThread(managed: boolean): Answer {
  if (managed) return { status: 204, headers: { 'cache-control': 'no-store' }, body: '' }
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' },
    body: '',
  }
}
