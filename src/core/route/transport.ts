/**
 * The two transports of the runtime (runtime-behaviour.md, "Single-route transport"). `multi-route` has a path per operation.
 * `single-route` takes every operation as a POST with the envelope `{"method", "params", "body"}`. Clients and upstreams use
 * either; the gateway reads both and writes the one that the upstream takes.
 */
import { upstreamTarget, type RouteDescriptor } from './classify.ts'
import { envelopeOf, writeEnvelope, type WrittenEnvelope } from './envelope.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { ROUTES, type Route } from './routes.ts'

/** In the order in which the gateway tries them. */
export const TRANSPORTS = ['multi-route', 'single-route'] as const

export type Transport = (typeof TRANSPORTS)[number]

/** A runtime by its transport, or `endpoint`: a self-hosted agent whose runs are POSTed to its one path. */
export type UpstreamKind = Transport | 'endpoint'

export interface RuntimeFacts {
  readonly transport: UpstreamKind
  /** False for a single-route runtime without the tunnel to threads and memories (`resource/request`): older than 1.7x. */
  readonly resources: boolean
  /** Whether it serves thread histories: false if it says that it does not or is too old, null while it has said nothing. */
  readonly histories: boolean | null
  /** Whether it lists threads; false and null as for `histories`. */
  readonly lists: boolean | null
  /** True for the managed platform: its empty connect is a 204. */
  readonly managed: boolean
}

/** What the gateway assumes for a configured transport before the upstream has answered. */
export function assumedFacts(transport: Transport): RuntimeFacts {
  return { transport, resources: true, histories: null, lists: null, managed: false }
}

/** The facts of a self-hosted agent: it runs, and holds nothing that the gateway could ask for. */
export const ENDPOINT: RuntimeFacts = {
  transport: 'endpoint',
  resources: false,
  histories: false,
  lists: false,
  managed: false,
}

export interface RuntimeInfo {
  readonly version: string
  readonly managed: boolean
  /** Whether it takes `resource/request`. Only single-route runtimes say so. */
  readonly resources: boolean
  /** As in RuntimeFacts. */
  readonly histories: boolean | null
  readonly lists: boolean | null
}

/**
 * Reads the answer to a request for /info.
 * @returns null for an answer that is not a runtime's: a runtime has a `version` and `agents` (docs/transports.md)
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

/** The `singleRoute` of /info, if it reports a tunnel to threads and memories; otherwise null. */
export function tunnelOf(singleRoute: Json | undefined): JsonObject | null {
  return isObject(singleRoute) && singleRoute['resourceOperations'] === true ? singleRoute : null
}

/** Routes for histories came after 1.54, and /info reported them later still (runtime-behaviour.md, "Versions"). */
function isOlderThanHistories(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < 1 || (major === 1 && minor < 60)
}

export const NO_ENDPOINTS = { list: false, inspect: false, mutations: false, realtimeMetadata: false }

/**
 * Adapts a runtime's /info for a client of the other transport. Clients ask for threads only if `threadEndpoints`, or
 * `singleRoute.threadEndpoints` beside `resourceOperations`, allow it (runtime-behaviour.md, "Single-route transport").
 * @param info what the upstream said about itself
 * @param client the transport of the client
 */
export function infoFor(client: Transport, info: JsonObject): JsonObject {
  const { singleRoute, threadEndpoints, ...rest } = info
  if (client === 'single-route') {
    // A runtime older than the list of endpoints does not say what it has, and its client does not ask for it.
    const endpoints = threadEndpoints ?? NO_ENDPOINTS
    return { ...rest, threadEndpoints: NO_ENDPOINTS, singleRoute: { resourceOperations: true, threadEndpoints: endpoints } }
  }
  return { ...rest, threadEndpoints: tunnelOf(singleRoute)?.['threadEndpoints'] ?? NO_ENDPOINTS }
}

/** True if the client and the runtime use different transports. */
export function isBridged({ transport }: RuntimeFacts, client: Transport): boolean {
  return transport !== 'endpoint' && transport !== client
}

export interface WireForm {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** For a single-route upstream: the envelope, into which the body of the request goes. */
  readonly envelope: WrittenEnvelope | null
}

/** True if an upstream of this kind has the operation. What the gateway answers itself is always available. */
export function hasOperation({ transport, resources }: RuntimeFacts, route: Route): boolean {
  if (transport === 'multi-route' || route.own === true) return true
  if (transport === 'endpoint') return route.id === 'agent/run'
  const way = envelopeOf(route)
  return way === 'method' || (way === 'tunnel' && resources)
}

/**
 * Writes a request for an upstream, from the descriptor alone.
 * @param base the upstream's base path, `''` or `/a/b`; for an agent the path to which runs are POSTed
 * @throws Error for an operation that the upstream does not have, or that the gateway answers itself
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
 * True for a base path that ends like a route with POST. A multi-route runtime that is mounted without a base path looks only at
 * the end of a path (runtime-behaviour.md, "Targets and ids"). It would take an envelope sent there for that route.
 */
export function endsLikeRoute(base: string): boolean {
  const segments = base.split('/').slice(1)
  return ROUTES.some(({ method, path }) => {
    const end = segments.slice(-path.length)
    return method === 'POST' && end.length === path.length && path.every((word, at) => word.startsWith(':') || word === end[at])
  })
}
