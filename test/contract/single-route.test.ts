/** The real runtime, with one POST for everything, behaves as the gateway believes, in either version. */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { envelope, tell, type Answer, type Row } from './runtimes.ts'

const RUNS: Answer = { status: 200, body: /^data: \{"type":"RUN_STARTED"/, ran: true }
const EMPTY: Answer = { status: 200, body: '' }
const INFO: Answer = { status: 200, body: { version: /^1\./, agents: { default: { name: 'default' } } } }
const UNREAD: Answer = { status: 400, body: { error: 'invalid_request', message: 'Missing method field' } }
const UNSUPPORTED: Answer = { status: 400, body: { message: /^Unsupported method/ } }

/** What is not at the base path, or not a POST, is read by 1.75 alone, and there on node:http alone. */
const notHere = (onNode: Answer): Row['answers'] => ({ all: { status: 404 }, '1.75 node': onNode })

const NONE = { list: false, inspect: false, mutations: false, realtimeMetadata: false }

const METHODS: readonly Row[] = [
  {
    relied: 'info has the version and the agents; only that of 1.75 has what says that there is a tunnel',
    ask: () => ({ body: { method: 'info' } }),
    answers: {
      '1.75': {
        status: 200,
        body: {
          version: '1.75.0',
          agents: { default: { name: 'default' } },
          mode: 'sse',
          threadEndpoints: NONE,
          singleRoute: { resourceOperations: true, threadEndpoints: { ...NONE, list: true, inspect: true } },
        },
      },
      '1.54': {
        status: 200,
        body: {
          version: '1.54.1',
          agents: { default: { name: 'default' } },
          mode: 'sse',
          threadEndpoints: undefined,
          singleRoute: undefined,
        },
      },
    },
  },
  {
    relied: 'a run is answered with its events',
    ask: (thread) => ({ body: envelope('agent/run', runInput(thread)) }),
    answers: { all: RUNS },
  },
  {
    relied: 'a body that is a string is read once more, so the gateway must not send one',
    ask: (thread) => ({ body: envelope('agent/run', JSON.stringify(runInput(thread))) }),
    answers: { all: RUNS },
  },
  {
    relied: 'a connect to a thread that is unknown is an empty stream',
    ask: (thread) => ({ body: envelope('agent/connect', runInput(thread)) }),
    answers: { all: EMPTY },
  },
  {
    relied: 'suggest runs an agent and stores nothing; 1.54 has none',
    ask: (thread) => ({ body: envelope('agent/suggest', runInput(thread)) }),
    answers: { '1.75': { status: 200, body: /RUN_STARTED/ }, '1.54': UNSUPPORTED },
  },
  {
    relied: 'there is nothing to stop where nothing runs',
    ask: (threadId) => ({ body: envelope('agent/stop', undefined, { threadId }) }),
    answers: { all: { status: 200, body: { stopped: false } } },
  },
  {
    relied: 'the thread of a stop is a param',
    ask: (threadId) => ({ body: envelope('agent/stop', { threadId }) }),
    answers: { all: { status: 400, body: { message: "Missing or invalid parameter 'threadId'" } } },
  },
  {
    relied: 'transcribe is there, and says that it is not set up',
    ask: () => ({ body: envelope('transcribe', {}) }),
    answers: { all: { status: 503, body: { error: 'service_not_configured' } } },
  },
  {
    relied: 'the inspector has nothing to say; 1.54 has none',
    ask: () => ({ body: envelope('inspector/metadata') }),
    answers: { '1.75': { status: 204 }, '1.54': UNSUPPORTED },
  },
  {
    relied: 'threads are behind the tunnel, of which 1.54 has none',
    ask: () => ({ body: envelope('resource/request', undefined, { path: '/threads', httpMethod: 'GET' }) }),
    answers: { '1.75': { status: 200, body: { threads: Array, nextCursor: null } }, '1.54': UNSUPPORTED },
  },
  {
    relied: 'so are their changes',
    ask: (thread) => ({
      body: envelope('resource/request', { agentId: 'default' }, { path: `/threads/${thread}`, httpMethod: 'DELETE' }),
    }),
    answers: { '1.75': { status: 422 }, '1.54': UNSUPPORTED },
  },
  {
    relied: 'agents are not behind it',
    ask: (thread) => ({
      body: envelope('resource/request', runInput(thread), { path: '/agent/default/run', httpMethod: 'POST' }),
    }),
    answers: { '1.75': { status: 404 }, '1.54': UNSUPPORTED },
  },
  {
    relied: 'threads have no methods of their own',
    ask: () => ({ body: envelope('threads/list') }),
    answers: { all: UNSUPPORTED },
  },
]

const FORM: readonly Row[] = [
  { relied: 'a method has one spelling', ask: () => ({ body: envelope('INFO') }), answers: { all: UNSUPPORTED } },
  { relied: 'and is a string', ask: () => ({ body: envelope(['info']) }), answers: { all: UNSUPPORTED } },
  {
    relied: 'a run needs a body',
    ask: () => ({ body: envelope('agent/run') }),
    answers: { all: { status: 400, body: { message: 'Missing request body for JSON handler' } } },
  },
  {
    relied: 'a run needs an agent',
    ask: (thread) => ({ body: { method: 'agent/run', params: 'default', body: runInput(thread) } }),
    answers: { all: { status: 400, body: { message: "Missing or invalid parameter 'agentId'" } } },
  },
  {
    relied: 'an agent that isn’t there is a 404',
    ask: (thread) => ({ body: envelope('agent/run', runInput(thread), { agentId: 'a/b' }) }),
    answers: { all: { status: 404, body: { message: "Agent 'a/b' does not exist" } } },
  },
  {
    relied: 'an envelope is JSON by its content type',
    ask: (thread) => ({ body: envelope('agent/run', runInput(thread)), headers: { 'content-type': 'text/plain' } }),
    answers: { all: { status: 415, body: { error: 'invalid_request' } } },
  },
  {
    relied: 'null is no envelope, and 1.75 stumbles over it',
    ask: () => ({ body: null }),
    answers: { '1.75': { status: 500, body: { error: 'internal_error' } }, '1.54': { status: 400 } },
  },
]

const PLACES: readonly Row[] = [
  {
    relied: 'a question is no GET, so that the gateway can tell the transports apart',
    ask: () => ({ path: '/info' }),
    answers: notHere({ status: 405 }),
  },
  {
    relied: 'below the base path an envelope is read by one alone, so the gateway sends it to the base path',
    ask: (thread) => ({ path: '/agent/default/run', body: envelope('agent/run', runInput(thread)) }),
    answers: notHere(RUNS),
  },
  {
    relied: 'a slash at the end is no matter, but to Hono',
    ask: () => ({ path: '/', body: envelope('info') }),
    answers: { all: INFO, '1.54 hono': { status: 404 } },
  },
  {
    relied: 'an envelope by another method is not read',
    ask: (thread) => ({ method: 'PUT', body: envelope('agent/run', runInput(thread)) }),
    answers: notHere({ status: 405 }),
  },
]

const OTHER_TRANSPORT: readonly Row[] = [
  ...['run', 'connect', 'suggest'].map((word): Row => {
    return {
      relied: `a ${word} by its path means nothing`,
      ask: (thread) => ({ path: `/agent/default/${word}`, body: runInput(thread) }),
      answers: notHere(UNREAD),
    }
  }),
  {
    relied: 'nor does one at the base path',
    ask: (thread) => ({ body: runInput(thread) }),
    answers: { all: UNREAD },
  },
  {
    relied: 'nor a stop with a body',
    ask: (thread) => ({ path: `/agent/default/stop/${thread}`, body: { runId: 'r1' } }),
    answers: notHere(UNREAD),
  },
  {
    relied: 'nor one without',
    ask: (thread) => ({ method: 'POST', path: `/agent/default/stop/${thread}` }),
    answers: notHere({ status: 415 }),
  },
  { relied: 'nor the list', ask: () => ({ path: '/threads' }), answers: notHere({ status: 405 }) },
  {
    relied: 'nor the clearing of all threads',
    ask: () => ({ method: 'POST', path: '/threads/clear' }),
    answers: notHere({ status: 415 }),
  },
  {
    relied: 'nor a change of a thread',
    ask: (thread) => ({ method: 'PATCH', path: `/threads/${thread}`, body: { agentId: 'default', name: 'info' } }),
    answers: notHere({ status: 405 }),
  },
  {
    relied: 'nor an archive',
    ask: (thread) => ({ path: `/threads/${thread}/archive`, body: { agentId: 'default' } }),
    answers: notHere(UNREAD),
  },
  {
    relied: 'nor an annotation',
    ask: (threadId) => ({ path: '/annotate', body: { threadId, type: 'info' } }),
    answers: notHere(UNREAD),
  },
  {
    relied: 'nor a memory',
    ask: () => ({ path: '/memories', body: { content: 'info', kind: 'info' } }),
    answers: notHere(UNREAD),
  },
  {
    relied: 'nor a recording',
    ask: () => ({ path: '/transcribe', body: { audio: '', mimeType: 'audio/webm' } }),
    answers: notHere(UNREAD),
  },
]

void test('the methods', (t) => {
  tell(t, 'single-route', METHODS)
  t.end()
})
void test('the form of an envelope', (t) => {
  tell(t, 'single-route', FORM)
  t.end()
})
void test('where an envelope is read', (t) => {
  tell(t, 'single-route', PLACES)
  t.end()
})
void test('what is written for the other transport means nothing', (t) => {
  tell(t, 'single-route', OTHER_TRANSPORT)
  t.end()
})
