/**
 * The grammar of cases: a route of the gateway, or one of the server that the gateway closes, spelled as it should be or not, with the
 * method, header lines and body that belong to it or not. Without chains, so that a counter-example shrinks part by part.
 */
import fc from 'fast-check'
import { LANGGRAPH_CLOSED, LANGGRAPH_ROUTES, RUN_OPTIONS } from '../../../src/core/route/langgraph-routes.ts'
import { jsonWith, OWN_ROUTES, type Route } from '../../../src/core/route/routes.ts'
import { HOST, jsonType, linesEdits, type Line, type LinesEdit } from '../grammar-headers.ts'
import { edits, idSpelling, query } from '../grammar-target.ts'
import { langGraphCase, POLICIES, PUBLIC_PATH, type LangGraphCase } from './case.ts'
import { body } from './grammar-body.ts'
import { assistantId, checkpointId, namespace, runId, threadId } from './grammar-ids.ts'
import { FOREIGN, OWN } from './world.ts'

type Asked = Pick<Route, 'path' | 'query' | 'body'> & { readonly method: string }

const RUN_KEYS = [
  'assistant_id',
  'input',
  'config',
  'checkpoint',
  'checkpoint_id',
  'command',
  'metadata',
  'stream_mode',
  ...RUN_OPTIONS,
]

const CLOSED: readonly Asked[] = LANGGRAPH_CLOSED.map(([method, path]) => ({
  method: method === 'any' ? 'POST' : method,
  path: path.split('/'),
  query: ['cancel_on_disconnect', 'delete_threads'],
  ...jsonWith(
    path.includes('runs') ? RUN_KEYS : ['thread_id', 'thread_ids', 'method', 'params', 'channels', 'metadata', 'assistant_id'],
  ),
}))

const ABOUT_THREADS = LANGGRAPH_ROUTES.filter(({ thread, id }) => thread !== undefined || id === 'langgraph/threads/search')

/** What names a run, or takes an id in its body, can be wrong in most ways: it comes more often. */
const route: fc.Arbitrary<Asked> = fc.oneof(
  { arbitrary: fc.constantFrom<Asked[]>(...LANGGRAPH_ROUTES), weight: 3 },
  { arbitrary: fc.constantFrom<Asked[]>(...ABOUT_THREADS), weight: 6 },
  { arbitrary: fc.constantFrom<Asked[]>(...ABOUT_THREADS.filter(({ path }) => path.includes(':runId'))), weight: 3 },
  { arbitrary: fc.constantFrom<Asked[]>(...ABOUT_THREADS.filter(({ mayWrite }) => mayWrite === true)), weight: 3 },
  { arbitrary: fc.constantFrom(...CLOSED), weight: 2 },
  { arbitrary: fc.constantFrom<Asked[]>(...OWN_ROUTES), weight: 1 },
)

// oxfmt-ignore
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS', 'get', 'Post', 'QUERY', 'TRACE']

const QUERIES = [
  `before=${FOREIGN[0]}`,
  `before=${OWN[0]}`,
  `metadata=${encodeURIComponent(JSON.stringify({ thread_id: FOREIGN[0] }))}`,
  `metadata[thread_id]=${FOREIGN[0]}`,
  'subgraphs=true',
  'cancel_on_disconnect=true',
  'stream_mode=values',
  'wait=true',
  'wait=false',
  'action=rollback',
  'action=interrupt',
  'limit=10',
  'limit=NaN',
  'status=success',
  `thread_id=${FOREIGN[0]}`,
  `run_id=${FOREIGN[0]}`,
  'xray=true',
  'recurse=1',
]

/** Header lines that a LangGraph server or its hosts read. */
// oxfmt-ignore
const LINES: readonly Line[] = [
  ['x-auth-scheme', 'langsmith'], ['x-api-key', 'k'], ['x-service-key', 'k'], ['x-tenant-id', 't'], ['x-user-id', 'bob'], ['x-thread-id', FOREIGN[0]], ['x-user', 'bob'], ['x-organization-id', 'o'],
  ['last-event-id', '-1'], ['last-event-id', '0'], ['Last-Event-ID', '1'], ['last-event-id', FOREIGN[0]], ['langgraph-auth-user', 'bob'], ['content-location', `/threads/${FOREIGN[0]}`],
  ['x-forwarded-uri', `/threads/${FOREIGN[0]}`], ['x-original-uri', `/threads/${FOREIGN[0]}`], ['user-agent', FOREIGN[0]], ['cookie', 'session=bob'],
]

const moreLines: fc.Arbitrary<LinesEdit> = fc.oneof(
  { arbitrary: fc.constant<LinesEdit>((lines) => lines), weight: 8 },
  {
    arbitrary: fc.constantFrom(...LINES).map((line): LinesEdit => (lines) => [...lines, line]),
    weight: 2,
  },
)

const target = fc.record({
  ids: fc.record({
    ':threadId': threadId,
    ':runId': runId,
    ':checkpointId': checkpointId,
    ':assistantId': assistantId,
    ':namespace': namespace,
    ':cronId': runId,
  }),
  write: idSpelling,
  edits,
  query: fc.oneof(
    { arbitrary: fc.constant(() => ''), weight: 5 },
    {
      arbitrary: fc.array(fc.constantFrom(...QUERIES), { minLength: 1, maxLength: 3 }).map((of) => () => `?${of.join('&')}`),
      weight: 2,
    },
    { arbitrary: query, weight: 1 },
  ),
})

/** Mostly written as they are: what is refused for its spelling says nothing about the rest. */
const isPlain = fc.oneof({ arbitrary: fc.constant(true), weight: 3 }, { arbitrary: fc.constant(false), weight: 1 })

export const langGraphCases: fc.Arbitrary<LangGraphCase> = fc
  .record({
    policy: fc.constantFrom(...POLICIES),
    route,
    method: fc.oneof({ arbitrary: fc.constant(null), weight: 12 }, { arbitrary: fc.constantFrom(...METHODS), weight: 1 }),
    target,
    isPlain,
    body,
    hasBody: fc.oneof({ arbitrary: fc.constant(true), weight: 20 }, { arbitrary: fc.constant(false), weight: 1 }),
    type: jsonType,
    linesEdits,
    moreLines,
    chunked: fc.oneof({ arbitrary: fc.constant(false), weight: 6 }, { arbitrary: fc.constant(true), weight: 1 }),
  })
  .map((parts) => {
    const { route: asked, target: where } = parts
    const ids: Readonly<Record<string, string>> = where.ids
    const write = parts.isPlain ? encoded : where.write
    const words = asked.path.map((word) => (ids[word] === undefined ? word : write(ids[word])))
    const path = [PUBLIC_PATH, ...words].join('/')
    const takesBody = asked.body.kind !== 'none' && !(asked.body.kind === 'json' && asked.body.optional === true && parts.isPlain)
    const text = takesBody && parts.hasBody ? parts.body(asked.body.keys) : null
    const lines: readonly Line[] =
      text === null ? [HOST] : [HOST, ['content-type', parts.isPlain ? 'application/json' : parts.type]]
    const changed = parts.isPlain ? lines : parts.linesEdits.reduce<readonly Line[]>((all, change) => change(all), lines)
    return langGraphCase({
      policy: parts.policy,
      method: parts.method ?? asked.method,
      target: (parts.isPlain ? path : where.edits.reduce((all, change) => change(all), path)) + where.query(asked as Route),
      headers: parts.moreLines(changed),
      body: text,
      chunked: parts.chunked && text !== null,
    })
  })

/** A lone surrogate cannot be encoded. */
function encoded(id: string): string {
  return id.isWellFormed() ? encodeURIComponent(id) : id
}
