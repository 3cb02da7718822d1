/**
 * The two transports of the runtime (runtime-behaviour.md, "Single-route transport"): `multi-route` has a path for each operation, `single-route` takes
 * every operation as a POST with the envelope `{"method", "params", "body"}`. A client speaks either, and so does an
 * upstream; the gateway reads both and writes what the upstream takes.
 */
import { upstreamTarget, type RouteDescriptor } from './classify.ts'
import { envelopeOf, writeEnvelope, type WrittenEnvelope } from './envelope.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { ROUTES, type Route } from './routes.ts'

/** All transports, the one that is tried first before the other. */
export const TRANSPORTS = ['multi-route', 'single-route'] as const

export type Transport = (typeof TRANSPORTS)[number]

/** How an upstream takes them: a runtime by its transport, a self-hosted agent as runs that are POSTed to its one path. */
export type UpstreamKind = Transport | 'endpoint'

/** What an upstream is known to be. */
export interface RuntimeFacts {
  readonly transport: UpstreamKind
  /** False for a single-route runtime without the tunnel to threads and memories (`resource/request`): older than 1.7x. */
  readonly resources: boolean
  /**
   * Whether it serves the histories of threads: false where it says that it doesn't, or is too old to. Null as long as it
   * has said nothing.
   */
  readonly histories: boolean | null
  /** Whether it lists threads; false and null as with histories. */
  readonly lists: boolean | null
  /** True for the managed platform: its empty connect is a 204. */
  readonly managed: boolean
}

/** What is believed of a transport that the configuration names, before the upstream has answered. */
export function assumedFacts(transport: Transport): RuntimeFacts {
  return { transport, resources: true, histories: null, lists: null, managed: false }
}

/** What a self-hosted agent is: it runs, and holds nothing that it could be asked about. */
export const ENDPOINT: RuntimeFacts = {
  transport: 'endpoint',
  resources: false,
  histories: false,
  lists: false,
  managed: false,
}

/** What a runtime says of itself, read. */
export interface RuntimeInfo {
  readonly version: string
  readonly managed: boolean
  /** Whether it takes `resource/request`; only single-route runtimes say so. */
  readonly resources: boolean
  /** As in RuntimeFacts. */
  readonly histories: boolean | null
  readonly lists: boolean | null
}

/**
 * Reads the answer to the question for /info.
 * @returns null for anything that is not a runtime's: it has a `version` and `agents` (docs/transports.md)
 */
export function readRuntimeInfo(info: Json | undefined): RuntimeInfo | null {
  if (!isObject(info) || !isObject(info['agents'])) return null
  const { version } = info
  if (typeof version !== 'string') return null
  const tunnel = tunnelOf(info['singleRoute'])
  const endpoints = (tunnel ?? info)['threadEndpoints']
  const managed = info['mode'] === 'intelligence' || isObject(info['intelligence'])
  const isOld = isOlderThanHistories(version)
  return {
    version,
    managed,
    resources: tunnel !== null,
    histories: isObject(endpoints) ? endpoints['inspect'] === true : isOld ? false : null,
    // The managed platform listed threads before its runtime had routes for histories (runtime-behaviour.md, "Versions").
    lists: isObject(endpoints) ? endpoints['list'] === true : isOld && !managed ? false : null,
  }
}

/** The `singleRoute` of /info, if it tells of a tunnel to threads and memories; else null. */
export function tunnelOf(singleRoute: Json | undefined): JsonObject | null {
  return isObject(singleRoute) && singleRoute['resourceOperations'] === true ? singleRoute : null
}

/** Routes for histories came after 1.54, and /info told of them later still (runtime-behaviour.md, "Versions"). */
function isOlderThanHistories(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < 1 || (major === 1 && minor < 60)
}

/** `threadEndpoints` of a runtime that has none. */
export const NO_ENDPOINTS = { list: false, inspect: false, mutations: false, realtimeMetadata: false }

/**
 * The runtime's /info as it is true for a client of the other transport: clients ask for threads only where
 * `threadEndpoints`, or `singleRoute.threadEndpoints` beside `resourceOperations`, say that they may (runtime-behaviour.md, "Single-route transport").
 * @param info what the upstream said of itself
 * @param client the transport of the client
 */
export function infoFor(client: Transport, info: JsonObject): JsonObject {
  const { singleRoute, threadEndpoints, ...rest } = info
  if (client === 'single-route') {
    // What a runtime that is older than the list of endpoints has, nobody can say: its client doesn't ask, either.
    const endpoints = threadEndpoints ?? NO_ENDPOINTS
    return { ...rest, threadEndpoints: NO_ENDPOINTS, singleRoute: { resourceOperations: true, threadEndpoints: endpoints } }
  }
  return { ...rest, threadEndpoints: tunnelOf(singleRoute)?.['threadEndpoints'] ?? NO_ENDPOINTS }
}

/** True where a client writes as a runtime of the other transport would take it. */
export function isBridged({ transport }: RuntimeFacts, client: Transport): boolean {
  return transport !== 'endpoint' && transport !== client
}

/** A request as an upstream takes it, but for its headers. */
export interface WireForm {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** For a single-route upstream, what to say to it; the body of the request goes inside. */
  readonly envelope: WrittenEnvelope | null
}

/** True if an upstream of this kind has the operation at all; what the gateway answers itself is always there. */
export function hasOperation({ transport, resources }: RuntimeFacts, route: Route): boolean {
  if (transport === 'multi-route' || route.own === true) return true
  if (transport === 'endpoint') return route.id === 'agent/run'
  const way = envelopeOf(route)
  return way === 'method' || (way === 'tunnel' && resources)
}

/**
 * Writes a request for an upstream, from the descriptor alone.
 * @param upstream what it is
 * @param base its base path, `''` or `/a/b`; of an agent the path that runs are POSTed to
 * @param descriptor what the request is about
 * @param query the query to send; by default the descriptor's
 * @throws Error for an operation that the upstream doesn't have, and for one that the gateway answers itself
 */
export function wireForm(
  { transport }: RuntimeFacts,
  base: string,
  descriptor: RouteDescriptor,
  query: RouteDescriptor['query'] = descriptor.query,
): WireForm {
  if (descriptor.route.own === true) throw new Error(`${descriptor.route.id} is never sent`)
  if (transport === 'multi-route') {
    return { method: descriptor.route.method, target: upstreamTarget(base, descriptor, query), envelope: null }
  }
  if (transport === 'endpoint') return { method: descriptor.route.method, target: base, envelope: null }
  // Exactly the base path: Express serves a single-route runtime nowhere else (runtime-behaviour.md, "Single-route transport").
  return { method: 'POST', target: base === '' ? '/' : base, envelope: writeEnvelope(descriptor, query) }
}

/**
 * True for a base path that ends like a route which is POSTed to: a multi-route runtime that is mounted without a base path
 * looks at the end of a path alone (runtime-behaviour.md, "Targets and ids"), and would take an envelope that is sent there for that route.
 */
export function endsLikeRoute(base: string): boolean {
  const segments = base.split('/').slice(1)
  return ROUTES.some(({ method, path }) => {
    const end = segments.slice(-path.length)
    return method === 'POST' && end.length === path.length && path.every((word, at) => word.startsWith(':') || word === end[at])
  })
}
