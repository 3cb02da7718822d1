/** What is asked of every row, as the bytes that go over the wire. */
import { randomFrom } from '../ownership/population.ts'
import { ALICE, CROWDED, GROUPS, THREAD } from './people.ts'
import type { MakeToken } from './tokens.ts'

/** A load. */
export interface Load {
  /** As the page says it. */
  readonly title: string
  /** Its requests, in turn and then from the beginning again. */
  make(token: MakeToken): readonly Buffer[]
}

/** What all paths begin with. */
export const BASE = '/api/copilotkit'

/** What the paths of a LangGraph server begin with. */
export const GRAPHS = '/graphs'

/** Of the history that a run sends, in characters. */
const MESSAGE = 1800

/** Requests of `mix` before they come again: more than the gateway remembers tokens. */
const MIXED = 4096

/** All of them, by the names that the command line has for them. */
export const LOADS = {
  get: { title: 'GET of messages, 1 KB', make: (token) => [getMessages(THREAD.threadId, token(ALICE))] },
  run: { title: 'run, 16 KB', make: (token) => [run(THREAD.threadId, token(ALICE), 16_000)] },
  'run-1mb': { title: 'run, 1 MB', make: (token) => [run(THREAD.threadId, token(ALICE), 1_000_000)] },
  list: { title: 'list of 1,000 threads', make: (token) => [get('/threads?agentId=default', token(ALICE))] },
  'list-groups': {
    title: 'list of 1,000 threads, by a user in 1,000 groups',
    make: (token) => [get('/threads?agentId=default', token(ALICE, GROUPS))],
  },
  'langgraph-state': { title: 'LangGraph: GET of a state, 1 KB', make: (token) => [getState(token(ALICE))] },
  'langgraph-run': { title: 'LangGraph: run, 16 KB', make: (token) => [graphRun(token(ALICE), 16_000)] },
  'langgraph-search': { title: 'LangGraph: search, 10 of 500 threads', make: (token) => [search(token(ALICE))] },
  mix: { title: '500 users, 5,000 threads, 80 % GET and 20 % run', make: mix },
} as const satisfies Record<string, Load>

export type LoadName = keyof typeof LOADS

/** Their names. */
export const LOAD_NAMES = Object.keys(LOADS) as readonly LoadName[]

const isLangGraph = (name: LoadName): boolean => name.startsWith('langgraph-')

/** Those of each part. */
export const LOADS_OF = {
  requests: LOAD_NAMES.filter((name) => !isLangGraph(name)),
  langgraph: LOAD_NAMES.filter(isLangGraph),
} as const

/**
 * A run.
 * @param bytes about so large is its body
 */
export function run(threadId: string, token: string, bytes: number): Buffer {
  const messages = historyOf(bytes).map((message, at) => ({ ...message, role: at % 2 === 0 ? 'user' : 'assistant' }))
  const input = { threadId, runId: 'r-1', state: {}, messages, tools: [], context: [], forwardedProps: {} }
  return post(`${BASE}/agent/default/run`, token, input)
}

function historyOf(bytes: number): readonly { readonly id: string; readonly content: string }[] {
  const length = Math.max(1, Math.round(bytes / (MESSAGE + 45)))
  return Array.from({ length }, (_, at) => ({ id: `m${at}`, content: 'x'.repeat(MESSAGE) }))
}

function getState(token: string): Buffer {
  return Buffer.from(head('GET', `${GRAPHS}/threads/${THREAD.threadId}/state`, token, ''))
}

/** As the client of the LangGraph SDK sends it. */
function graphRun(token: string, bytes: number): Buffer {
  const messages = historyOf(bytes).map((message, at) => ({ ...message, type: at % 2 === 0 ? 'human' : 'ai' }))
  const run = { input: { messages }, stream_mode: ['values', 'messages'], assistant_id: 'default', on_disconnect: 'cancel' }
  return post(`${GRAPHS}/threads/${THREAD.threadId}/runs/stream`, token, run)
}

function search(token: string): Buffer {
  return post(`${GRAPHS}/threads/search`, token, { limit: 10, offset: 0 })
}

function post(path: string, token: string, value: object): Buffer {
  const body = JSON.stringify(value)
  const more = `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  return Buffer.from(`${head('POST', path, token, more)}${body}`)
}

/** A GET. @param path what follows {@link BASE} */
export function get(path: string, token: string): Buffer {
  return Buffer.from(head('GET', `${BASE}${path}`, token, ''))
}

function getMessages(threadId: string, token: string): Buffer {
  return get(`/threads/${threadId}/messages`, token)
}

function head(method: string, path: string, token: string, more: string): string {
  return `${method} ${path} HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer ${token}\r\n${more}\r\n`
}

function mix(token: MakeToken): readonly Buffer[] {
  const random = randomFrom(1)
  const tokens = new Map(CROWDED.map(({ subject }) => [subject, '']))
  for (const subject of tokens.keys()) tokens.set(subject, token(subject))
  return Array.from({ length: MIXED }, () => {
    const { threadId, subject } = CROWDED[Math.floor(random() * CROWDED.length)]!
    const own = tokens.get(subject) ?? ''
    return random() < 0.8 ? getMessages(threadId, own) : run(threadId, own, 16_000)
  })
}
