/** Finds the route of a canonical target. A fixed path wins over a path with an id: `/threads/clear` is never a thread. */
import { ROUTES_OF, type UpstreamApi } from './all-routes.ts'
import { isAgentId, isMemoryId, isRunId, isThreadId } from './ids.ts'
import { refuse, type Reason, type Refusal } from '../reasons.ts'
import type { InterruptAnswer } from './interrupt-answers.ts'
import { isClosed } from './langgraph-routes.ts'
import { OWN_ROUTES, type Route } from './routes.ts'
import { largest } from '../json/extremes.ts'

export interface RouteIds {
  /** On a LangGraph server, the assistant. */
  readonly agentId?: string
  readonly threadId?: string
  readonly memoryId?: string
  readonly runId?: string
  readonly checkpointId?: string
  readonly namespace?: string
}

export interface RouteDescriptor {
  readonly outcome: 'classified'
  readonly route: Route
  /** Ids from the path, and the thread that the body names. */
  readonly ids: RouteIds
  readonly query: readonly (readonly [string, string])[]
  /** True if the body asks for something that stays with the owner, on a route that can be granted to others. */
  readonly ownerOnly?: true
  /** The user whose own grant the body revokes; absent if the body names a group. */
  readonly leaver?: string
  /** True if the gateway named the thread: the upstream cannot have one of that id. */
  readonly isNamedHere?: true
  /** True if the upstream may refuse the request after it has made the thread. */
  readonly isInSteps?: true
  /** What the body answers; absent if it answers no interrupt. */
  readonly answers?: readonly InterruptAnswer[]
}

interface Grammar {
  readonly name: keyof RouteIds
  readonly fits: (id: string) => boolean
  readonly reason: Reason
}

const ID_GRAMMARS: Readonly<Record<string, Grammar>> = {
  ':agentId': { name: 'agentId', fits: isAgentId, reason: 'agent-id-invalid' },
  ':assistantId': { name: 'agentId', fits: isAgentId, reason: 'agent-id-invalid' },
  ':threadId': { name: 'threadId', fits: isThreadId, reason: 'thread-id-invalid' },
  ':memoryId': { name: 'memoryId', fits: isMemoryId, reason: 'memory-id-invalid' },
  ':runId': { name: 'runId', fits: isRunId, reason: 'path-id-invalid' },
  ':checkpointId': { name: 'checkpointId', fits: isRunId, reason: 'path-id-invalid' },
  ':namespace': { name: 'namespace', fits: isRunId, reason: 'path-id-invalid' },
}

/** @returns the descriptor, or 404, 405 with `Allow`, or 400 for an id outside its grammar */
export function classify(
  method: string,
  segments: readonly string[],
  query: ReadonlyMap<string, string>,
  known: readonly Route[] = ROUTES_OF.runtime,
): RouteDescriptor | Refusal {
  const rows = rowsAt(segments, known)
  if (rows.length === 0) return refuse('route-unknown')
  const route = rows.find((row) => row.method === method)
  if (route === undefined) return refuse('method-not-allowed', { allow: rows.map((row) => row.method) })
  const ids: { -readonly [Name in keyof RouteIds]: string } = {}
  for (const [at, word] of route.path.entries()) {
    const grammar = ID_GRAMMARS[word]
    if (grammar === undefined) continue
    const id = segments[at] as string
    if (!grammar.fits(id)) return refuse(grammar.reason)
    ids[grammar.name] = id
  }
  const agentId = route.query.includes('agentId') ? query.get('agentId') : undefined
  if (agentId !== undefined && !isAgentId(agentId)) return refuse('agent-id-invalid')
  return { outcome: 'classified', route, ids, query: queryOf(route, query) }
}

const NO_QUERY: RouteDescriptor['query'] = []

function queryOf(route: Route, query: ReadonlyMap<string, string>): RouteDescriptor['query'] {
  return query.size === 0 ? NO_QUERY : [...query].filter(([name]) => route.query.includes(name))
}

/** @param mount an upstream: the id is that of a self-hosted agent, and null for all others */
export function classifyAt(
  { api, agentId }: { readonly api: UpstreamApi; readonly agentId: string | null },
  method: string,
  segments: readonly string[],
  query: ReadonlyMap<string, string>,
): RouteDescriptor | Refusal {
  if (api === 'langgraph' && isClosed(method, segments)) return refuse('route-closed')
  return agentId === null ? classify(method, segments, query, ROUTES_OF[api]) : classifyEndpoint(method, segments, agentId)
}

/** A run is POSTed to the agent's root path (docs/contributing/specification-map.md), which does not contain `agentId`. */
function classifyEndpoint(method: string, segments: readonly string[], agentId: string): RouteDescriptor | Refusal {
  if (segments.length > 0) return classify(method, segments, new Map(), OWN_ROUTES)
  if (method !== RUN.method) return refuse('method-not-allowed', { allow: [RUN.method] })
  return { outcome: 'classified', route: RUN, ids: { agentId }, query: [] }
}

const RUN = ROUTES_OF.agent[0] as Route

interface Ranks {
  readonly fixed: ReadonlyMap<string, readonly Route[]>
  readonly withIds: readonly Route[]
}

const NONE: readonly Route[] = []

const RANKS = new Map([ROUTES_OF.runtime, ROUTES_OF.langgraph, OWN_ROUTES].map((routes) => [routes, ranked(routes)]))

function ranked(routes: readonly Route[]): readonly Ranks[] {
  const longest = largest(routes.map(({ path }) => path.length))
  return Array.from({ length: longest + 1 }, (_, length) => {
    const ofLength = routes.filter(({ path }) => path.length === length)
    const hasIds = ({ path }: Route): boolean => path.some((word) => word.startsWith(':'))
    // No segment has a '/', so different paths stay different when joined.
    const fixed = Map.groupBy(
      ofLength.filter((row) => !hasIds(row)),
      ({ path }) => path.join('/'),
    )
    return { fixed, withIds: ofLength.filter(hasIds) }
  })
}

function rowsAt(segments: readonly string[], known: readonly Route[]): readonly Route[] {
  const ranks = (RANKS.get(known) ?? ranked(known))[segments.length]
  if (ranks === undefined) return NONE
  const fits = ({ path }: Route): boolean => path.every((word, at) => word === segments[at] || word.startsWith(':'))
  return ranks.fixed.get(segments.join('/')) ?? ranks.withIds.filter(fits)
}
