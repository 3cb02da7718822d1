/**
 * The routes of the real runtime 1.75 as data (runtime-behaviour.md, "Routes"): method, exact path, where ids live, and which query and
 * body keys pass, and those of the gateway's own. What is not in these tables does not exist, whatever is configured.
 */

import type { NeededRight } from '../decide/sharing.ts'

/** The operation that a request names, as the runtime's own hooks call it (spec "Routes"). */
// prettier-ignore
export type RouteId =
  | 'info' | 'agent/run' | 'agent/connect' | 'agent/suggest' | 'agent/stop' | 'transcribe'
  | 'threads/list' | 'threads/subscribe' | 'threads/clear' | 'threads/update' | 'threads/archive'
  | 'threads/messages' | 'threads/events' | 'threads/state' | 'annotate'
  | 'memories/list' | 'memories/recall' | 'memories/subscribe' | 'memories/mutate'
  | 'inspector/metadata' | 'inspector/learning' | 'cpk-debug-events' | 'threads/grants'

/** The HTTP methods that routes have. */
export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** What may stand in a request body. */
export type BodyRule =
  /** No body: one that is there is refused. */
  | { readonly kind: 'none' }
  /** A JSON object of which these top-level keys pass. */
  | { readonly kind: 'json'; readonly keys: readonly string[]; readonly optional?: true }
  /** A multipart recording, streamed, or a JSON object of which these keys pass. */
  | { readonly kind: 'recording'; readonly keys: readonly string[] }

export interface Route {
  readonly id: RouteId
  readonly method: Method
  /** Segments below the base path; `:agentId`, `:threadId` and `:memoryId` stand for ids. */
  readonly path: readonly string[]
  readonly query: readonly string[]
  readonly body: BodyRule
  /** Where the thread id is, if the route is about a thread. */
  readonly thread?: 'path' | 'body'
  /** On routes about a thread: what somebody must have been granted on one that is not theirs. */
  readonly right?: NeededRight
  /**
   * True where a row that no run has confirmed yet opens the thread: its runs, and what belongs to a run under way. These the
   * upstream holds against its own threads by itself, where it keeps users apart (runtime-behaviour.md, "What the runtime does not check"); of the others it would give
   * away or change whatever it holds under that id.
   */
  readonly beforeConfirmed?: true
  /**
   * True where the upstream may write to the thread for as long as it executes the request: a LangGraph server keeps a suggestion
   * as it keeps a run.
   */
  readonly mayWrite?: true
  /** True where a grant is taken back: whoever was let in, for whatever, may take back the one that names them. */
  readonly leave?: true
  /** True where the gateway answers, and nothing is asked of the upstream. */
  readonly own?: true
  /** True where `limits.runBody` bounds the body instead of `limits.body`. */
  readonly largeBody?: true
  /** True where the answer is an event stream, or may be. */
  readonly streams?: true
}

/** True for the route that deletes a thread. */
export function deletesThread({ id, method }: Pick<Route, 'id' | 'method'>): boolean {
  return id === 'threads/update' && method === 'DELETE'
}

// RunAgentInput (runtime-behaviour.md, "Run input"); `lastSeenEventId` is read on connect by runtimes of the managed platform.
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
  // The client sends a JSON content type and often no body at all (runtime-behaviour.md, "Clients").
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
  // `sourceThreadIds` does not pass: the platform takes anybody's thread ids there (runtime-behaviour.md, "What the runtime does not check").
  route('memories/list', 'POST', 'memories', json('content', 'kind', 'scope')),
  route('memories/recall', 'POST', 'memories/recall', json('query', 'limit', 'scope')),
  route('memories/subscribe', 'POST', 'memories/subscribe', optionalJson()),
  route('memories/mutate', 'PATCH', 'memories/:memoryId', json('content', 'kind', 'scope')),
  route('memories/mutate', 'DELETE', 'memories/:memoryId', optionalJson()),
  route('inspector/metadata', 'GET', 'inspector-metadata'),
  route('inspector/learning', 'GET', 'inspector-learning', { query: ['agentId', 'skillsPage', 'insightsPage'] }),
  route('cpk-debug-events', 'GET', 'cpk-debug-events', { streams: true }),
]

/**
 * The gateway's own, on a path that no runtime has: its first word is none of the runtime's, and nothing of it is ever sent
 * upstream.
 */
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

/** All route ids, each once, in the order of the table. */
export const ROUTE_IDS: readonly RouteId[] = [...new Set(ALL_ROUTES.map((row) => row.id))]

/** The query names that some route knows: any of them twice is refused. */
export const QUERY_NAMES: ReadonlySet<string> = new Set(ROUTES.flatMap((row) => row.query))
