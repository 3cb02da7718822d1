/** The table of routes, row by row, as the real runtime has it (runtime-behaviour.md, "Routes") and as the design lets bodies pass. */
import { test } from 'tap'
import { ALL_ROUTES, QUERY_NAMES, ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import { LANGGRAPH_ROUTES } from '../../src/core/route/langgraph-routes.ts'
import { OWN_ROUTES, ROUTES, type Route } from '../../src/core/route/routes.ts'

const RUN = 'threadId runId parentRunId messages tools context state forwardedProps resume protocolVersion'

/**
 * Route id, method and path; the query names after `?`; the body: none, json (one has to be there), optional (there may
 * be one) or recording, with the keys that pass; where the thread is, and for what it has to be granted; whether the large
 * limit bounds the body, and whether it is open before any run of the thread is confirmed.
 */
const TABLE: readonly (readonly [id: string, request: string, body: string, keys?: string, more?: string])[] = [
  ['info', 'GET /info', 'none'],
  ['agent/run', 'POST /agent/:agentId/run', 'json', RUN, 'thread in body for write, before confirmed, large'],
  [
    'agent/connect',
    'POST /agent/:agentId/connect',
    'json',
    `${RUN} lastSeenEventId`,
    'thread in body for read, before confirmed, large',
  ],
  ['agent/suggest', 'POST /agent/:agentId/suggest', 'json', RUN, 'thread in body for write, before confirmed, large'],
  ['agent/stop', 'POST /agent/:agentId/stop/:threadId', 'optional', 'runId', 'thread in path for write, before confirmed'],
  ['transcribe', 'POST /transcribe', 'recording', 'audio mimeType filename', 'large'],
  ['threads/list', 'GET /threads?agentId&includeArchived&limit&cursor', 'none'],
  ['threads/subscribe', 'POST /threads/subscribe', 'optional'],
  ['threads/clear', 'POST /threads/clear', 'optional'],
  ['threads/update', 'PATCH /threads/:threadId', 'json', 'agentId name archived', 'thread in path for write'],
  ['threads/update', 'DELETE /threads/:threadId', 'optional', 'agentId', 'thread in path for owner'],
  ['threads/archive', 'POST /threads/:threadId/archive', 'optional', 'agentId', 'thread in path for owner'],
  ['threads/messages', 'GET /threads/:threadId/messages', 'none', '', 'thread in path for read'],
  ['threads/events', 'GET /threads/:threadId/events', 'none', '', 'thread in path for read'],
  ['threads/state', 'GET /threads/:threadId/state', 'none', '', 'thread in path for read'],
  ['annotate', 'POST /annotate', 'json', 'threadId type payload clientEventId occurredAt', 'thread in body for write'],
  ['memories/list', 'GET /memories?includeInvalidated', 'none'],
  ['memories/list', 'POST /memories', 'json', 'content kind scope'],
  ['memories/recall', 'POST /memories/recall', 'json', 'query limit scope'],
  ['memories/subscribe', 'POST /memories/subscribe', 'optional'],
  ['memories/mutate', 'PATCH /memories/:memoryId', 'json', 'content kind scope'],
  ['memories/mutate', 'DELETE /memories/:memoryId', 'optional'],
  ['inspector/metadata', 'GET /inspector-metadata', 'none'],
  ['inspector/learning', 'GET /inspector-learning?agentId&skillsPage&insightsPage', 'none'],
  ['cpk-debug-events', 'GET /cpk-debug-events', 'none'],
]

const LANGGRAPH_RUN =
  'assistant_id input metadata config command checkpoint checkpoint_id stream_mode stream_subgraphs stream_resumable after_seconds checkpoint_during context durability feedback_keys if_not_exists interrupt_after interrupt_before langsmith_tracer multitask_strategy on_completion on_disconnect webhook'

/** The same of a LangGraph server. */
const LANGGRAPH: typeof TABLE = [
  ['langgraph/info', 'GET /info', 'none', '', ''],
  ['langgraph/info', 'GET /ok', 'none', '', ''],
  [
    'langgraph/assistants/search',
    'POST /assistants/search',
    'json',
    'metadata graph_id name limit offset sort_by sort_order select',
    '',
  ],
  ['langgraph/assistants/search', 'POST /assistants/count', 'json', 'metadata graph_id name', ''],
  ['langgraph/assistants/read', 'GET /assistants/:assistantId', 'none', '', ''],
  ['langgraph/assistants/read', 'GET /assistants/:assistantId/graph?xray', 'none', '', ''],
  ['langgraph/assistants/read', 'GET /assistants/:assistantId/schemas', 'none', '', ''],
  ['langgraph/assistants/read', 'GET /assistants/:assistantId/subgraphs?recurse', 'none', '', ''],
  ['langgraph/assistants/read', 'GET /assistants/:assistantId/subgraphs/:namespace?recurse', 'none', '', ''],
  ['langgraph/assistants/read', 'POST /assistants/:assistantId/versions', 'json', 'metadata limit offset', ''],
  [
    'langgraph/threads/create',
    'POST /threads',
    'json',
    'thread_id metadata if_exists supersteps',
    'thread in body for write, before confirmed',
  ],
  [
    'langgraph/threads/search',
    'POST /threads/search',
    'json',
    'metadata status values ids limit offset sort_by sort_order select',
    '',
  ],
  ['langgraph/threads/count', 'POST /threads/count', 'json', 'metadata status values', ''],
  ['langgraph/threads/read', 'GET /threads/:threadId', 'none', '', 'thread in path for read'],
  ['langgraph/threads/update', 'PATCH /threads/:threadId', 'json', 'metadata', 'thread in path for write'],
  ['langgraph/threads/delete', 'DELETE /threads/:threadId', 'optional', '', 'thread in path for owner'],
  ['langgraph/threads/copy', 'POST /threads/:threadId/copy', 'optional', '', 'thread in path for read'],
  ['langgraph/threads/read', 'GET /threads/:threadId/state?subgraphs', 'none', '', 'thread in path for read'],
  ['langgraph/threads/read', 'GET /threads/:threadId/state/:checkpointId?subgraphs', 'none', '', 'thread in path for read'],
  [
    'langgraph/threads/read',
    'POST /threads/:threadId/state/checkpoint',
    'json',
    'checkpoint subgraphs',
    'thread in path for read',
  ],
  ['langgraph/threads/read', 'GET /threads/:threadId/history?limit&before', 'none', '', 'thread in path for read'],
  [
    'langgraph/threads/read',
    'POST /threads/:threadId/history',
    'json',
    'limit before metadata checkpoint',
    'thread in path for read',
  ],
  [
    'langgraph/threads/state',
    'POST /threads/:threadId/state',
    'json',
    'values as_node checkpoint_id checkpoint',
    'thread in path for write, large',
  ],
  [
    'langgraph/runs/create',
    'POST /threads/:threadId/runs',
    'json',
    LANGGRAPH_RUN,
    'thread in path for write, before confirmed, large',
  ],
  [
    'langgraph/runs/create',
    'POST /threads/:threadId/runs/stream',
    'json',
    LANGGRAPH_RUN,
    'thread in path for write, before confirmed, large',
  ],
  [
    'langgraph/runs/create',
    'POST /threads/:threadId/runs/wait',
    'json',
    LANGGRAPH_RUN,
    'thread in path for write, before confirmed, large',
  ],
  ['langgraph/runs/read', 'GET /threads/:threadId/runs?limit&offset&status&metadata', 'none', '', 'thread in path for read'],
  ['langgraph/runs/read', 'GET /threads/:threadId/runs/:runId', 'none', '', 'thread in path for read'],
  ['langgraph/runs/join', 'GET /threads/:threadId/runs/:runId/join', 'none', '', 'thread in path for read'],
  ['langgraph/runs/join', 'GET /threads/:threadId/runs/:runId/stream?stream_mode', 'none', '', 'thread in path for read'],
  ['langgraph/runs/cancel', 'POST /threads/:threadId/runs/:runId/cancel?wait&action', 'optional', '', 'thread in path for write'],
  ['langgraph/runs/delete', 'DELETE /threads/:threadId/runs/:runId', 'optional', '', 'thread in path for owner'],
]

/** The same of the gateway's own. */
const OWN: typeof TABLE = [
  ['threads/grants', 'GET /threadwarden/threads/:threadId/grants', 'none', '', 'thread in path for owner'],
  ['threads/grants', 'POST /threadwarden/threads/:threadId/grants', 'json', 'user group right', 'thread in path for owner'],
  ['threads/grants', 'DELETE /threadwarden/threads/:threadId/grants', 'json', 'user group', 'thread in path for owner'],
]

const requestOf = ({ method, path, query }: Route) =>
  `${method} /${path.join('/')}${query.length === 0 ? '' : `?${query.join('&')}`}`
const bodyOf = ({ body }: Route) => (body.kind === 'json' && body.optional === true ? 'optional' : body.kind)
const keysOf = ({ body }: Route) => (body.kind === 'none' ? '' : body.keys.join(' '))
const moreOf = ({ thread, right, beforeConfirmed, largeBody }: Route) =>
  [
    thread === undefined ? [] : `thread in ${thread} for ${String(right)}`,
    beforeConfirmed === true ? 'before confirmed' : [],
    largeBody === true ? 'large' : [],
  ]
    .flat()
    .join(', ')

const written = (rows: readonly Route[]) => rows.map((row) => [row.id, requestOf(row), bodyOf(row), keysOf(row), moreOf(row)])
const expected = (rows: typeof TABLE) => rows.map(([id, request, body, keys = '', more = '']) => [id, request, body, keys, more])

void test('every route, and no other', (t) => {
  t.strictSame(written(ROUTES), expected(TABLE))
  t.strictSame(written(OWN_ROUTES), expected(OWN))
  t.strictSame(written(LANGGRAPH_ROUTES), expected(LANGGRAPH))
  t.strictSame(written(ALL_ROUTES), expected([...TABLE, ...LANGGRAPH, ...OWN]))
  t.end()
})

void test('a route is about a thread exactly where it says what of it must have been granted', (t) => {
  for (const { id, thread, right } of ALL_ROUTES) t.equal(thread === undefined, right === undefined, id)
  t.end()
})

void test('the gateway’s own routes begin with a word that no path of the runtime has, and are marked as its own', (t) => {
  const words = new Set(ROUTES.flatMap(({ path }) => path))
  for (const { path, own } of OWN_ROUTES) t.same([words.has(path[0] ?? ''), own], [false, true])
  t.same(
    ROUTES.filter(({ own }) => own !== undefined),
    [],
  )
  t.end()
})

void test('every route id stands once in the list of ids, in the order of the table', (t) => {
  t.strictSame(ROUTE_IDS, [...new Set([...TABLE, ...LANGGRAPH, ...OWN].map(([id]) => id))])
  t.equal(ROUTE_IDS.length, 39)
  t.end()
})

void test('the query names that no request may repeat are those of all routes', (t) => {
  const runtimes = ['agentId', 'cursor', 'includeArchived', 'includeInvalidated', 'insightsPage', 'limit', 'skillsPage']
  const ofLangGraph = ['action', 'before', 'metadata', 'offset', 'recurse', 'status', 'stream_mode', 'subgraphs', 'wait', 'xray']
  t.strictSame([...QUERY_NAMES].sort(), [...runtimes, ...ofLangGraph].sort())
  t.end()
})
