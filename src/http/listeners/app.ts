/**
 * The public listener: the gate as a Fastify application. @fastify/http-proxy owns the one route, and the gate runs before its
 * handler. Fastify's router never sees a caller's target: every target is routed as `/`, and the gate reads the original
 * (docs/contributing/invariants.md, "Library defaults").
 */
import { STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import proxy from '@fastify/http-proxy'
import { compile } from '@fastify/proxy-addr'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { Client } from 'undici'
import { refuse, type Refusal } from '../../core/reasons.ts'
import { requestLines, type Logger } from '../../observe/log.ts'
import { refusalAnswer, type Answer } from '../pipeline/answer.ts'
import {
  closed,
  isDue,
  makeCallerConnections,
  makeLast,
  saidLast,
  type CallerConnections,
} from '../upstream/connection-answers.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Admitted, Gate } from '../pipeline/gate.ts'
import { publicListener, boundLines } from './listening.ts'

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange | null
    /** The gate at which the request arrived; it decides the request to its end. */
    gate: Gate | null
    arrived: Admitted | null
  }
}

export type { FastifyInstance }

export interface AppParts {
  readonly gate: () => Gate
  /** Keeps the upstream connections of the active snapshot open for a request. Returns the function that releases them. */
  readonly hold: () => () => void
  readonly upstreamUrl: string
  readonly log: Logger
  readonly onUnreadable: (requestId: string, address: string | undefined, refusal: Refusal) => void
  /** Bytes of a request's head. */
  readonly maxHeaderSize: number
  /** CIDRs of proxies whose X-Forwarded-For names the caller in the log. */
  readonly trustedProxies: readonly string[]
  readonly requestId: () => string
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

export interface PublicApp {
  readonly app: FastifyInstance
  /** From now on each answer closes its connection and says so: the caller's next request uses another connection. */
  readonly leave: () => void
}

export function makeApp(parts: AppParts): PublicApp {
  const { log } = parts
  const writeLine = requestLines(log)
  let leaving = false
  const connections = makeCallerConnections()
  const app = fastify({
    // One line a request is written below, with what the gate found.
    logger: false,
    rewriteUrl: () => '/',
    genReqId: parts.requestId,
    requestIdHeader: false,
    trustProxy: trustedHops(parts.trustedProxies),
    // The gate itself answers while closing.
    return503OnClosing: false,
    ...publicListener(parts.maxHeaderSize),
    clientErrorHandler: (error, socket) => answerUnreadable(parts, error, socket, connections),
  })
  boundLines(app.server)
  app.decorateRequest('exchange', null)
  app.decorateRequest('gate', null)
  app.decorateRequest('arrived', null)
  // Bodies stay streams: the gate reads them, or passes them on.
  app.removeAllContentTypeParsers()

  // Uses the callback: most requests are answered at once and need no promise.
  app.addHook('onRequest', (request, reply, done) => {
    const connection = connections.of(request.raw.socket)
    if (connection.closing) return void reply.hijack()
    // A request behind the last answer was not started, and the caller may send it again (RFC 9112 §9.6).
    if (leaving && saidLast(connection)) return void reply.hijack()
    // A closed socket no longer knows its address.
    const client = request.ip
    if (connection.open.length >= MAX_PIPELINED) {
      log.info({ client, requestId: request.id }, 'too many requests at once on a connection')
      request.raw.socket.destroy()
      return void reply.hijack()
    }
    const gate = parts.gate()
    const letGo = parts.hold()
    request.gate = gate
    const exchange = gate.open(request.raw, request.id, parts.now(), client)
    request.exchange = exchange
    // Node's parser reads nothing more on a connection with an upgrade request: later requests would never be answered.
    const upgrading = exchange.lines.has('upgrade')
    if (upgrading) reply.raw.shouldKeepAlive = false
    if (upgrading || exchange.headerFault !== null) connection.closing = true
    connection.open.push(reply.raw)
    if (leaving) makeLast(connection)
    // Not Fastify's onResponse: it does not report cut answers, which must be in the log too.
    reply.raw.once('close', () => {
      letGo()
      closed(connection, reply.raw)
      writeLine(lineOf(request, reply, exchange, client, parts.now()))
    })
    const go = (result: Admitted | Answer): void => {
      if (!('outcome' in result)) return void send(reply, exchange, result)
      request.arrived = result
      done()
    }
    const result = gate.arrive(request.raw, request.originalUrl, exchange)
    if (result instanceof Promise) result.then(go).catch(done)
    else go(result)
  })

  // Closing the connection while its caller still sends would lose the answer.
  app.addHook('onSend', async ({ raw }) => {
    if (leaving && !raw.complete && raw.readableFlowing === true) await within(LAST_BODY_MS, (end) => raw.once('close', end))
  })

  void app.register(proxy, {
    upstream: parts.upstreamUrl,
    // Nothing is sent by this client. Otherwise reply-from would open its own pool, which verifies no certificate.
    undici: new Client(parts.upstreamUrl) as never,
    // The rest of the gate. Not its `handler`: that first computes an upstream address, which is not used here and takes a
    // twelfth of a run's CPU. Uses the callback, which is not called for what is answered here.
    preHandler: (request: FastifyRequest, reply: FastifyReply, done: (fault?: Error) => void) => {
      const { exchange, gate, arrived } = request
      if (exchange === null || gate === null || arrived === null) {
        done()
        return
      }
      const answered = (result: Answer | 'passed'): void => {
        if (result === 'passed') void reply.hijack()
        else void send(reply, exchange, result)
      }
      const failed = (error: Error): void => {
        if (!reply.raw.headersSent) {
          done(error)
          return
        }
        // The status can't change any more, and an answer that has begun must not look complete.
        log.error({ err: error, requestId: request.id }, 'the gateway failed')
        void reply.hijack()
        reply.raw.destroy()
      }
      gate.proceed(arrived, request.raw, reply.raw, exchange).then(answered).catch(failed)
    },
    handler: () => {
      throw new Error('a request reached the proxy without passing the gate')
    },
  } as never)

  // Node would answer these on its own, before authentication.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => void app.server.emit('request', request, response))
  }
  app.server.on('connect', (_request, socket) => {
    if (socket instanceof Socket) answerOutside(parts, socket, refuse('target-not-origin-form'), connections)
    else socket.destroy()
  })

  // Methods without a route: the gate has answered in onRequest, unless that hook was removed.
  app.setNotFoundHandler((request, reply) => sendRefusal(request, reply, refuse('internal')))
  app.setErrorHandler((error: Error & { readonly code?: string }, request, reply) => {
    if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
      return sendRefusal(
        request,
        reply,
        refuse(request.arrived?.descriptor === null ? 'route-unknown' : 'media-type-unsupported'),
      )
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
  const { exchange, gate } = request
  return send(reply, exchange, exchange === null || gate === null ? refusalAnswer(refusal) : gate.refused(refusal, exchange))
}

function send(reply: FastifyReply, exchange: Exchange | null, answer: Answer): FastifyReply {
  void reply.code(answer.status).headers({ ...exchange?.answerHeaders, ...answer.headers })
  // The rest of a body is read and discarded, so that a caller who is still sending sees the answer.
  if (!reply.request.raw.complete && answer.headers['connection'] !== 'close') reply.request.raw.resume()
  // A buffer, because Fastify adds its own content type to a string.
  return answer.status === 204 ? reply.send() : reply.send(Buffer.from(answer.body))
}

/**
 * Most unanswered requests of one connection. Answers behind the first are held in memory, and each request costs an upstream
 * connection: without a bound, a caller who pipelines could take any amount.
 */
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

/** Answers what the HTTP parser could not read in the gateway's form, and closes the connection (RFC 9112 §9.6). */
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

/**
 * Answers outside a request, and closes the connection. The socket is destroyed soon, whatever the caller does. It no longer
 * belongs to a parser, so neither a server time-out nor a drain would find it.
 */
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

/** @param now milliseconds of a monotonic clock */
function lineOf({ method }: FastifyRequest, { raw }: FastifyReply, exchange: Exchange, client: string, now: number) {
  return {
    requestId: exchange.id,
    client,
    method,
    upstream: exchange.upstreamKey === '' ? undefined : exchange.upstreamKey,
    route: exchange.route,
    transport: exchange.client === 'single-route' ? exchange.client : undefined,
    thread: exchange.threadId,
    principal: exchange.principal?.id,
    // An answer that never began has no status, whatever its default is.
    status: raw.headersSent ? raw.statusCode : undefined,
    reason: exchange.reason,
    rule: exchange.rule?.name,
    enforcement: exchange.enforcement === 'observe' ? exchange.enforcement : undefined,
    wouldRefuse: exchange.observed ?? undefined,
    wouldHide: exchange.hidden === 0 ? undefined : exchange.hidden,
    complete: raw.writableFinished,
    ended: exchange.ended,
    ms: Math.round(now - exchange.startedAt),
  }
}
