/**
 * The routes of the real runtime 1.75 (runtime-behaviour.md, "Routes") and of the gateway, as data: method, exact path, place of
 * the ids, and the query and body keys that pass. A route that is not in these tables does not exist, whatever is configured.
 */

import type { NeededRight } from '../decide/sharing.ts'

/** The operation that a request names, as the runtime's hooks call it (docs/specification.md). */
// prettier-ignore
export type RouteId =
  | 'info' | 'agent/run' | 'agent/connect' | 'agent/suggest' | 'agent/stop' | 'transcribe'
  | 'threads/list' | 'threads/subscribe' | 'threads/clear' | 'threads/update' | 'threads/archive'
  | 'threads/messages' | 'threads/events' | 'threads/state' | 'annotate'
  | 'memories/list' | 'memories/recall' | 'memories/subscribe' | 'memories/mutate'
  | 'inspector/metadata' | 'inspector/learning' | 'cpk-debug-events' | 'threads/grants'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type BodyRule =
  /** The gateway refuses a body. */
  | { readonly kind: 'none' }
  /** A JSON object; these top-level keys pass. */
  | { readonly kind: 'json'; readonly keys: readonly string[]; readonly optional?: true }
  /** A multipart recording, which is streamed, or a JSON object; these keys of the object pass. */
  | { readonly kind: 'recording'; readonly keys: readonly string[] }

export interface Route {
  readonly id: RouteId
  readonly method: Method
  /** Segments below the base path; `:agentId`, `:threadId` and `:memoryId` stand for ids. */
  readonly path: readonly string[]
  readonly query: readonly string[]
  readonly body: BodyRule
  /** Where the thread id is, on routes about a thread. */
  readonly thread?: 'path' | 'body'
  /** On routes about a thread: the right that a caller needs on a thread of another user. */
  readonly right?: NeededRight
  /**
   * True if a row that no run has confirmed opens the thread: its runs, and what belongs to a run in progress. The upstream
   * checks these requests against its own threads, if it keeps users apart
   * (runtime-behaviour.md, "What the runtime does not check").
   * For the other routes it would give away or change whatever it holds under that id.
   */
  readonly beforeConfirmed?: true
  /** True if the upstream may write to the thread during the request: a LangGraph server keeps a suggestion as it keeps a run. */
  readonly mayWrite?: true
  /** True if the route revokes a grant: a user who was let in, with any right, may revoke the grant that names them. */
  readonly leave?: true
  /** True if the gateway answers and asks the upstream nothing. */
  readonly own?: true
  /** True if `limits.runBody` bounds the body instead of `limits.body`. */
  readonly largeBody?: true
  /** True if the answer is an event stream, or may be. */
  readonly streams?: true
}

export function deletesThread({ id, method }: Pick<Route, 'id' | 'method'>): boolean {
  return id === 'threads/update' && method === 'DELETE'
}

// RunAgentInput (runtime-behaviour.md, "Run input"). Runtimes of the managed platform read `lastSeenEventId` on connect.
// prettier-ignore
const RUN_KEYS = ['threadId', 'runId', 'parentRunId', 'messages', 'tools', 'context', 'state', 'forwardedProps', 'resume']

function route(id: RouteId, method: Method, path: string, more: Partial<Route> = {}): Route {
  const segments = path.split('/')
  return {
    id,
    method,
    path: segments,
    query: [],
    body: { kind: 'none' },
    ...(segments.includes(':threadId') ? { thread: 'path' } : {}),
    ...more,
  }
}

function json(...keys: string[]): { readonly body: BodyRule } {
  return { body: { kind: 'json', keys } }
}

function optionalJson(...keys: string[]): { readonly body: BodyRule } {
  return { body: { kind: 'json', keys, optional: true } }
}

export const ROUTES: readonly Route[] = [
  route('info', 'GET', 'info'),
  route('agent/run', 'POST', 'agent/:agentId/run', {
    ...json(...RUN_KEYS),
    thread: 'body',
    right: 'write',
    mayWrite: true,
    beforeConfirmed: true,
    largeBody: true,
    streams: true,
  }),
  route('agent/connect', 'POST', 'agent/:agentId/connect', {
    ...json(...RUN_KEYS, 'lastSeenEventId'),
    thread: 'body',
    right: 'read',
    beforeConfirmed: true,
    largeBody: true,
    streams: true,
  }),
  route('agent/suggest', 'POST', 'agent/:agentId/suggest', {
    ...json(...RUN_KEYS),
    thread: 'body',
    right: 'write',
    mayWrite: true,
    beforeConfirmed: true,
    largeBody: true,
    streams: true,
  }),
  // The client sends a JSON content type and often no body (runtime-behaviour.md, "Clients").
  route('agent/stop', 'POST', 'agent/:agentId/stop/:threadId', {
    ...optionalJson('runId'),
    right: 'write',
    beforeConfirmed: true,
  }),
  route('transcribe', 'POST', 'transcribe', {
    body: { kind: 'recording', keys: ['audio', 'mimeType', 'filename'] },
    largeBody: true,
  }),
  route('threads/list', 'GET', 'threads', { query: ['agentId', 'includeArchived', 'limit', 'cursor'] }),
  route('threads/subscribe', 'POST', 'threads/subscribe', optionalJson()),
  route('threads/clear', 'POST', 'threads/clear', optionalJson()),
  route('threads/update', 'PATCH', 'threads/:threadId', { ...json('agentId', 'name', 'archived'), right: 'write' }),
  route('threads/update', 'DELETE', 'threads/:threadId', { ...optionalJson('agentId'), right: 'owner' }),
  route('threads/archive', 'POST', 'threads/:threadId/archive', { ...optionalJson('agentId'), right: 'owner' }),
  route('threads/messages', 'GET', 'threads/:threadId/messages', { right: 'read' }),
  route('threads/events', 'GET', 'threads/:threadId/events', { right: 'read' }),
  route('threads/state', 'GET', 'threads/:threadId/state', { right: 'read' }),
  route('annotate', 'POST', 'annotate', {
    ...json('threadId', 'type', 'payload', 'clientEventId', 'occurredAt'),
    thread: 'body',
    right: 'write',
    mayWrite: true,
  }),
  route('memories/list', 'GET', 'memories', { query: ['includeInvalidated'] }),
  // `sourceThreadIds` does not pass: the platform takes any user's thread ids there
  // (runtime-behaviour.md, "What the runtime does not check").
  route('memories/list', 'POST', 'memories', json('content', 'kind', 'scope')),
  route('memories/recall', 'POST', 'memories/recall', json('query', 'limit', 'scope')),
  route('memories/subscribe', 'POST', 'memories/subscribe', optionalJson()),
  route('memories/mutate', 'PATCH', 'memories/:memoryId', json('content', 'kind', 'scope')),
  route('memories/mutate', 'DELETE', 'memories/:memoryId', optionalJson()),
  route('inspector/metadata', 'GET', 'inspector-metadata'),
  route('inspector/learning', 'GET', 'inspector-learning', { query: ['agentId', 'skillsPage', 'insightsPage'] }),
  route('cpk-debug-events', 'GET', 'cpk-debug-events', { streams: true }),
]

/** The gateway's own routes. No path of a runtime has their first word, and the gateway never sends anything of them upstream. */
export const OWN_ROUTES: readonly Route[] = (
  [
    ['GET', {}],
    ['POST', json('user', 'group', 'right')],
    ['DELETE', { ...json('user', 'group'), leave: true }],
  ] as const
).map(([method, more]) =>
  route('threads/grants', method, 'threadwarden/threads/:threadId/grants', { ...more, right: 'owner', own: true }),
)

export const ALL_ROUTES: readonly Route[] = [...ROUTES, ...OWN_ROUTES]

/** Each id once, in the order of the table. */
export const ROUTE_IDS: readonly RouteId[] = [...new Set(ALL_ROUTES.map((row) => row.id))]

/** The query names that some route knows. The gateway refuses any of them twice. */
export const QUERY_NAMES: ReadonlySet<string> = new Set(ROUTES.flatMap((row) => row.query))
