/**
 * An upstream that records what reaches it and answers as the test says. What the gateway asks on its own account (the
 * probe's /info, the look for old threads; neither has a request id) is kept apart and answered as a runtime does. A
 * single-route upstream takes envelopes alone and records what they stand for (unwrapped.ts).
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Transport } from '../../src/core/route/transport.ts'
import { MULTI_ROUTE, type Pair } from './pair.ts'
import { until } from './until.ts'
import { unwrapped, type WireRequest } from './unwrapped.ts'

/** A request as it arrived. */
export interface Recorded {
  readonly method: string
  readonly target: string
  /** Names and values in turn, as they stood on the wire. */
  readonly rawHeaders: readonly string[]
  /** The values of each name, in lower case. */
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly body: Buffer
  /** The body as JSON, undefined if it is none. */
  readonly json: unknown
  /** Becomes true when the gateway has closed this request's connection before the answer's end. */
  readonly left: () => boolean
}

/** Answers a request. */
export type Answering = (request: Recorded, response: ServerResponse) => void | Promise<void>

/** The upstream. */
export interface Upstream {
  readonly url: string
  readonly transport: Transport
  /** The requests of callers, oldest first. */
  readonly requests: readonly Recorded[]
  /** What the gateway asked on its own account. */
  readonly questions: readonly Recorded[]
  /** How many connections were opened. */
  readonly connections: () => number
  /** How many requests of callers began to come: with a head, and perhaps some of a body. */
  readonly beginnings: () => number
  /** From now on. */
  answer(answering: Answering): void
  /** From now on, to the gateway's own questions. */
  answerQuestions(answering: Answering): void
  /** Waits for so many requests of callers. */
  arrived(count: number): Promise<void>
  /** @throws Error if something came to a single-route upstream that is no envelope of the gateway's */
  close(): Promise<void>
}

/** What a multi-route runtime says of itself. */
export const INFO = { version: '1.75.0', agents: { default: { name: 'default' } }, mode: 'sse' }

const ENDPOINTS = { list: true, inspect: true, mutations: true, realtimeMetadata: false }

/** What a single-route runtime says of itself. */
const SINGLE_ROUTE_INFO = { ...INFO, singleRoute: { resourceOperations: true, threadEndpoints: ENDPOINTS } }

/** Answers with JSON. */
export function json(value: unknown, status = 200, headers: Record<string, string | string[]> = {}): Answering {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
  }
}

/** Answers with a stream of these server-sent events, as a run does. */
export function events(...data: unknown[]): Answering {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const one of data) response.write(`data: ${JSON.stringify(one)}\n\n`)
    response.end()
  }
}

export interface UpstreamOptions {
  /** `MULTI_ROUTE` by default. */
  readonly pair?: Pair | undefined
  /** A free one by default. */
  readonly port?: number
  readonly host?: string
  /** Where a single-route upstream takes envelopes. */
  readonly basePath?: string | undefined
}

export async function startUpstream(first: Answering = json({}), options: UpstreamOptions = {}): Promise<Upstream> {
  const { pair = MULTI_ROUTE, port = 0, host = '127.0.0.1', basePath } = options
  const transport = pair.upstream
  const faults: string[] = []
  const requests: Recorded[] = []
  const questions: Recorded[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  let beginnings = 0
  let answering = first
  let answeringQuestions: Answering = (request, response) =>
    json(!request.target.endsWith('/info') ? { threads: [] } : transport === 'multi-route' ? INFO : SINGLE_ROUTE_INFO)(
      request,
      response,
    )
  const server = createServer((message, response) => {
    if (message.headers['x-request-id'] !== undefined) beginnings += 1
    void record(message, response).then((wire) => {
      const request = transport === 'multi-route' || !message.complete ? wire : unwrap(wire)
      if (request === null) return json({ error: 'not here' }, 405, { allow: 'POST' })(wire, response)
      const own = isQuestion(request)
      ;(own ? questions : requests).push(request)
      return (own ? answeringQuestions : answering)(request, response)
    })
  })
  /** Null for what is none; a question in the way of the other transport may come, and is no fault. */
  const unwrap = (wire: Recorded): Recorded | null => {
    try {
      return recordOf(unwrapped(wire, basePath), wire.left)
    } catch (error) {
      if (isQuestion(wire)) questions.push(wire)
      else faults.push(error instanceof Error ? error.message : String(error))
      return null
    }
  }
  // The gateway decides when an idle connection ends: a process of tests that was busy for seconds would close one into which it has
  // just written.
  server.keepAliveTimeout = 0
  server.on('connection', (socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    transport,
    requests,
    questions,
    connections: () => connections,
    beginnings: () => beginnings,
    answer: (next) => void (answering = next),
    answerQuestions: (next) => void (answeringQuestions = next),
    arrived: (count) => until(() => requests.length >= count),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      if (faults.length > 0) throw new Error(`the single-route upstream got ${faults.join('; ')}`)
    },
  }
}

/** True for what the gateway asks without a caller: /info or /threads, in whatever way, with no request id. */
function isQuestion({ method, target, headers, json: body }: Recorded): boolean {
  if (headers.has('x-request-id')) return false
  if (method === 'POST') {
    if (target.endsWith('/threads/search')) return true
    return ['info', 'resource/request'].includes((body as { method?: string } | undefined)?.method ?? '')
  }
  return (
    method === 'GET' && /\/(?:info|threads(?:\/[0-9a-f-]+(?:\/(?:messages|events))?)?)(?:\?includeArchived=true)?$/.test(target)
  )
}

async function record(message: IncomingMessage, response: ServerResponse): Promise<Recorded> {
  let left = false
  response.on('close', () => (left = !response.writableFinished))
  const chunks: Buffer[] = []
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  } catch {
    // The gateway broke off: what came is what is recorded.
  }
  const { method = '', url: target = '', rawHeaders } = message
  return recordOf({ method, target, rawHeaders, body: Buffer.concat(chunks) }, () => left)
}

function recordOf(request: WireRequest, left: () => boolean): Recorded {
  const { rawHeaders, body } = request
  const headers = new Map<string, string[]>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), rawHeaders[at + 1]!])
  }
  return { ...request, headers, json: parsed(body), left }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
