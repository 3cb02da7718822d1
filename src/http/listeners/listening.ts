/** Limits of a listener: sets each limit of Node and of Fastify, so that none changes with a version (docs/reference/timeouts.md). */
import { lookup } from 'node:dns/promises'
import type { Server, ServerOptions } from 'node:http'
import type { ServerOptions as SecureServerOptions } from 'node:https'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { MAX_HEADER_LINES } from '../../core/wire/headers.ts'
import { CallerMessage } from '../pipeline/request-body.ts'
import type { ListenerTls } from '../../tls/settings.ts'
import { secureListener } from './tls.ts'

/** Durations in milliseconds, 0 for none. */
export interface ListenerOptions {
  readonly requestTimeout: number
  readonly connectionTimeout: 0
  readonly handlerTimeout: 0
  readonly maxRequestsPerSocket: 0
  readonly keepAliveTimeout: number
  readonly bodyLimit: number
  readonly http: ServerOptions
  /** With it, Fastify makes a server with TLS. */
  readonly https?: SecureServerOptions
}

/** Milliseconds for a head to arrive; checked every half minute. */
const HEAD_TIMEOUT_MS = 60_000
const LOOK_EVERY_MS = 30_000

/** Connections close later than announced to callers: a caller may be about to send. */
const KEEP_ALIVE_GRACE_MS = 1000

/** From then on the system probes a silent caller, for example behind a cut cable; the system gives up later. */
const PROBE_AFTER_MS = 60_000

const HIGH_WATER_MARK = 64 * 1024

/** Most connections waiting to be accepted, when all callers reconnect at once; Linux allows no more unless configured. */
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

/** Streams may be silent, and connections be used, without a time limit. */
const LASTING = { connectionTimeout: 0, handlerTimeout: 0, maxRequestsPerSocket: 0 } as const

export function publicListener(maxHeaderSize: number, tls: ListenerTls | null = null): ListenerOptions {
  // The gate itself refuses a request without a host.
  // With optimizeEmptyRequests, a request that declares no body has ended already, without an event.
  const http = { ...HTTP, maxHeaderSize, requireHostHeader: false, optimizeEmptyRequests: true, IncomingMessage: CallerMessage }
  return {
    ...LASTING,
    // A whole request must arrive within this time: otherwise a caller could hold a connection for nothing.
    requestTimeout: 300_000,
    // Later than the usual close time of load balancers.
    keepAliveTimeout: 72_000,
    // The gate bounds bodies by route.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    http,
    ...(tls === null ? {} : { https: { ...http, ...secureListener(tls) } }),
  }
}

/** Requests are small, and no caller can hold a connection by sending slowly. */
export const OPERATOR_LISTENER: ListenerOptions = {
  ...LASTING,
  requestTimeout: 10_000,
  keepAliveTimeout: 72_000,
  bodyLimit: 4096,
  http: { ...HTTP, headersTimeout: 10_000, connectionsCheckingInterval: 5000, maxHeaderSize: 16 * 1024 },
}

/** Node refuses further lines, or silently drops them in older versions. Reads one more than allowed, to detect too many. */
export function boundLines(server: Server): void {
  server.maxHeadersCount = MAX_HEADER_LINES + 1
}

/** For operators' listeners: there the bytes of a head are the bound. */
export function readAllLines(server: Server): void {
  server.maxHeadersCount = 0
}

/** Closes the oldest connection for a new one: otherwise idle connections could keep an orchestrator's probes out. */
export function boundConnections(server: Server, most: number): void {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    const [oldest] = open
    if (open.size > most) oldest?.destroy()
  })
}

/** @param fd of a TCP socket that listens: Fastify fails on another one. @throws the system's error */
export async function listenOnSocket(app: FastifyInstance, fd: number): Promise<void> {
  const { server } = app
  const listen = server.listen.bind(server)
  // Beside a descriptor, Node takes the backlog as an argument only, which Fastify does not give, and else sets it to 511.
  server.listen = (options: unknown) => listen(options, BACKLOG)
  // Node ignores the host then; without one, Fastify would open a second server on localhost.
  const options = { fd, host: '0.0.0.0' }
  await app.listen(options)
}

/** Listens on one address only: the first of a name. @throws the system's error */
export async function listenOn(app: FastifyInstance, host: string, port: number): Promise<void> {
  // For localhost, Fastify would open another server per further address, without the settings of this file.
  const { address } = await lookup(host)
  await app.listen({ host: address, port, backlog: BACKLOG })
}
