/**
 * What a listener allows of connections and requests. Each setting of Node's server and of Fastify that could cut or cap
 * something is set here on purpose, so that none is a default that changes with a version (docs/operations.md).
 */
import { lookup } from 'node:dns/promises'
import type { Server, ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { MAX_HEADER_LINES } from '../../core/wire/headers.ts'
import { CallerMessage } from './caller-message.ts'

/** The settings of Fastify that a listener is made with. Durations in milliseconds, 0 for none. */
export interface ListenerOptions {
  readonly requestTimeout: number
  readonly connectionTimeout: 0
  readonly handlerTimeout: 0
  readonly maxRequestsPerSocket: 0
  readonly keepAliveTimeout: number
  readonly bodyLimit: number
  readonly http: ServerOptions
}

/** How long a head may take; looked at every half minute. */
const HEAD_TIMEOUT_MS = 60_000
const LOOK_EVERY_MS = 30_000

/** Closed that much later than callers are told, who may be about to send. */
const KEEP_ALIVE_GRACE_MS = 1000

/** A caller who went without a word, as with a cable that was cut, is asked after from then on; the system gives up later. */
const PROBE_AFTER_MS = 60_000

/** What is held for a caller who reads slowly before their upstream waits, in bytes; and what is read of a connection at once. */
const HIGH_WATER_MARK = 64 * 1024

/** How many connections may wait to be taken, of those who all come again at once; Linux allows no more unless it is told to. */
const BACKLOG = 4096

const HTTP: ServerOptions = {
  headersTimeout: HEAD_TIMEOUT_MS,
  connectionsCheckingInterval: LOOK_EVERY_MS,
  keepAliveTimeoutBuffer: KEEP_ALIVE_GRACE_MS,
  keepAlive: true,
  keepAliveInitialDelay: PROBE_AFTER_MS,
  noDelay: true,
  highWaterMark: HIGH_WATER_MARK,
}

/** A stream may be silent, and a connection be used, for as long as they like. */
const LASTING = { connectionTimeout: 0, handlerTimeout: 0, maxRequestsPerSocket: 0 } as const

/**
 * Those of the public listener.
 * @param maxHeaderSize bytes of a request's head
 */
export function publicListener(maxHeaderSize: number): ListenerOptions {
  return {
    ...LASTING,
    // A whole request must have come in within this time, or a caller could hold a connection for nothing.
    requestTimeout: 300_000,
    // Later than usual load balancers close theirs.
    keepAliveTimeout: 72_000,
    // The gate bounds bodies by route.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    // A request without a host is refused by the gate, in its own words.
    // And one that says that it has no body has ended already, without an event for it.
    http: { ...HTTP, maxHeaderSize, requireHostHeader: false, optimizeEmptyRequests: true, IncomingMessage: CallerMessage },
  }
}

/** Those of the operators' listeners: small requests, and nobody holds a connection by sending slowly. */
export const OPERATOR_LISTENER: ListenerOptions = {
  ...LASTING,
  requestTimeout: 10_000,
  keepAliveTimeout: 72_000,
  bodyLimit: 4096,
  http: { ...HTTP, headersTimeout: 10_000, connectionsCheckingInterval: 5000, maxHeaderSize: 16 * 1024 },
}

/**
 * Bounds the lines of a head, which Node takes on a server alone. More are refused there, or in older versions dropped without a
 * word: one more than a request may have is left, by which the gate sees that there were too many.
 */
export function boundLines(server: Server): void {
  server.maxHeadersCount = MAX_HEADER_LINES + 1
}

/** Has all lines read, for the operators' listeners: the bytes of a head are their bound, and nobody counts there. */
export function readAllLines(server: Server): void {
  server.maxHeadersCount = 0
}

/**
 * Bounds how many connections are open. The longest open one is closed for a new one: if new ones were refused, connections
 * without requests could keep an orchestrator's probes out, which would then restart the gateway.
 */
export function boundConnections(server: Server, most: number): void {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    const [oldest] = open
    if (open.size > most) oldest?.destroy()
  })
}

/**
 * Begins to listen on one address.
 * @param host an address, or a name: the first address that it has
 * @throws the system's error
 */
export async function listenOn(app: FastifyInstance, host: string, port: number): Promise<void> {
  // Fastify would open one server more for each further address of localhost, and on those nothing of ours is set.
  const { address } = await lookup(host)
  await app.listen({ host: address, port, backlog: BACKLOG })
}
