/** The runtime's two transports: a path per operation, or POSTed envelopes (runtime-behaviour.md, "Single-route transport"). */
import type { RouteDescriptor, RouteIds } from './classify.ts'
import { envelopeOf, writeEnvelope, type WrittenEnvelope } from './envelope.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { ROUTES, type Route } from './routes.ts'

/** In the order in which the gateway tries them. */
export const TRANSPORTS = ['multi-route', 'single-route'] as const

export type Transport = (typeof TRANSPORTS)[number]

/** `endpoint`: a self-hosted agent whose runs are POSTed to its one path. `langgraph`: a LangGraph server. */
export type UpstreamKind = Transport | 'endpoint' | 'langgraph'

export interface RuntimeFacts {
  readonly transport: UpstreamKind
  /** False for a single-route runtime without the tunnel to threads and memories (`resource/request`): older than 1.7x. */
  readonly resources: boolean
  /** False if the runtime says so or is too old, null while it has said nothing. */
  readonly histories: boolean | null
  readonly lists: boolean | null
  /** True for the managed platform: its empty connect is a 204. */
  readonly managed: boolean
}

export function assumedFacts(transport: Transport): RuntimeFacts {
  return { transport, resources: true, histories: null, lists: null, managed: false }
}

export const ENDPOINT: RuntimeFacts = {
  transport: 'endpoint',
  resources: false,
  histories: false,
  lists: false,
  managed: false,
}

export const LANGGRAPH: RuntimeFacts = {
  transport: 'langgraph',
  resources: false,
  histories: true,
  lists: true,
  managed: false,
}

export interface RuntimeInfo {
  readonly version: string
  readonly managed: boolean
  /** Only single-route runtimes say so. */
  readonly resources: boolean
  readonly histories: boolean | null
  readonly lists: boolean | null
}

/** @returns null unless the answer has a `version` and `agents` (docs/reference/supported-versions.md) */
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

export function tunnelOf(singleRoute: Json | undefined): JsonObject | null {
  return isObject(singleRoute) && singleRoute['resourceOperations'] === true ? singleRoute : null
}

/** 1.57.4 has all routes for histories, and /info reported them later (runtime-behaviour.md, "Versions"). */
function isOlderThanHistories(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return major < 1 || (major === 1 && (minor < 57 || (minor === 57 && patch < 4)))
}

export const NO_ENDPOINTS = { list: false, inspect: false, mutations: false, realtimeMetadata: false }

/** Clients need `threadEndpoints` or `singleRoute` to ask for threads (runtime-behaviour.md, "Single-route transport"). */
export function infoFor(client: Transport, info: JsonObject): JsonObject {
  const { singleRoute, threadEndpoints, ...rest } = info
  if (client === 'single-route') {
    // A runtime older than the list of endpoints does not say what it has, and its client does not ask for it.
    const endpoints = threadEndpoints ?? NO_ENDPOINTS
    return { ...rest, threadEndpoints: NO_ENDPOINTS, singleRoute: { resourceOperations: true, threadEndpoints: endpoints } }
  }
  return { ...rest, threadEndpoints: tunnelOf(singleRoute)?.['threadEndpoints'] ?? NO_ENDPOINTS }
}

export function isBridged({ transport }: RuntimeFacts, client: Transport): boolean {
  return transport !== 'endpoint' && transport !== 'langgraph' && transport !== client
}

export interface WireForm {
  readonly method: string
  readonly target: string
  readonly envelope: WrittenEnvelope | null
}

export function hasOperation({ transport, resources }: RuntimeFacts, route: Route): boolean {
  if (route.own === true) return true
  if (transport === 'langgraph') return route.api === 'langgraph'
  if (transport === 'multi-route') return route.api === undefined
  if (transport === 'endpoint') return route.id === 'agent/run'
  const way = envelopeOf(route)
  return way === 'method' || (way === 'tunnel' && resources)
}

/** `base` is `''` or `/a/b`. @throws Error for an operation that the upstream lacks, or that the gateway answers itself */
export function wireForm(
  { transport }: RuntimeFacts,
  base: string,
  descriptor: RouteDescriptor,
  query: RouteDescriptor['query'] = descriptor.query,
): WireForm {
  if (descriptor.route.own === true) throw new Error(`${descriptor.route.id} is never sent`)
  if (transport === 'multi-route' || transport === 'langgraph') {
    return { method: descriptor.route.method, target: upstreamTarget(base, descriptor, query), envelope: null }
  }
  if (transport === 'endpoint') return { method: descriptor.route.method, target: base, envelope: null }
  // Exactly the base path: Express serves a single-route runtime nowhere else (runtime-behaviour.md, "Single-route transport").
  return {
    method: 'POST',
    target: base === '' ? '/' : base,
    envelope: writeEnvelope(descriptor, query, upstreamTarget('', descriptor, query)),
  }
}

/** @param base the upstream's base path: `''` or `/a/b` */
export function upstreamTarget(
  base: string,
  descriptor: RouteDescriptor,
  query: readonly (readonly [string, string])[] = descriptor.query,
): string {
  let target = base
  const { ids } = descriptor
  for (const word of descriptor.route.path) {
    const name = word === ':assistantId' ? 'agentId' : (word.slice(1) as keyof RouteIds)
    target += `/${encodeURIComponent((word.startsWith(':') ? ids[name] : word) ?? word)}`
  }
  if (query.length === 0) return target
  return `${target}?${query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')}`
}

/** A multi-route runtime would take an envelope at such a path for that route (runtime-behaviour.md, "Targets and ids"). */
export function endsLikeRoute(base: string): boolean {
  const segments = base.split('/').slice(1)
  return ROUTES.some(({ method, path }) => {
    const end = segments.slice(-path.length)
    return method === 'POST' && end.length === path.length && path.every((word, at) => word.startsWith(':') || word === end[at])
  })
}
