/** Reads and writes envelopes, classified by content alone (runtime-behaviour.md, "Single-route transport"). */
import { MAX_TOP_MEMBERS } from './bodies.ts'
import { classify, type RouteDescriptor } from './classify.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { refuse, type Refusal } from '../reasons.ts'
import { QUERY_NAMES } from './all-routes.ts'
import { ROUTES, type Route } from './routes.ts'
import { isQueryValue, readTarget } from './target.ts'

export interface Envelope {
  readonly outcome: 'opened'
  readonly descriptor: RouteDescriptor
  /** Not checked against its route yet; undefined if absent. */
  readonly body: Json | undefined
  readonly dropped: readonly string[]
  readonly droppedQueryNames: number
}

/** The method for routes that have no method of their own. */
const TUNNEL = 'resource/request'

/** Null if no envelope carries the route. */
export function envelopeOf({ id, own }: Route): 'method' | 'tunnel' | null {
  if (id === 'cpk-debug-events' || own === true) return null
  return id.startsWith('threads/') || id.startsWith('memories/') || id === 'annotate' ? 'tunnel' : 'method'
}

/** @returns a refusal: 404 for no envelope or an unknown method, 405, 413 for too many params, or 400 as for a request line */
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

export interface EnvelopeRules {
  readonly admit: (descriptor: RouteDescriptor) => Refusal | null
  /** In bytes. */
  readonly mostOf: (descriptor: RouteDescriptor) => number
}

/** Drops a body that the route does not take. `bytes` is the size of the envelope. */
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

/** @param target below the base path, for the tunnel. @throws Error for a route that no envelope carries */
export function writeEnvelope({ route, ids }: RouteDescriptor, query: RouteDescriptor['query'], target: string): WrittenEnvelope {
  switch (envelopeOf(route)) {
    case 'tunnel':
      return { method: TUNNEL, params: { path: target, httpMethod: route.method } }
    case 'method': {
      // Only the body of a run names its thread.
      const params = Object.entries(ids).filter(([name]) => route.path.includes(`:${name}`))
      return { method: route.id, params: Object.fromEntries([...params, ...query]) }
    }
    case null:
      throw new Error(`${route.id} has no envelope`)
  }
}
