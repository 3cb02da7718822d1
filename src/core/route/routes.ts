/** The routes of runtime 1.75 (runtime-behaviour.md, "Routes") and of the gateway. A runtime has no other route. */

import type { NeededRight } from '../decide/sharing.ts'
import { CONNECT_INPUT, RUN_INPUT, type KeyRule } from './run-input.ts'

// oxfmt-ignore
export type RouteId =
  | 'info' | 'agent/run' | 'agent/connect' | 'agent/suggest' | 'agent/stop' | 'transcribe'
  | 'threads/list' | 'threads/subscribe' | 'threads/clear' | 'threads/update' | 'threads/archive'
  | 'threads/messages' | 'threads/events' | 'threads/state' | 'annotate'
  | 'memories/list' | 'memories/recall' | 'memories/subscribe' | 'memories/mutate'
  | 'inspector/metadata' | 'inspector/learning' | 'cpk-debug-events' | 'threads/grants'
  | 'langgraph/info' | 'langgraph/assistants/search' | 'langgraph/assistants/read'
  | 'langgraph/threads/create' | 'langgraph/threads/search' | 'langgraph/threads/count' | 'langgraph/threads/read'
  | 'langgraph/threads/update' | 'langgraph/threads/delete' | 'langgraph/threads/copy' | 'langgraph/threads/state'
  | 'langgraph/runs/create' | 'langgraph/runs/read' | 'langgraph/runs/join' | 'langgraph/runs/cancel' | 'langgraph/runs/delete'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type BodyRule =
  | { readonly kind: 'none'; readonly keys: readonly string[]; readonly inside?: never }
  /** A JSON object; these top-level keys pass, with what `inside` says of their values. */
  | {
      readonly kind: 'json'
      readonly keys: readonly string[]
      readonly inside?: ReadonlyMap<string, KeyRule>
      readonly optional?: true
    }
  /** A multipart recording, which is streamed, or a JSON object; these keys of the object pass. */
  | { readonly kind: 'recording'; readonly keys: readonly string[]; readonly inside?: never }

export interface Route {
  readonly id: RouteId
  readonly method: Method
  /** Path segments below the base path; `:agentId` and the like are ids. */
  readonly path: readonly string[]
  readonly query: readonly string[]
  readonly body: BodyRule
  /** Absent for the API of a runtime, and for what the gateway answers itself. */
  readonly api?: 'langgraph'
  readonly thread?: 'path' | 'body'
  /** True where the body names the agent: rules about agents are matched once it is read. */
  readonly agent?: 'body'
  readonly right?: NeededRight
  /**
   * What happens on an unowned thread, where a rule opens it: the request claims it (`claim`, `create`), is sent without a claim
   * (`try`), or is answered as for a new thread without asking the upstream (`empty`). `create`: the upstream is told to refuse
   * an id that it has. It is asked for a history nevertheless: a caller who leaves before its refusal keeps an unconfirmed row,
   * by which a second request would take the thread. Absent: the thread counts as foreign.
   */
  readonly unknownThread?: 'claim' | 'create' | 'try' | 'empty'
  /** The answer names a new thread, which becomes the caller's. */
  readonly copiesThread?: true
  /**
   * True if an unconfirmed row opens the thread. The upstream checks these requests against its own threads, if it keeps users
   * apart (runtime-behaviour.md, "What the runtime does not check"). Other routes would give away or change what it has under
   * that id.
   */
  readonly beforeConfirmed?: true
  /** A LangGraph server keeps a suggestion as it keeps a run. */
  readonly mayWrite?: true
  /** The answer to the run is over before the run is. */
  readonly answersEarly?: true
  readonly deletesThread?: true
  /** The route revokes a grant: a grantee with any right may revoke their own. */
  readonly leave?: true
  /** The gateway answers and asks the upstream nothing. */
  readonly own?: true
  /** True if `limits.runBody` bounds the body instead of `limits.body`. */
  readonly largeBody?: true
  readonly streams?: true
}

export function route(id: RouteId, method: Method, path: string, more: Partial<Route> = {}): Route {
  const segments = path.split('/')
  return {
    id,
    method,
    path: segments,
    query: [],
    body: { kind: 'none', keys: [] },
    ...(segments.includes(':threadId') ? { thread: 'path' } : {}),
    ...more,
  }
}

/** True for a request that names an agent or an assistant: rules about agents apply to it. */
export function namesAgent({ path, agent }: Pick<Route, 'path' | 'agent'>): boolean {
  return agent === 'body' || path.includes(':agentId') || path.includes(':assistantId')
}

function json(...keys: string[]): { readonly body: BodyRule } {
  return jsonWith(keys)
}

/** A JSON object with these keys. */
export function jsonWith(keys: readonly string[]): { readonly body: BodyRule } {
  return { body: { kind: 'json', keys } }
}

function runInput(inside: ReadonlyMap<string, KeyRule>): { readonly body: BodyRule } {
  return { body: { kind: 'json', keys: [...inside.keys()], inside } }
}

export function optionalJson(...keys: string[]): { readonly body: BodyRule } {
  return { body: { kind: 'json', keys, optional: true } }
}

export const ROUTES: readonly Route[] = [
  route('info', 'GET', 'info'),
  route('agent/run', 'POST', 'agent/:agentId/run', {
    ...runInput(RUN_INPUT),
    thread: 'body',
    right: 'write',
    unknownThread: 'claim',
    mayWrite: true,
    beforeConfirmed: true,
    largeBody: true,
    streams: true,
  }),
  route('agent/connect', 'POST', 'agent/:agentId/connect', {
    ...runInput(CONNECT_INPUT),
    thread: 'body',
    right: 'read',
    unknownThread: 'empty',
    beforeConfirmed: true,
    largeBody: true,
    streams: true,
  }),
  route('agent/suggest', 'POST', 'agent/:agentId/suggest', {
    ...runInput(RUN_INPUT),
    thread: 'body',
    right: 'write',
    unknownThread: 'try',
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
  route('threads/update', 'DELETE', 'threads/:threadId', { ...optionalJson('agentId'), right: 'owner', deletesThread: true }),
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

/** No path of a runtime has their first word. The gateway never sends them upstream. */
export const OWN_ROUTES: readonly Route[] = (
  [
    ['GET', {}],
    ['POST', json('user', 'group', 'right')],
    ['DELETE', { ...json('user', 'group'), leave: true }],
  ] as const
).map(([method, more]) =>
  route('threads/grants', method, 'threadwarden/threads/:threadId/grants', { ...more, right: 'owner', own: true }),
)
