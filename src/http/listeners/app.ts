/**
 * The public listener: the gate as a Fastify application. @fastify/http-proxy owns the one route, and before its handler
 * stands the gate. Fastify's router never sees what a caller wrote: every target is routed as `/`, and the gate reads the
 * original (docs/contributing/invariants.md, "Library defaults").
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
    /** The gate that it came to, and whose rules it goes by to its end. */
    gate: Gate | null
    arrived: Admitted | null
  }
}

export type { FastifyInstance }

/** What the public listener is made of. */
export interface AppParts {
  readonly gate: () => Gate
  /** Keeps the upstream connections of the active snapshot open for a request. Returns the function that releases them. */
  readonly hold: () => () => void
  readonly upstreamUrl: string
  readonly log: Logger
  /** Told of what could not be read as a request, and was answered all the same. */
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
  /** From now on each answer is the last of its connection, and says so: whoever asks again asks on another one. */
  readonly leave: () => void
}

/** Makes the application; it is not listening yet. */
export function makeApp(parts: AppParts): PublicApp {
  const { log } = parts
  const writeLine = requestLines(log)
  let leaving = false
  const connections = makeCallerConnections()
  const app = fastify({
    // One line a request, written below from what the gate learnt.
    logger: false,
    rewriteUrl: () => '/',
    genReqId: parts.requestId,
    requestIdHeader: false,
    trustProxy: trustedHops(parts.trustedProxies),
    // The gate answers while closing in its own words.
    return503OnClosing: false,
    ...publicListener(parts.maxHeaderSize),
    clientErrorHandler: (error, socket) => answerUnreadable(parts, error, socket, connections),
  })
  boundLines(app.server)
  app.decorateRequest('exchange', null)
  app.decorateRequest('gate', null)
  app.decorateRequest('arrived', null)
  // Bodies stay streams: the gate reads them, or lets them through.
  app.removeAllContentTypeParsers()

  // By its callback: what is answered at once, as most requests are, waits for no promise.
  app.addHook('onRequest', (request, reply, done) => {
    const connection = connections.of(request.raw.socket)
    if (connection.closing) return void reply.hijack()
    // Nothing was begun for what came behind the last answer, and the caller may ask it again (RFC 9112 §9.6).
    if (leaving && saidLast(connection)) return void reply.hijack()
    // A socket that is gone no longer knows its address.
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
    // Node's parser reads nothing more on a connection that was to be upgraded: what comes next would never be answered.
    const upgrading = exchange.lines.has('upgrade')
    if (upgrading) reply.raw.shouldKeepAlive = false
    if (upgrading || exchange.headerFault !== null) connection.closing = true
    connection.open.push(reply.raw)
    if (leaving) makeLast(connection)
    // Not Fastify's onResponse: it says nothing of answers that were cut off, and those have to be in the log too.
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

  // A connection that closes while its caller still sends would take the answer with it.
  app.addHook('onSend', async ({ raw }) => {
    if (leaving && !raw.complete && raw.readableFlowing === true) await within(LAST_BODY_MS, (end) => raw.once('close', end))
  })

  void app.register(proxy, {
    upstream: parts.upstreamUrl,
    // Nothing is sent by it. reply-from would otherwise open a pool of its own, which verifies no certificate.
    undici: new Client(parts.upstreamUrl) as never,
    // The rest of the gate. Not its `handler`: before that it works out an address, which nothing here is sent to, and that takes
    // a twelfth of a run's CPU. By its callback, which is not called for what is answered here.
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
        // Another status can't be told any more, and what has begun is not to look whole.
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

  // Node would answer these by itself, before anybody was asked who they are.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => void app.server.emit('request', request, response))
  }
  app.server.on('connect', (_request, socket) => {
    if (socket instanceof Socket) answerOutside(parts, socket, refuse('target-not-origin-form'), connections)
    else socket.destroy()
  })

  // Methods that no route has: the gate has answered in onRequest, unless somebody took it out.
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

/** So many proxies may stand between a caller and here: nobody has more, and a head has room for a thousand addresses. */
const MOST_PROXIES = 16

/** Whose X-Forwarded-For counts, as Fastify asks for it: the connection's address first, then from the last in the header on. */
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
  // What is left of a body is read and forgotten, so that a caller who is still sending sees the answer.
  if (!reply.request.raw.complete && answer.headers['connection'] !== 'close') reply.request.raw.resume()
  // A buffer, because Fastify gives a string a content type of its own choosing.
  return answer.status === 204 ? reply.send() : reply.send(Buffer.from(answer.body))
}

/**
 * How many requests of one connection may wait for their answers at once. Answers behind the first are held in memory, and
 * each request costs a connection to the upstream: without a bound, a caller who pipelines takes as much as they like.
 */
const MAX_PIPELINED = 16

/** Time for the rest of a body whose caller waits for no answer to it, in milliseconds. */
const LAST_BODY_MS = 5000
/** Time for an answer to reach a caller who does not close the connection, in milliseconds. */
const LAST_WORDS_MS = 1000

/** Waits for something, but not for ever. */
async function within(milliseconds: number, begin: (end: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
    begin(resolve)
  })
  clearTimeout(timer)
}

/** Whatever the HTTP parser could not read gets an answer in our form and a closed connection (RFC 9112 §9.6). */
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
 * Answers where no request is, and closes the connection. Whatever the caller does then, the socket is gone soon: it
 * belongs to no parser any more, so no time-out of the server's and no drain would find it.
 */
function answerOutside(parts: AppParts, socket: Socket, refusal: Refusal, connections: CallerConnections): void {
  socket.on('error', () => socket.destroy())
  // An answer that has begun can't take another one in its middle, and one that is due would be taken for this one.
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
  // Its end is only seen by somebody who reads.
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), LAST_WORDS_MS)
  socket.once('close', () => clearTimeout(cut))
}

/** What the log says of a request. @param now milliseconds of a monotonic clock */
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
    // An answer that never began has no status, whatever its default says.
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
