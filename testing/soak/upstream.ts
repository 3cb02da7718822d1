/**
 * The upstream of a soak, in a process of its own that can be killed. Everything that it answers says for which thread and which
 * run it is, so that whoever asked can tell. It listens on the port of its command line, or on a free one, and tells its parent.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ready } from '../bench/processes.ts'
import { OWNED } from './people.ts'
import { readRunId } from './run-id.ts'

const INFO = JSON.stringify({
  version: '1.75.0',
  mode: 'sse',
  agents: { default: { name: 'default', description: 'Answers', className: 'BuiltInAgent' } },
  threadEndpoints: { list: true, inspect: true, mutations: false, realtimeMetadata: false },
})

const CREATED = '2026-01-01T00:00:00.000Z'

const LIST = JSON.stringify({
  threads: OWNED.map(({ threadId }) => ({
    ...{ id: threadId, name: null, agentId: 'default', organizationId: '', createdById: '', archived: false },
    ...{ createdAt: CREATED, updatedAt: CREATED },
  })),
  nextCursor: null,
})

/** Of a run with 4 MB: so many events, of so many characters each. */
const FILLING = 'z'.repeat(16_000)

function json(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

async function* eventsOf(threadId: string, runId: string): AsyncGenerator<string> {
  const { events, every, isFilled } = readRunId(runId)
  for (let n = 0; n < events; n += 1) {
    const type = n === 0 ? 'RUN_STARTED' : n === events - 1 ? 'RUN_FINISHED' : 'TEXT_MESSAGE_CONTENT'
    const event = { type, threadId, runId, n, ...(isFilled ? { delta: FILLING } : {}) }
    yield `data: ${JSON.stringify(event)}\n\n`
    if (every > 0 && n < events - 1) await sleep(every)
  }
}

async function stream(response: ServerResponse, threadId: string, runId: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  // Whoever has left ends it: that is no fault.
  await pipeline(Readable.from(eventsOf(threadId, runId)), response).catch(() => {})
}

const server = createServer((request, response) => {
  response.on('error', () => {})
  const pieces: Buffer[] = []
  request.on('data', (bytes: Buffer) => pieces.push(bytes))
  request.on('end', () => {
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    if (/\/(?:run|connect)$/.test(path)) {
      const { threadId, runId } = JSON.parse(Buffer.concat(pieces).toString()) as { threadId: string; runId: string }
      void stream(response, threadId, runId)
    } else if (path.endsWith('/info')) json(response, INFO)
    else if (path.endsWith('/threads')) json(response, LIST)
    else {
      const threadId = /\/(?:threads|stop)\/([^/]+)/.exec(path)?.[1] ?? ''
      json(response, JSON.stringify({ threadId, messages: [{ id: 'm1', role: 'user', content: 'y'.repeat(900) }] }))
    }
  })
})
server.listen({ port: Number(process.argv[2] ?? 0), host: '127.0.0.1', backlog: 1024 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Ready)
})
// Nobody is left whom it could serve.
process.once('disconnect', () => process.exit())
