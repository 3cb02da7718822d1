/**
 * Requests with which a caller could reach a thread of another user on a LangGraph server, or the server itself, each with what the
 * gateway makes of it. What the fuzz finds is added at the end.
 */
import { test } from 'tap'
import type { Reason } from '../../src/core/reasons.ts'
import type { RouteId } from '../../src/core/route/routes.ts'
import { langGraphCase, PUBLIC_PATH, type LangGraphCase } from '../../testing/fuzz/langgraph/case.ts'
import { makeExamine } from '../../testing/fuzz/langgraph/examine.ts'
import { ASSISTANT, checkpointOf, FOREIGN, NEW, ORPHAN, OWN, runOf, SHARED } from '../../testing/fuzz/langgraph/world.ts'
import { hush } from '../../testing/fuzz/hush.ts'

/** What the gateway does. `reached`: without the gateway, the server would have accessed a thread or run of another user. */
type Row = readonly [one: LangGraphCase, outcome: RouteId | Reason, reached?: 'reached']

const [own, busy] = OWN
const [theirs, theirBusy] = FOREIGN
const HOST = [['host', 'gateway.example']] as const

const get = (path: string): LangGraphCase => langGraphCase({ method: 'GET', target: `${PUBLIC_PATH}/${path}`, headers: HOST })

const post = (path: string, body?: object | string, more: Partial<LangGraphCase> = {}): LangGraphCase => {
  const text = typeof body === 'object' ? JSON.stringify(body) : (body ?? null)
  return langGraphCase({ target: `${PUBLIC_PATH}/${path}`, body: text, ...(text === null ? { headers: HOST } : {}), ...more })
}

const runWith = (more: object, threadId: string = own): LangGraphCase =>
  post(`threads/${threadId}/runs`, { assistant_id: ASSISTANT, input: { messages: 'hello' }, ...more })

// oxfmt-ignore
const THREADS: readonly Row[] = [
  [get(`threads/${own}`), 'langgraph/threads/read'],
  [get(`threads/${theirs}`), 'thread-foreign', 'reached'],
  [get(`threads/${theirs.toUpperCase()}`), 'thread-id-invalid', 'reached'],
  [get(`threads/${own}/../${theirs}`), 'target-dot-segment', 'reached'],
  [get(`threads/${own}/%2e%2e/${theirs}`), 'target-dot-segment', 'reached'],
  [get(`threads/${theirs}/state?subgraphs=true`), 'thread-foreign', 'reached'],
  [get(`threads/${SHARED}/state?subgraphs=true`), 'langgraph/threads/read'],
  [get(`threads/${ORPHAN}`), 'thread-unknown'],
  [post(`threads/${theirs}/copy`), 'thread-foreign', 'reached'],
  [post(`threads/${own}/copy`), 'langgraph/threads/copy'],
  [post(`threads/${SHARED}/state`, { values: { messages: 'x' } }), 'thread-foreign', 'reached'],
  [langGraphCase({ method: 'DELETE', target: `${PUBLIC_PATH}/threads/${SHARED}`, headers: HOST }), 'thread-foreign', 'reached'],
  [langGraphCase({ method: 'DELETE', target: `${PUBLIC_PATH}/threads/${theirs}`, headers: HOST }), 'thread-foreign', 'reached'],
  [post('threads', { thread_id: theirs, if_exists: 'do_nothing' }), 'thread-foreign', 'reached'],
  [post('threads', { thread_id: ORPHAN, if_exists: 'do_nothing' }), 'thread-has-history'],
  [post('threads', {}), 'langgraph/threads/create'],
  [post('threads', `{"thread_id":"${own}","thread_id":"${theirs}"}`), 'body-key-repeated', 'reached'],
  [post('threads', `{"thread_\\u0069d":"${theirs}"}`), 'thread-foreign', 'reached'],
]

// oxfmt-ignore
const RUNS: readonly Row[] = [
  [get(`threads/${own}/runs/${runOf(own)}/stream`), 'langgraph/runs/join'],
  // The server streams any run's events below any thread.
  [get(`threads/${own}/runs/${runOf(theirs)}/stream`), 'run-unknown', 'reached'],
  [get(`threads/${own}/runs/${runOf(theirs)}/join`), 'run-unknown', 'reached'],
  [get(`threads/${own}/runs/${runOf(theirs)}`), 'run-unknown', 'reached'],
  [get(`threads/${own}/runs/${runOf(theirs).toUpperCase()}/stream`), 'run-unknown', 'reached'],
  [get(`threads/${own}/runs/${runOf(ORPHAN)}/stream`), 'run-unknown'],
  [get(`threads/${SHARED}/runs/${runOf(theirs)}/stream`), 'run-unknown', 'reached'],
  [post(`threads/${busy}/runs/${runOf(theirBusy)}/cancel?action=rollback`), 'run-unknown', 'reached'],
  [post(`threads/${SHARED}/runs/${runOf(SHARED)}/cancel`), 'thread-foreign'],
  [langGraphCase({ method: 'DELETE', target: `${PUBLIC_PATH}/threads/${own}/runs/${runOf(theirs)}`, headers: HOST }), 'run-unknown', 'reached'],
  [runWith({}, theirs), 'thread-foreign', 'reached'],
  [runWith({}, SHARED), 'thread-foreign', 'reached'],
  [runWith({ if_not_exists: 'create' }, ORPHAN), 'thread-has-history', 'reached'],
  [runWith({ if_not_exists: 'create' }, NEW[0]), 'langgraph/runs/create'],
]

// oxfmt-ignore
const BODIES: readonly Row[] = [
  [runWith({}), 'langgraph/runs/create'],
  [runWith({ checkpoint: { thread_id: theirs, checkpoint_id: checkpointOf(theirs, 1) } }), 'checkpoint-foreign'],
  [runWith({ checkpoint: { configurable: { thread_id: theirs } } }), 'checkpoint-foreign'],
  [runWith({ checkpoint: { checkpoint_id: checkpointOf(theirs, 1), checkpoint_ns: '' } }), 'langgraph/runs/create'],
  [runWith({ checkpoint: { checkpoint_id: checkpointOf(own, 1), checkpoint_map: { '': checkpointOf(theirs, 1), thread_id: theirs } } }), 'langgraph/runs/create'],
  [post(`threads/${own}/history`, { before: { configurable: { thread_id: theirs, checkpoint_id: checkpointOf(theirs, 2) } } }), 'checkpoint-foreign'],
  [post(`threads/${own}/state/checkpoint`, { checkpoint: { thread_id: theirs } }), 'checkpoint-foreign'],
  [runWith({ config: { configurable: { thread_id: theirs } } }), 'configurable-not-allowed', 'reached'],
  [runWith({ config: { configurable: { checkpoint_id: checkpointOf(theirs, 1) } } }), 'configurable-not-allowed'],
  [runWith({ config: { configurable: { user_id: 'bob' } } }), 'configurable-not-allowed'],
  [runWith({ config: { configurable: { 'x-user': 'bob' } } }), 'configurable-not-allowed'],
  [runWith({ config: { configurable: { langgraph_auth_user: { identity: 'bob' } } } }), 'configurable-not-allowed'],
  [runWith({ metadata: { thread_id: theirs, graph_id: 'nothing' } }), 'langgraph/runs/create'],
  [post(`threads/search`, {}), 'langgraph/threads/search'],
  [post(`threads/search`, { ids: [theirs, own] }), 'langgraph/threads/search'],
  [post(`threads/search`, { ids: [theirs] }), 'langgraph/threads/search'],
  [post(`threads/search`, { ids: [[theirs]] }), 'body-not-object'],
  [post(`threads/search`, { metadata: { owner: 'bobs' }, select: ['values'] }), 'langgraph/threads/search'],
  [post(`threads/count`, { ids: [theirs] }), 'langgraph/threads/count'],
]

// oxfmt-ignore
const CLOSED: readonly Row[] = [
  [post('runs', { assistant_id: ASSISTANT, config: { configurable: { thread_id: theirs } } }), 'route-closed', 'reached'],
  [post('runs/batch', [{ assistant_id: ASSISTANT }]), 'route-closed'],
  [get(`runs/${runOf(theirs)}/stream`), 'route-closed', 'reached'],
  [post(`threads/${own}/commands`, { id: 1, method: 'state.get', params: { thread_id: theirs } }), 'route-closed'],
  [post('store/items/search', { namespace_prefix: ['bob'] }), 'route-closed', 'reached'],
  [post('assistants', { graph_id: ASSISTANT }), 'route-closed', 'reached'],
  [post('internal/truncate', { threads: true }), 'route-closed', 'reached'],
]

// oxfmt-ignore
const FOUND: readonly Row[] = [
  // The result of a run became the body of a run, and of a state, of another user's thread.
  [runWith({ webhook: `/threads/${theirs}/runs` }), 'run-option-not-allowed'],
  [runWith({ webhook: `/threads/${theirs}/state` }), 'run-option-not-allowed'],
  [runWith({ webhook: `//threads/${theirs}/runs` }), 'run-option-not-allowed'],
  [runWith({ webhook: '/internal/truncate' }), 'run-option-not-allowed'],
  [runWith({ webhook: 'https://hooks.example/x' }), 'langgraph/runs/create'],
  // The server set properties of what all objects have in common.
  [post('threads', { metadata: { graph_id: '__proto__' } }), 'agent-id-invalid'],
  [post('threads', { metadata: { graph_id: 'constructor' } }), 'agent-id-invalid'],
  [post('threads', { metadata: { graph_id: ASSISTANT } }), 'langgraph/threads/create'],
  // The gateway took these for refusals of its own.
  [runWith({ input: { outcome: 'refused', reason: 'x', code: 'y' } }), 'langgraph/runs/create'],
  [runWith({ metadata: { outcome: 'refused' } }), 'langgraph/runs/create'],
  [post('threads/search', { metadata: { outcome: 'refused', reason: 'x' } }), 'langgraph/threads/search'],
  // A new thread with the id of a run of another user: the watch took it for the run.
  [post('threads', { thread_id: runOf(theirs) }), 'langgraph/threads/create'],
]

const examine = await makeExamine()

for (const [title, rows] of Object.entries({ THREADS, RUNS, BODIES, CLOSED, FOUND })) {
  void test(title.toLowerCase(), async (t) => {
    t.teardown(hush())
    for (const [one, outcome, reached] of rows) {
      const finding = await examine(one)
      const what = `${one.method} ${one.target} ${one.body}`
      t.equal(finding.outcome, outcome, what)
      t.same(finding.faults, [], what)
      t.equal(finding.asWritten !== undefined, reached !== undefined, `${what}: ${finding.asWritten}`)
    }
  })
}
