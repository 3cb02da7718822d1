/**
 * Reads and writes the envelope of the single-route transport (runtime-behaviour.md, "Single-route transport"). The gateway
 * classifies an envelope by its content, never by where it was sent. The path inside `resource/request` goes through the same
 * grammar and the same classification as the path of a request line.
 */
import { MAX_TOP_MEMBERS } from './bodies.ts'
import { classify, upstreamTarget, type RouteDescriptor } from './classify.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { refuse, type Refusal } from '../reasons.ts'
import { QUERY_NAMES, ROUTES, type Route } from './routes.ts'
import { isQueryValue, readTarget } from './target.ts'

export interface Envelope {
  readonly outcome: 'opened'
  readonly descriptor: RouteDescriptor
  /** Not checked against its route yet; undefined if absent. */
  readonly body: Json | undefined
  /** Keys of the envelope and of its params that have no meaning and are not forwarded. */
  readonly dropped: readonly string[]
  /** The number of query names in the inner path that no route knows. */
  readonly droppedQueryNames: number
}

/** The method for routes that have no method of their own. */
const TUNNEL = 'resource/request'

/** How an envelope carries a route, in the runtime as here: by the route's own method, by the tunnel, or not at all (null). */
export function envelopeOf({ id, own }: Route): 'method' | 'tunnel' | null {
  if (id === 'cpk-debug-events' || own === true) return null
  return id.startsWith('threads/') || id.startsWith('memories/') || id === 'annotate' ? 'tunnel' : 'method'
}

/**
 * Opens an envelope and classifies its request.
 * @param value the body from the strict reader
 * @returns a refusal: 404 for no envelope or an unknown method, 405, 413 for too many params, or 400 as for a request line
 */
export function openEnvelope(value: JsonObject): Envelope | Refusal {
  const { method, params: given, body, ...others } = value
  const params = isObject(given) ? given : {}
  if (Object.keys(params).length > MAX_TOP_MEMBERS) return refuse('body-too-many-members')
  const asked = method === TUNNEL ? askedThrough(params) : askedBy(method, params)
  if (asked.outcome === 'refused') return asked
  const strange = Object.keys(params).filter((name) => !asked.known.includes(name))
  return {
    outcome: 'opened',
    descriptor: asked.descriptor,
    // In the tunnel the runtime takes null for no body. Elsewhere null is a body, which no route takes.
    body: method === TUNNEL ? (body ?? undefined) : body,
    dropped: [...Object.keys(others), ...strange.map((name) => `params.${name}`)],
    droppedQueryNames: asked.droppedQueryNames,
  }
}

/** Checks on the sender of an envelope, once its route is known. */
export interface EnvelopeRules {
  /** May refuse the request before its body is looked at. */
  readonly admit: (descriptor: RouteDescriptor) => Refusal | null
  /** The limit of the envelope, in bytes. */
  readonly mostOf: (descriptor: RouteDescriptor) => number
}

/**
 * Opens an envelope and checks what its sender may do. The gateway drops a body that the route does not take.
 * @param bytes the size of the envelope
 */
export function admitEnvelope(value: JsonObject, bytes: number, { admit, mostOf }: EnvelopeRules): Envelope | Refusal {
  const envelope = openEnvelope(value)
  if (envelope.outcome === 'refused') return envelope
  const { descriptor, body, dropped } = envelope
  const refusal = admit(descriptor)
  if (refusal !== null) return refusal
  if (bytes > mostOf(descriptor)) return refuse('body-too-large')
  if (isObject(body) && Object.keys(body).length > MAX_TOP_MEMBERS) return refuse('body-too-many-members')
  const unwanted = body !== undefined && descriptor.route.body.kind === 'none'
  return unwanted ? { ...envelope, body: undefined, dropped: [...dropped, 'body'] } : envelope
}

interface Asked {
  readonly outcome: 'asked'
  readonly descriptor: RouteDescriptor
  readonly known: readonly string[]
  readonly droppedQueryNames: number
}

/** A method of its own: the params give the route's ids and query. */
function askedBy(method: Json | undefined, params: JsonObject): Asked | Refusal {
  const route = ROUTES.find((row) => row.id === method && envelopeOf(row) === 'method')
  if (route === undefined) return refuse('route-unknown')
  // A value that is not a string becomes the empty string, which the id grammars refuse.
  const segments = route.path.map((word) => (word.startsWith(':') ? textOf(params[word.slice(1)]) : word))
  const query = new Map<string, string>()
  for (const name of route.query) {
    const value = params[name]
    if (typeof value === 'string' || typeof value === 'number') query.set(name, String(value))
  }
  if (![...query.values()].every((value) => value.length <= MAX_PARAM && isQueryValue(value))) return refuse('query-encoding')
  const descriptor = classify(route.method, segments, query)
  if (descriptor.outcome === 'refused') return descriptor
  return { outcome: 'asked', descriptor, known: [...Object.keys(descriptor.ids), ...query.keys()], droppedQueryNames: 0 }
}

/** The tunnel: two params hold a request line. */
function askedThrough(params: JsonObject): Asked | Refusal {
  const target = readTarget(textOf(params['path']), QUERY_NAMES)
  if (target.outcome === 'refused') return target
  const descriptor = classify(textOf(params['httpMethod']), target.segments, target.query)
  if (descriptor.outcome === 'refused') return descriptor
  if (envelopeOf(descriptor.route) !== 'tunnel') return refuse('route-unknown')
  return { outcome: 'asked', descriptor, known: ['path', 'httpMethod'], droppedQueryNames: target.droppedQueryNames }
}

/** In characters. A longer param counts as absent: the head of an equivalent request has no room for it. */
const MAX_PARAM = 64 * 1024

function textOf(value: Json | undefined): string {
  return typeof value === 'string' && value.length <= MAX_PARAM ? value : ''
}

export interface WrittenEnvelope {
  readonly method: string
  readonly params: JsonObject
}

/**
 * Writes the envelope of a request from its descriptor alone.
 * @throws Error for a route that no envelope carries
 */
export function writeEnvelope(descriptor: RouteDescriptor, query: RouteDescriptor['query']): WrittenEnvelope {
  const { route, ids } = descriptor
  switch (envelopeOf(route)) {
    case 'tunnel':
      return { method: TUNNEL, params: { path: upstreamTarget('', descriptor, query), httpMethod: route.method } }
    case 'method': {
      // Only the body of a run names its thread.
      const params = Object.entries(ids).filter(([name]) => route.path.includes(`:${name}`))
      return { method: route.id, params: Object.fromEntries([...params, ...query]) }
    }
    case null:
      throw new Error(`${route.id} goes by no envelope`)
  }
}
