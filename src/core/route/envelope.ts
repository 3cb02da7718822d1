/**
 * The envelope of the single-route transport (runtime-behaviour.md, "Single-route transport"), read and written. It is classified by what it says, never by
 * where it was sent; the path inside `resource/request` goes through the same grammar and the same classification as the
 * path of a request line.
 */
import { MAX_TOP_MEMBERS } from './bodies.ts'
import { classify, upstreamTarget, type RouteDescriptor } from './classify.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { refuse, type Refusal } from '../reasons.ts'
import { QUERY_NAMES, ROUTES, type Route } from './routes.ts'
import { isQueryValue, readTarget } from './target.ts'

/** An envelope, opened: what it is about, and the body that it carries. */
export interface Envelope {
  readonly outcome: 'opened'
  readonly descriptor: RouteDescriptor
  /** Not checked against its route yet; undefined if there is none. */
  readonly body: Json | undefined
  /** Keys of the envelope and of its params that mean nothing, and go no further. */
  readonly dropped: readonly string[]
  /** How many query names of the inner path no route knows. */
  readonly droppedQueryNames: number
}

/** The method that reaches what has no method of its own. */
const TUNNEL = 'resource/request'

/** How a route goes by envelope, in the runtime as here: by a method of its own, by the tunnel, or not at all. */
export function envelopeOf({ id, own }: Route): 'method' | 'tunnel' | null {
  if (id === 'cpk-debug-events' || own === true) return null
  return id.startsWith('threads/') || id.startsWith('memories/') || id === 'annotate' ? 'tunnel' : 'method'
}

/**
 * Opens an envelope and classifies what it asks for.
 * @param value the body of the request, as the strict reader gave it
 * @returns a refusal: 404 for what is no envelope or has a method that doesn't exist, 405, 413 for too many params, or 400 as for
 * a request line
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
    // In the tunnel the runtime takes null for no body; elsewhere it is one, which no route takes.
    body: method === TUNNEL ? (body ?? undefined) : body,
    dropped: [...Object.keys(others), ...strange.map((name) => `params.${name}`)],
    droppedQueryNames: asked.droppedQueryNames,
  }
}

/** What is asked of whoever sends an envelope, once it is known what it is about. */
export interface EnvelopeRules {
  /** May refuse what is asked before the body of it is looked at. */
  readonly admit: (descriptor: RouteDescriptor) => Refusal | null
  /** The bound of it, in bytes. */
  readonly mostOf: (descriptor: RouteDescriptor) => number
}

/**
 * Opens an envelope and holds it against what its sender may. A body that its route does not take is dropped.
 * @param bytes how many it has
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

/** A method of its own: its params stand where the route has its ids and its query. */
function askedBy(method: Json | undefined, params: JsonObject): Asked | Refusal {
  const route = ROUTES.find((row) => row.id === method && envelopeOf(row) === 'method')
  if (route === undefined) return refuse('route-unknown')
  // What is no string can be no id: the grammar refuses the empty one.
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

/** The tunnel: a request line in two params. */
function askedThrough(params: JsonObject): Asked | Refusal {
  const target = readTarget(textOf(params['path']), QUERY_NAMES)
  if (target.outcome === 'refused') return target
  const descriptor = classify(textOf(params['httpMethod']), target.segments, target.query)
  if (descriptor.outcome === 'refused') return descriptor
  if (envelopeOf(descriptor.route) !== 'tunnel') return refuse('route-unknown')
  return { outcome: 'asked', descriptor, known: ['path', 'httpMethod'], droppedQueryNames: target.droppedQueryNames }
}

/** A param of more characters is none: the head of a request that could say as much has no room for it. */
const MAX_PARAM = 64 * 1024

function textOf(value: Json | undefined): string {
  return typeof value === 'string' && value.length <= MAX_PARAM ? value : ''
}

/** An envelope to send. */
export interface WrittenEnvelope {
  readonly method: string
  readonly params: JsonObject
}

/**
 * Writes the envelope of a request from its descriptor alone.
 * @param query the query to send
 * @throws Error for a route that goes by no envelope
 */
export function writeEnvelope(descriptor: RouteDescriptor, query: RouteDescriptor['query']): WrittenEnvelope {
  const { route, ids } = descriptor
  switch (envelopeOf(route)) {
    case 'tunnel':
      return { method: TUNNEL, params: { path: upstreamTarget('', descriptor, query), httpMethod: route.method } }
    case 'method': {
      // The thread of a run stands in its body alone.
      const params = Object.entries(ids).filter(([name]) => route.path.includes(`:${name}`))
      return { method: route.id, params: Object.fromEntries([...params, ...query]) }
    }
    case null:
      throw new Error(`${route.id} goes by no envelope`)
  }
}
