/**
 * The routes of the LangGraph API server 1.3.0 (docs/reference/langgraph-routes.md): 52, of which 23 are below a thread. Other
 * servers of the same API have further routes; no other route exists for the gateway.
 */
import { jsonWith, optionalJson, route, type Method, type Route } from './routes.ts'

/** A run may have these whatever the policy says. */
const PLAIN_KEYS = [
  'assistant_id',
  'input',
  'metadata',
  'config',
  'command',
  'checkpoint',
  'checkpoint_id',
  'stream_mode',
  'stream_subgraphs',
  'stream_resumable',
] as const

/** Each of these a policy has to name: they stop other runs, call other servers, or change what a graph does. */
export const RUN_OPTIONS = [
  'after_seconds',
  'checkpoint_during',
  'context',
  'durability',
  'feedback_keys',
  'if_not_exists',
  'interrupt_after',
  'interrupt_before',
  'langsmith_tracer',
  'multitask_strategy',
  'on_completion',
  'on_disconnect',
  'supersteps',
  'webhook',
] as const

const RUN_KEYS: readonly string[] = [...PLAIN_KEYS, ...RUN_OPTIONS.filter((option) => option !== 'supersteps')]

const RUN = {
  ...jsonWith(RUN_KEYS),
  api: 'langgraph',
  agent: 'body',
  right: 'write',
  unknownThread: 'claim',
  mayWrite: true,
  beforeConfirmed: true,
  largeBody: true,
} as const satisfies Partial<Route>

const READ = { api: 'langgraph', right: 'read' } as const satisfies Partial<Route>
const API = { api: 'langgraph' } as const satisfies Partial<Route>

/** Filters of a search for threads, and of their number. */
const SEARCHED = ['metadata', 'status', 'values'] as const
const PAGED = ['limit', 'offset', 'sort_by', 'sort_order', 'select'] as const

export const LANGGRAPH_ROUTES: readonly Route[] = [
  route('langgraph/info', 'GET', 'info', API),
  route('langgraph/info', 'GET', 'ok', API),
  route('langgraph/assistants/search', 'POST', 'assistants/search', {
    ...jsonWith(['metadata', 'graph_id', 'name', 'limit', 'offset', 'sort_by', 'sort_order', 'select']),
    ...API,
  }),
  route('langgraph/assistants/search', 'POST', 'assistants/count', { ...jsonWith(['metadata', 'graph_id', 'name']), ...API }),
  route('langgraph/assistants/read', 'GET', 'assistants/:assistantId', API),
  route('langgraph/assistants/read', 'GET', 'assistants/:assistantId/graph', { query: ['xray'], ...API }),
  route('langgraph/assistants/read', 'GET', 'assistants/:assistantId/schemas', API),
  route('langgraph/assistants/read', 'GET', 'assistants/:assistantId/subgraphs', { query: ['recurse'], ...API }),
  route('langgraph/assistants/read', 'GET', 'assistants/:assistantId/subgraphs/:namespace', { query: ['recurse'], ...API }),
  route('langgraph/assistants/read', 'POST', 'assistants/:assistantId/versions', {
    ...jsonWith(['metadata', 'limit', 'offset']),
    ...API,
  }),
  // The gateway names a thread that its creator does not name, so that it is the creator's before the server has it.
  route('langgraph/threads/create', 'POST', 'threads', {
    ...jsonWith(['thread_id', 'metadata', 'if_exists', 'supersteps']),
    ...API,
    thread: 'body',
    right: 'write',
    unknownThread: 'create',
    mayWrite: true,
    beforeConfirmed: true,
  }),
  route('langgraph/threads/search', 'POST', 'threads/search', { ...jsonWith([...SEARCHED, 'ids', ...PAGED]), ...API }),
  route('langgraph/threads/count', 'POST', 'threads/count', { ...jsonWith(SEARCHED), ...API }),
  route('langgraph/threads/read', 'GET', 'threads/:threadId', READ),
  route('langgraph/threads/update', 'PATCH', 'threads/:threadId', { ...jsonWith(['metadata']), ...API, right: 'write' }),
  route('langgraph/threads/delete', 'DELETE', 'threads/:threadId', {
    ...optionalJson(),
    ...API,
    right: 'owner',
    deletesThread: true,
  }),
  route('langgraph/threads/copy', 'POST', 'threads/:threadId/copy', { ...optionalJson(), ...READ, copiesThread: true }),
  route('langgraph/threads/read', 'GET', 'threads/:threadId/state', { query: ['subgraphs'], ...READ }),
  route('langgraph/threads/read', 'GET', 'threads/:threadId/state/:checkpointId', { query: ['subgraphs'], ...READ }),
  route('langgraph/threads/read', 'POST', 'threads/:threadId/state/checkpoint', {
    ...jsonWith(['checkpoint', 'subgraphs']),
    ...READ,
  }),
  route('langgraph/threads/read', 'GET', 'threads/:threadId/history', { query: ['limit', 'before'], ...READ }),
  route('langgraph/threads/read', 'POST', 'threads/:threadId/history', {
    ...jsonWith(['limit', 'before', 'metadata', 'checkpoint']),
    ...READ,
  }),
  route('langgraph/threads/state', 'POST', 'threads/:threadId/state', {
    ...jsonWith(['values', 'as_node', 'checkpoint_id', 'checkpoint']),
    ...API,
    right: 'write',
    mayWrite: true,
    largeBody: true,
  }),
  route('langgraph/runs/create', 'POST', 'threads/:threadId/runs', { ...RUN, answersEarly: true }),
  route('langgraph/runs/create', 'POST', 'threads/:threadId/runs/stream', { ...RUN, streams: true }),
  // These two hold their connection until the run is over, as streams do.
  route('langgraph/runs/create', 'POST', 'threads/:threadId/runs/wait', { ...RUN, streams: true }),
  route('langgraph/runs/read', 'GET', 'threads/:threadId/runs', { query: ['limit', 'offset', 'status', 'metadata'], ...READ }),
  route('langgraph/runs/read', 'GET', 'threads/:threadId/runs/:runId', READ),
  // Without `cancel_on_disconnect`: a caller who may only read a thread would end a run by leaving.
  route('langgraph/runs/join', 'GET', 'threads/:threadId/runs/:runId/join', { ...READ, streams: true }),
  route('langgraph/runs/join', 'GET', 'threads/:threadId/runs/:runId/stream', { query: ['stream_mode'], ...READ, streams: true }),
  route('langgraph/runs/cancel', 'POST', 'threads/:threadId/runs/:runId/cancel', {
    query: ['wait', 'action'],
    ...optionalJson(),
    ...API,
    right: 'write',
  }),
  route('langgraph/runs/delete', 'DELETE', 'threads/:threadId/runs/:runId', { ...optionalJson(), ...API, right: 'owner' }),
]

/** The run of a thread, by which the gateway checks that a run is of that thread. */
export const LANGGRAPH_RUN = LANGGRAPH_ROUTES.find(({ path }) => path.at(-1) === ':runId') as Route

/** A caller who may use it may read the thread. */
export const LANGGRAPH_THREAD = LANGGRAPH_ROUTES.find(({ path }) => path.at(-1) === ':threadId') as Route

/** No policy opens these: they are of all users, run without a thread, or write what every user gets. */
export const LANGGRAPH_CLOSED: readonly (readonly [method: Method | 'PUT' | 'any', path: string])[] = [
  ['POST', 'assistants'],
  ['PATCH', 'assistants/:assistantId'],
  ['DELETE', 'assistants/:assistantId'],
  ['POST', 'assistants/:assistantId/latest'],
  ['POST', 'threads/prune'],
  // The second protocol for streams: its commands start runs and read states under one route.
  ['POST', 'threads/:threadId/commands'],
  ['GET', 'threads/:threadId/stream/events'],
  ['POST', 'threads/:threadId/stream/events'],
  ['GET', 'threads/:threadId/stream'],
  ['POST', 'threads/:threadId/runs/crons'],
  ['POST', 'runs'],
  ['POST', 'runs/stream'],
  ['POST', 'runs/wait'],
  ['POST', 'runs/batch'],
  ['POST', 'runs/cancel'],
  ['GET', 'runs/:runId/stream'],
  ['POST', 'runs/crons'],
  ['POST', 'runs/crons/search'],
  ['POST', 'runs/crons/count'],
  ['any', 'runs/crons/:cronId'],
  ['POST', 'store/namespaces'],
  ['POST', 'store/items/search'],
  ['any', 'store/items'],
  ['POST', 'internal/truncate'],
  ['any', 'mcp'],
  ['any', 'a2a/:assistantId'],
  ['any', 'ui/:assistantId'],
]

const CLOSED = LANGGRAPH_CLOSED.map(([method, path]) => ({ method, path: path.split('/') }))

/** True for a route of the API that the gateway never forwards. */
export function isClosed(method: string, segments: readonly string[]): boolean {
  return CLOSED.some(
    (one) =>
      (one.method === 'any' || one.method === method) &&
      one.path.length === segments.length &&
      one.path.every((word, at) => word.startsWith(':') || word === segments[at]),
  )
}
