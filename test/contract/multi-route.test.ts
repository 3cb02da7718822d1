/** The real runtime, with a path for each operation, behaves as the gateway believes, in either version. */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { envelope, tell, type Answer, type Row } from './runtimes.ts'

const NOT_FOUND: Answer = { status: 404 }
const WRONG_METHOD: Answer = { status: 405 }
const NEEDS_PLATFORM: Answer = { status: 422, body: { error: /^Missing CopilotKitIntelligence configuration\./ } }
const RUNS: Answer = { status: 200, body: /^data: \{"type":"RUN_STARTED"/, ran: true }
const EMPTY: Answer = { status: 200, body: '' }
const AGENTS = { default: { name: 'default', description: 'Says what it was told.', className: 'EchoAgent' } }

const run = (thread: string, path: string) => ({ path, body: runInput(thread) })

const OPERATIONS: readonly Row[] = [
  {
    relied: '/info has the version, the agents and the mode; that of 1.54 has no endpoints, which infoFor makes up for',
    ask: () => ({ path: '/info' }),
    answers: {
      '1.75': {
        status: 200,
        body: { version: '1.75.0', agents: AGENTS, mode: 'sse', threadEndpoints: { list: true }, singleRoute: undefined },
      },
      '1.54': {
        status: 200,
        body: { version: '1.54.1', agents: AGENTS, mode: 'sse', threadEndpoints: undefined, singleRoute: undefined },
      },
    },
  },
  {
    relied: 'a run is answered with its events',
    ask: (thread) => run(thread, '/agent/default/run'),
    answers: { all: RUNS },
  },
  {
    relied: 'a run is stored as its body says, whatever its content type',
    ask: (thread) => ({ ...run(thread, '/agent/default/run'), headers: { 'content-type': 'text/plain' } }),
    answers: { all: RUNS },
  },
  {
    relied: 'a connect to a thread that is unknown is an empty stream',
    ask: (thread) => run(thread, '/agent/default/connect'),
    answers: { all: EMPTY },
  },
  {
    relied: 'a run on no thread is refused',
    ask: () => ({ path: '/agent/default/run', body: runInput(undefined) }),
    answers: { all: { status: 400, body: { error: 'Invalid request body' } } },
  },
  {
    relied: 'a run of an agent that isn’t there is a 404',
    ask: (thread) => run(thread, '/agent/nobody/run'),
    answers: { all: { status: 404, body: { error: 'Agent not found' } } },
  },
  {
    relied: 'a run of __proto__ is an error: the runtime looks its agents up in an object',
    ask: (thread) => run(thread, '/agent/__proto__/run'),
    answers: { all: { status: 500 } },
  },
  {
    relied: 'suggest runs an agent and stores nothing; 1.54 has none',
    ask: (thread) => run(thread, '/agent/default/suggest'),
    answers: { '1.75': { status: 200, body: /RUN_STARTED/ }, '1.54': NOT_FOUND },
  },
  {
    relied: 'there is nothing to stop where nothing runs',
    ask: (thread) => ({ method: 'POST', path: `/agent/default/stop/${thread}` }),
    answers: { all: { status: 200, body: { stopped: false } } },
  },
  {
    relied: 'a stop may name the run; 1.54 reads no body',
    ask: (thread) => ({ path: `/agent/default/stop/${thread}`, body: { runId: 'r1' } }),
    answers: { all: { status: 200, body: { stopped: false } } },
  },
  {
    relied: 'a stop with another key is refused by 1.75',
    ask: (thread) => ({ path: `/agent/default/stop/${thread}`, body: { reason: 'x' } }),
    answers: { '1.75': { status: 400 }, '1.54': { status: 200 } },
  },
  {
    relied: 'transcribe is there, and says that it is not set up',
    ask: () => ({ path: '/transcribe', body: {} }),
    answers: { all: { status: 503, body: { error: 'service_not_configured' } } },
  },
]

const THREADS: readonly Row[] = [
  {
    relied: 'the list is there in 1.75, and needs the platform in 1.54',
    ask: () => ({ path: '/threads?agentId=default' }),
    answers: { '1.75': { status: 200, body: { threads: Array, nextCursor: null } }, '1.54': NEEDS_PLATFORM },
  },
  {
    relied: 'changes need the platform',
    ask: (thread) => ({ method: 'PATCH', path: `/threads/${thread}`, body: { agentId: 'default', name: 'x' } }),
    answers: { all: NEEDS_PLATFORM },
  },
  {
    relied: 'and say so before their body is read',
    ask: (thread) => ({ method: 'DELETE', path: `/threads/${thread}` }),
    answers: { all: NEEDS_PLATFORM },
  },
  {
    relied: 'so does an archive',
    ask: (thread) => ({ path: `/threads/${thread}/archive`, body: { agentId: 'default' } }),
    answers: { all: NEEDS_PLATFORM },
  },
  {
    relied: 'and a subscription',
    ask: () => ({ method: 'POST', path: '/threads/subscribe' }),
    answers: { all: NEEDS_PLATFORM },
  },
  {
    relied: 'a thread as such cannot be read',
    ask: (thread) => ({ path: `/threads/${thread}` }),
    answers: { '1.75': WRONG_METHOD, '1.54': NOT_FOUND },
  },
  ...Object.entries({ messages: [], events: [], state: null }).map(([word, nothing]): Row => {
    return {
      relied: `the ${word} of a thread that is unknown are empty; 1.54 has none`,
      ask: (thread) => ({ path: `/threads/${thread}/${word}` }),
      answers: { '1.75': { status: 200, body: JSON.stringify({ [word]: nothing }) }, '1.54': NOT_FOUND },
    }
  }),
  {
    relied: 'annotate is there in 1.75',
    ask: (threadId) => ({ path: '/annotate', body: { threadId } }),
    answers: { '1.75': { status: 422 }, '1.54': NOT_FOUND },
  },
  {
    relied: 'clear is there in 1.75: 1.54 forgets nothing',
    ask: () => ({ method: 'POST', path: '/threads/clear' }),
    answers: { '1.75': { status: 204 }, '1.54': NOT_FOUND },
  },
  {
    relied: 'there are no memories unless they are set up',
    ask: () => ({ path: '/memories' }),
    answers: { all: NOT_FOUND },
  },
  {
    relied: 'there is no feed of all threads unless it is set up',
    ask: () => ({ path: '/cpk-debug-events' }),
    answers: { all: NOT_FOUND },
  },
  {
    relied: 'the inspector has nothing to say',
    ask: () => ({ path: '/inspector-metadata' }),
    answers: { '1.75': { status: 204 }, '1.54': NOT_FOUND },
  },
]

const OTHER_TRANSPORT: readonly Row[] = [
  {
    relied: 'the question for /info as an envelope is a 404, so that the gateway can tell the transports apart',
    ask: () => ({ body: { method: 'info' } }),
    answers: { '1.75': { status: 404, body: { code: 'single_route_envelope_against_multi_route_runtime' } }, '1.54': NOT_FOUND },
  },
  {
    relied: 'an envelope at the base path runs nothing',
    ask: (thread) => ({ body: envelope('agent/run', runInput(thread)) }),
    answers: { all: NOT_FOUND },
  },
  {
    relied: 'nor does one with a slash after it',
    ask: (thread) => ({ path: '/', body: envelope('agent/run', runInput(thread)) }),
    answers: { all: NOT_FOUND },
  },
  {
    relied: 'nor does the tunnel',
    ask: () => ({ body: envelope('resource/request', {}, { path: '/threads', httpMethod: 'GET' }) }),
    answers: { all: NOT_FOUND },
  },
]

const SPELLINGS: readonly Row[] = [
  {
    relied: 'a method that a path has not: 405 in 1.75, 404 in 1.54',
    ask: (thread) => ({ ...run(thread, '/agent/default/run'), method: 'PUT' }),
    answers: { '1.75': WRONG_METHOD, '1.54': NOT_FOUND },
  },
  {
    relied: 'HEAD is GET in 1.54',
    ask: () => ({ method: 'HEAD', path: '/info' }),
    answers: { '1.75': WRONG_METHOD, '1.54': { status: 200 } },
  },
  {
    relied: 'case does not matter to 1.54 in Express',
    ask: (thread) => run(thread, '/AGENT/default/RUN'),
    answers: { all: NOT_FOUND, '1.54 express': RUNS },
  },
  {
    relied: 'not even with a slash after it',
    ask: (thread) => run(thread, '/Agent/default/Run/'),
    answers: { all: NOT_FOUND, '1.54 express': RUNS },
  },
  {
    relied: 'but it matters in the name of an agent',
    ask: (thread) => run(thread, '/agent/DEFAULT/run'),
    answers: { all: { status: 404, body: { message: /'DEFAULT'/ } } },
  },
  {
    relied: 'a slash at the end is no matter, but to Hono',
    ask: (thread) => run(thread, '/agent/default/run/'),
    answers: { all: RUNS, '1.54 hono': NOT_FOUND },
  },
  {
    relied: 'two slashes are one to 1.75',
    ask: (thread) => run(thread, '/agent//default/run'),
    answers: { '1.75': RUNS, '1.54': NOT_FOUND },
  },
  {
    relied: 'a path is read from its end by 1.75',
    ask: (thread) => run(thread, '/junk/agent/default/run'),
    answers: { '1.75': RUNS, '1.54': NOT_FOUND },
  },
  {
    relied: 'an id is decoded: %2F becomes a part of it',
    ask: (thread) => run(thread, '/agent/a%2Fb/run'),
    answers: { all: { status: 404, body: { message: "Agent 'a/b' does not exist" } } },
  },
  {
    relied: 'so one agent has many spellings',
    ask: (thread) => run(thread, '/agent/%64efault/run'),
    answers: { all: RUNS },
  },
  {
    relied: 'the words of a route are decoded by Hono alone',
    ask: (thread) => run(thread, '/agent/default/%72un'),
    answers: { all: NOT_FOUND, '1.54 hono': RUNS },
  },
]

void test('the operations', (t) => {
  tell(t, 'multi-route', OPERATIONS)
  t.end()
})
void test('the threads', (t) => {
  tell(t, 'multi-route', THREADS)
  t.end()
})
void test('what is written for the other transport means nothing', (t) => {
  tell(t, 'multi-route', OTHER_TRANSPORT)
  t.end()
})
void test('the spellings of a path, of which the gateway sends one', (t) => {
  tell(t, 'multi-route', SPELLINGS)
  t.end()
})
