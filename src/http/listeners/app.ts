/**
 * The public listener. @fastify/http-proxy owns the routes, and the pipeline is its `preHandler`
 * (docs/contributing/decisions/http-proxy.md). Fastify's router never sees a caller's target: every target is routed as `/`, and
 * the pipeline reads the original (docs/contributing/invariants.md, "Library defaults").
 */
import { STATUS_CODES, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import proxy from '@fastify/http-proxy'
import { compile } from '@fastify/proxy-addr'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { requestLines, type Logger, type RequestLevel } from '../../observe/log.ts'
import { traceParentOf, type Tracing } from '../../observe/traces.ts'
import { refusalAnswer, type Answer } from '../pipeline/answer.ts'
import { beginExchange } from '../pipeline/exchange.ts'
import { refused } from '../pipeline/pipeline.ts'
import { limitConnections, type LimitedConnection } from './connection-limit.ts'
import { publicListener, boundLines } from './listening.ts'
import { watchHandshakes } from './tls.ts'
import type { ConnectionMetrics, RequestMetrics, TlsMetrics } from '../../observe/metrics.ts'
import type { ListenerTls } from '../../tls/settings.ts'
import type { Classified, Exchange, RequestSnapshot } from '../pipeline/stages.ts'

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange | null
    classified: Classified | null
  }
}

export type { FastifyInstance }

export interface AppParts {
  readonly enter: () => RequestSnapshot
  readonly upstreamUrl: string
  readonly log: Logger
  readonly onUnreadable: (requestId: string, address: string | undefined, refusal: Refusal) => void
  /** Bytes of a request's head. */
  readonly maxHeaderSize: number
  /** CIDRs. */
  readonly trustedProxies: readonly string[]
  readonly requestId: () => string
  /** Null for a listener without TLS. */
  readonly tls: ListenerTls | null
  /** Null for connections that another server accepts. */
  readonly mostConnections: number | null
  /** Null where requests are not traced. */
  readonly tracing: Tracing | null
  readonly metrics: { readonly requests: RequestMetrics; readonly tls: TlsMetrics; readonly connections: ConnectionMetrics }
}

export interface PublicApp {
  readonly app: FastifyInstance
  readonly leave: () => void
  /** Cuts all connections. */
  readonly cut: () => void
  readonly secure: (tls: ListenerTls) => void
}

export function makeApp(parts: AppParts): PublicApp {
  const { log, tracing } = parts
  const { requests: metrics } = parts.metrics
  const writeLine = requestLines(log)
  const trusted = trustedHops(parts.trustedProxies)
  let leaving = false
  const connections = makeCallerConnections((socket) => limit?.of(socket))
  const app = fastify({
    // One line a request is written below, with what the pipeline found.
    logger: false,
    rewriteUrl: () => '/',
    genReqId: parts.requestId,
    requestIdHeader: false,
    trustProxy: trusted,
    // The pipeline itself answers while closing.
    return503OnClosing: false,
    ...publicListener(parts.maxHeaderSize, parts.tls),
    clientErrorHandler: (error, socket) => answerUnreadable(parts, error, socket, connections),
  })
  boundLines(app.server)
  const handshakes = watchHandshakes(app.server, parts.metrics.tls, log)
  const { mostConnections } = parts
  const limit = mostConnections === null ? null : limitConnections(app.server, mostConnections, parts.metrics.connections, log)
  app.decorateRequest('exchange', null)
  app.decorateRequest('classified', null)
  // Bodies stay streams: the pipeline reads them, or passes them on.
  app.removeAllContentTypeParsers()

  // Uses the callback: most requests are answered at once and need no promise.
  app.addHook('onRequest', (request, reply, done) => {
    const connection = connections.of(request.raw.socket)
    const { limited } = connection
    if (connection.closing) return void reply.hijack()
    // A request behind the last answer was not started, and the caller may send it again (RFC 9112 §9.6).
    if (leaving && saidLast(connection)) return void reply.hijack()
    // A closed socket no longer knows its address.
    const client = request.ip
    if (connection.open.length >= MAX_PIPELINED) {
      log.info({ client, requestId: request.id }, 'too many concurrent requests on one connection')
      request.raw.socket.destroy()
      return void reply.hijack()
    }
    const known = { id: request.id, startedAt: performance.now(), address: client, target: request.originalUrl }
    const isTrusted = tracing !== null && trusted !== false && trusted(request.raw.socket.remoteAddress ?? '', 0)
    const traced = tracing === null ? null : { by: tracing, caller: isTrusted ? ('trusted' as const) : ('untrusted' as const) }
    const exchange = beginExchange(request.raw, reply.raw, known, parts.enter(), traced)
    request.exchange = exchange
    // Node's parser reads nothing more on a connection with an upgrade request: later requests would never be answered.
    const upgrading = exchange.head.lines.has('upgrade')
    if (upgrading) reply.raw.shouldKeepAlive = false
    if (upgrading || exchange.head.fault !== null) connection.closing = true
    connection.open.push(reply.raw)
    if (leaving) makeLast(connection)
    let isBusy = false
    // Not Fastify's onResponse: it does not report cut answers, which must be in the log too.
    reply.raw.once('close', () => {
      exchange.snapshot.release()
      if (isBusy && limited !== undefined && --limited.busy === 0 && limited.isOpen) limit?.idle.add(limited)
      const at = connection.open.indexOf(reply.raw)
      if (at !== -1) connection.open.splice(at, 1)
      const total = performance.now() - known.startedAt
      const { headersSent, statusCode } = reply.raw
      const { record, timing } = exchange
      const route = record.descriptor?.route.id ?? 'none'
      metrics.took('request', route, headersSent ? statusCode : 0, total)
      if (headersSent) metrics.took('gateway', route, statusCode, timing.answeredAt - known.startedAt - timing.waited)
      const level = headersSent && statusCode >= 500 ? failureLevel(exchange) : 'info'
      const isLogged = log.isLevelEnabled(level)
      if (!isLogged && exchange.trace === null) return
      const line = lineOf(reply, exchange, total)
      exchange.trace?.end(line, parts.tls === null ? 'http' : 'https')
      if (isLogged) writeLine(line, level)
    })
    const go = (result: Classified | Answer): void => {
      if (!('outcome' in result)) return void send(reply, exchange, result)
      request.classified = result
      isBusy = true
      if (limited !== undefined && limited.busy++ === 0) limit?.idle.delete(limited)
      done()
    }
    const result = exchange.snapshot.pipeline.admit(request.raw, exchange)
    if (result instanceof Promise) result.then(go).catch(done)
    else go(result)
  })

  // Closing the connection while its caller still sends would lose the answer.
  app.addHook('onSend', async ({ raw }) => {
    if (leaving && !raw.complete && raw.readableFlowing === true) await within(LAST_BODY_MS, (end) => raw.once('close', end))
  })

  void app.register(proxy, {
    upstream: parts.upstreamUrl,
    // The plugin opens no connections: the pipeline's forwarder sends.
    globalAgent: true,
    // It never calls `done`: before its handler, the plugin would compute an address that nothing uses.
    preHandler: (request: FastifyRequest, reply: FastifyReply) => {
      const { exchange, classified } = request
      if (exchange === null || classified === null) return void sendRefusal(request, reply, refuse('internal'))
      // Fastify keeps its request until the answer is over.
      request.classified = null
      const answered = (result: Answer | 'passed'): void => {
        if (result === 'passed') void reply.hijack()
        else void send(reply, exchange, result)
      }
      const failed = (error: unknown): void => {
        if (!reply.raw.headersSent) {
          // Fastify takes anything else for an answer.
          void reply.send(error instanceof Error ? error : new Error('a request failed with a value that is not an error'))
          return
        }
        // The status can't change any more, and an answer that has begun must not look complete.
        log.error({ err: error, requestId: request.id }, 'the gateway failed')
        void reply.hijack()
        reply.raw.destroy()
      }
      exchange.snapshot.pipeline.complete(classified, request.raw).then(answered).catch(failed)
    },
    handler: (request: FastifyRequest, reply: FastifyReply) => sendRefusal(request, reply, refuse('internal')),
  })

  // Node would answer these on its own, before authentication.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => void app.server.emit('request', request, response))
  }
  app.server.on('connect', (_request, socket) => {
    if (socket instanceof Socket) answerOutside(parts, socket, refuse('target-not-origin-form'), connections)
    else socket.destroy()
  })

  // Methods without a route: the pipeline has answered in onRequest, unless that hook was removed.
  app.setNotFoundHandler((request, reply) => sendRefusal(request, reply, refuse('internal')))
  app.setErrorHandler((error: Error & { readonly code?: string }, request, reply) => {
    if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
      return sendRefusal(request, reply, refuse(request.classified?.route === null ? 'route-unknown' : 'media-type-unsupported'))
    }
    log.error({ err: error, requestId: request.id }, 'the gateway failed')
    return sendRefusal(request, reply, refuse('internal'))
  })
  return {
    app,
    leave() {
      leaving = true
      for (const connection of connections.all()) makeLast(connection)
    },
    cut() {
      app.server.closeAllConnections()
      handshakes?.destroy()
    },
    secure: (tls) => handshakes?.replace(tls),
  }
}

/** Most proxies between a caller and the gateway: real deployments have fewer, and a head has room for a thousand addresses. */
const MOST_PROXIES = 16

/** Which hops of X-Forwarded-For are trusted, in Fastify's form: first the connection's address, then the header from its end. */
function trustedHops(proxies: readonly string[]): false | ((address: string, hop: number) => boolean) {
  if (proxies.length === 0) return false
  const isTrusted = compile([...proxies])
  return (address, hop) => hop < MOST_PROXIES && isTrusted(address, hop)
}

function sendRefusal(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { exchange } = request
  return send(reply, exchange, exchange === null ? refusalAnswer(refusal) : refused(refusal, exchange))
}

function send(reply: FastifyReply, exchange: Exchange | null, answer: Answer): FastifyReply {
  if (exchange !== null) exchange.timing.answeredAt = performance.now()
  void reply.code(answer.status).headers({ ...exchange?.head.answerHeaders, ...answer.headers })
  // The rest of a body is read and discarded, so that a caller who is still sending sees the answer.
  if (!reply.request.raw.complete && answer.headers['connection'] !== 'close') reply.request.raw.resume()
  // A buffer, because Fastify adds its own content type to a string.
  return answer.status === 204 ? reply.send() : reply.send(Buffer.from(answer.body))
}

/** The answers under way on a connection, of which pipelining makes several. */
interface ConnectionAnswers {
  /** In the order of their requests. */
  readonly open: ServerResponse[]
  /** True where the end of a request cannot be trusted: what follows is not a request (RFC 9112 §11.2). */
  closing: boolean
  /** Undefined where connections are not limited. */
  readonly limited: LimitedConnection | undefined
}

interface CallerConnections {
  of(socket: Socket): ConnectionAnswers
  all(): Iterable<ConnectionAnswers>
}

function makeCallerConnections(limited: (socket: Socket) => LimitedConnection | undefined): CallerConnections {
  const known = new WeakMap<Socket, ConnectionAnswers>()
  const all = new Set<ConnectionAnswers>()
  return {
    of(socket) {
      let connection = known.get(socket)
      if (connection === undefined) {
        const made: ConnectionAnswers = { open: [], closing: false, limited: limited(socket) }
        connection = made
        known.set(socket, made)
        all.add(made)
        socket.once('close', () => all.delete(made))
      }
      return connection
    },
    all: () => all,
  }
}

function isDue({ open }: ConnectionAnswers): boolean {
  return open.some((response) => !response.writableFinished && (response.headersSent || response.req.complete))
}

/** Makes the connection close after the latest answer; answers that have begun stay as they are. */
function makeLast({ open }: ConnectionAnswers): void {
  const latest = open.at(-1)
  for (const response of open) if (!response.headersSent) response.shouldKeepAlive = response !== latest
}

function saidLast({ open }: ConnectionAnswers): boolean {
  return open.some((response) => response.headersSent && !response.shouldKeepAlive)
}

/** Answers behind the first are held in memory: without a bound, a caller who pipelines could take any amount. */
const MAX_PIPELINED = 16

/** Milliseconds for the rest of a body whose caller waits for no answer to it. */
const LAST_BODY_MS = 5000
/** Milliseconds for an answer to reach a caller who does not close the connection. */
const LAST_WORDS_MS = 1000

async function within(milliseconds: number, begin: (end: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
    begin(resolve)
  })
  clearTimeout(timer)
}

/** RFC 9112 §9.6. */
function answerUnreadable(
  parts: AppParts,
  error: Error & { readonly code?: string },
  socket: Socket,
  connections: CallerConnections,
): void {
  const reason = error.code === 'HPE_HEADER_OVERFLOW' ? 'http-headers-too-large' : 'http-unreadable'
  if (error.code === 'ECONNRESET') socket.destroy()
  else answerOutside(parts, socket, refuse(reason), connections)
}

/** Closes the connection and soon destroys the socket: it belongs to no parser, so no server time-out or drain would find it. */
function answerOutside(parts: AppParts, socket: Socket, refusal: Refusal, connections: CallerConnections): void {
  socket.on('error', () => socket.destroy())
  // An answer that has begun can't be interrupted, and this answer would be taken for one that is due.
  if (!socket.writable || isDue(connections.of(socket))) {
    socket.destroy()
    return
  }
  const requestId = parts.requestId()
  parts.onUnreadable(requestId, socket.remoteAddress, refusal)
  const { status, headers, body } = refusalAnswer(refusal)
  parts.log.info({ requestId, client: socket.remoteAddress, route: 'none', status, reason: refusal.reason }, 'request')
  const length = String(Buffer.byteLength(body))
  const lines = Object.entries({ ...headers, 'x-request-id': requestId, 'content-length': length, connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`)
  // The end of the connection is only seen while it is read.
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), LAST_WORDS_MS)
  socket.once('close', () => clearTimeout(cut))
}

/** Failures of the gateway itself and of what it needs, apart from those of the upstream. */
const OWN_FAILURES: ReadonlySet<string | undefined> = new Set(['internal', 'identity-failed', 'rule-failed', 'store-unavailable'])

function failureLevel({ record }: Exchange): RequestLevel {
  return OWN_FAILURES.has(record.reason) ? 'error' : 'warn'
}

function lineOf({ raw }: FastifyReply, { head, record, snapshot, trace }: Exchange, total: number) {
  const { descriptor, upstream, observed } = record
  const { enforcement } = snapshot.pipeline
  return {
    requestId: head.id,
    traceId: trace === null ? traceParentOf(head.lines)?.traceId : trace.traceId,
    client: head.address,
    method: head.method,
    upstream: upstream === null || upstream.key === '' ? undefined : upstream.key,
    route: descriptor?.route.id ?? 'none',
    transport: record.client === 'single-route' ? record.client : undefined,
    agent: descriptor?.ids.agentId,
    thread: descriptor?.ids.threadId,
    principal: record.principal?.id,
    // Most credentials come in the header.
    credential: record.credential === 'cookie' ? record.credential : undefined,
    // An answer that never began has no status, whatever its default is.
    status: raw.headersSent ? raw.statusCode : undefined,
    reason: record.reason,
    rule: record.rule?.name,
    enforcement: enforcement === 'observe' ? enforcement : undefined,
    wouldRefuse: observed ?? undefined,
    wouldHide: record.hidden === 0 ? undefined : record.hidden,
    complete: raw.writableFinished,
    ended: record.ended,
    ms: Math.round(total),
  }
}
