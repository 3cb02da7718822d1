/**
 * The upstream of all rows, in a process of its own: it answers at once, with fixed bytes, so that what stands before it is what
 * is measured. It listens on a free port, and tells its parent.
 */
import { createServer, type AddressInfo } from 'node:net'
import type { Ready } from '../processes.ts'
import { makeReader } from './framing.ts'
import { ALICE, LISTED, THREAD } from './people.ts'
import { CREATED, listBody, MANY_AGENT, MANY_BODY } from './thread-lists.ts'

/** Tells the gateway that this is a runtime, with both routes and lists. */
const INFO = jsonAnswer({
  version: '1.75.0',
  mode: 'sse',
  agents: { default: { name: 'default', description: 'Answers at once', className: 'BuiltInAgent' } },
  threadEndpoints: { list: true, inspect: true, mutations: false, realtimeMetadata: false },
})

/** 1 KB. */
const MESSAGES = jsonAnswer({
  messages: Array.from({ length: 6 }, (_, at) => ({ id: `m${at}`, role: 'user', content: 'y'.repeat(120) })),
})

/** 1 KB. */
const STATE = jsonAnswer({
  values: { messages: Array.from({ length: 6 }, (_, at) => ({ id: `m${at}`, type: 'human', content: 'y'.repeat(100) })) },
  next: [],
  tasks: [],
  metadata: {},
  checkpoint: { thread_id: THREAD.threadId, checkpoint_id: '1ef4f797-8335-6428-8001-8a1503f9b875', checkpoint_ns: '' },
})

/** Ten of Alice's, as a LangGraph server writes them. */
const FOUND = jsonAnswer(
  LISTED.filter(({ subject }) => subject === ALICE)
    .slice(0, 10)
    .map(({ threadId }) => ({ thread_id: threadId, created_at: CREATED, updated_at: CREATED, metadata: {}, status: 'idle' })),
)

const LIST = answer(Buffer.from(listBody(LISTED, 'default', () => null)))

/** What the part `lists` asks for. */
const MANY_LIST = answer(MANY_BODY)

/** 20 events, 1.5 KB. They come at once, and in one chunk: the part `streams` has them one by one. */
const EVENTS = eventsAnswer(
  Array.from(
    { length: 20 },
    (_, at) => `data: ${JSON.stringify({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: `token ${at}` })}\n\n`,
  ).join(''),
)

/** Takes what a gateway exports of its traces. */
const TRACES = answer(Buffer.alloc(0))

const MISSING = Buffer.from('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')

function jsonAnswer(value: object): Buffer {
  return answer(Buffer.from(JSON.stringify(value)))
}

function answer(body: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`),
    body,
  ])
}

function eventsAnswer(body: string): Buffer {
  const head =
    'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n'
  return Buffer.from(`${head}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
}

function answerTo(head: string): Buffer {
  const [, path = '', query = ''] = /^\S+ ([^ ?]+)(\S*)/.exec(head) ?? []
  if (path.endsWith('/messages')) return MESSAGES
  if (path.endsWith('/state')) return STATE
  if (path.endsWith('/runs/stream')) return EVENTS
  if (path.endsWith('/threads/search')) return FOUND
  if (path.endsWith('/run')) return EVENTS
  if (path.endsWith('/v1/traces')) return TRACES
  if (path.endsWith('/threads')) return query.includes(`agentId=${MANY_AGENT}`) ? MANY_LIST : LIST
  return path.endsWith('/info') ? INFO : MISSING
}

const server = createServer({ noDelay: true }, (socket) => {
  let next: Buffer = MISSING
  const read = makeReader({ head: (text) => (next = answerTo(text)), end: () => socket.write(next) })
  socket.on('data', read)
  socket.on('error', () => {})
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Ready)
})
// Nobody is left whom it could serve.
process.once('disconnect', () => process.exit())
