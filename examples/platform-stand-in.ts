/**
 * A stand-in for the API of the managed platform ("CopilotKit Intelligence"), which is closed source. It answers the requests
 * that the real runtime 1.75 sends to the platform, as the runtime's own client expects. What this client does not define is
 * guessed: error texts, the form of tokens, and the answer if there is nothing to connect to. Memories, learning and files
 * are missing, except for the subscription.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen, readBody, remember, sendJson, stop } from './http.ts'
import { serveSockets } from './platform-realtime.ts'
import { messagesOf, PlatformRefusal, PlatformThreads, stateOf } from './platform-threads.ts'

/** A request as it came from the runtime; for tests. */
export interface PlatformRequest {
  readonly method: string
  readonly path: string
  /** The user whom the runtime named, in whatever place; undefined where it named none. */
  readonly userId: string | undefined
  readonly body: Body
}

export interface PlatformStandIn {
  readonly apiUrl: string
  readonly wsUrl: string
  readonly apiKey: string
  readonly threads: PlatformThreads
  /** The last requests, oldest first. */
  readonly requests: PlatformRequest[]
  close(): Promise<void>
}

type Body = Readonly<Record<string, unknown>>

interface Question {
  readonly id: string
  /** Empty where the runtime named none: no thread is of that user. */
  readonly userId: string
  readonly body: Body
  readonly query: URLSearchParams
  readonly pageSize: number
}

/** What is answered, as JSON; undefined for an empty 204. */
type Handler = (threads: PlatformThreads, question: Question) => unknown

const MAX_BODY = 64 * 1024 * 1024

export interface PlatformStandInOptions {
  /** What the runtime has to show; those of the platform begin with `cpk_`. */
  readonly apiKey?: string
  /** The page size of a list without a limit. */
  readonly pageSize?: number
  /** Told of each request that has the key; its answer waits for this. */
  readonly onRequest?: (request: PlatformRequest) => void | Promise<void>
}

const ENTITLED = { active: true, source: 'managedOrgSubscription', features: {}, limits: {} }

/** By method and path; `:id` is a thread's. */
const HANDLERS: readonly (readonly [route: string, handler: Handler])[] = [
  ['GET /api/entitlements/runtime', () => ({ status: 'ready', entitlement: ENTITLED })],
  ['GET /api/inspector/metadata', () => undefined],
  ['GET /api/threads', list],
  ['POST /api/threads/subscribe', (threads, { userId }) => ({ joinToken: threads.joinToken(ownTopic(threads, userId)) })],
  ['POST /api/memories/subscribe', subscribeToMemories],
  ['POST /api/threads', create],
  ['GET /api/threads/:id', (threads, { id, userId }) => ({ thread: threads.find(id, userId) })],
  ['PATCH /api/threads/:id', change],
  ['DELETE /api/threads/:id', remove],
  ['GET /api/threads/:id/messages', messages],
  ['POST /api/threads/:id/connect', connect],
  ['POST /api/threads/:id/lock', lock],
  ['PATCH /api/threads/:id/lock', () => ({})],
  ['DELETE /api/threads/:id/lock', (threads, { id, body }) => threads.unlock(id, String(body['runId']))],
  // The runtime requests these two without a user: the id is enough.
  ['GET /api/_inspect/threads/:id/events', (threads, { id }) => ({ events: threads.events(id) })],
  ['GET /api/_inspect/threads/:id/state', (threads, { id }) => ({ kind: 'snapshot', state: stateOf(threads.events(id)) })],
  ['PUT /connector/annotate/:id', (_threads, { id }) => ({ id, duplicate: false })],
]

/** Starts it. */
export async function startPlatformStandIn({
  apiKey = 'cpk_stand-in',
  pageSize = 50,
  onRequest = () => {},
}: PlatformStandInOptions = {}): Promise<PlatformStandIn> {
  const threads = new PlatformThreads()
  const requests: PlatformRequest[] = []
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const status = error instanceof PlatformRefusal ? error.status : 500
      sendJson(response, status, { error: (error as Error).message })
    })
  })

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await readBody(request, MAX_BODY)
    if (request.headers.authorization !== `Bearer ${apiKey}`) throw new PlatformRefusal(401, 'that is not the key')
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://platform')
    const method = request.method ?? ''
    const body = (text === '' ? {} : JSON.parse(text)) as Body
    const named: unknown = body['userId'] ?? query.get('userId') ?? request.headers['x-cpki-user-id']
    const userId = typeof named === 'string' ? named : undefined
    const asked = { method, path: pathname, userId, body }
    remember(requests, asked)
    await onRequest(asked)
    const found = find(`${method} ${pathname}`)
    if (found === undefined) throw new PlatformRefusal(404, 'no such route')
    const value = found.handler(threads, { id: found.id, userId: userId ?? '', body, query, pageSize })
    if (value === undefined) response.writeHead(204).end()
    else sendJson(response, 200, value)
  }

  serveSockets(server, threads, apiKey)
  const { origin } = await listen(server, 0, '127.0.0.1')
  const close = () => stop(server)
  return { apiUrl: origin, wsUrl: origin.replace('http', 'ws'), apiKey, threads, requests, close }
}

/** The first handler whose route this is, with the id in it. */
function find(target: string): { readonly handler: Handler; readonly id: string } | undefined {
  for (const [route, handler] of HANDLERS) {
    const match = new RegExp(`^${route.replace(':id', '([^/]+)')}$`).exec(target)
    if (match !== null) return { handler, id: decodeURIComponent(match[1] ?? '') }
  }
  return undefined
}

function list(threads: PlatformThreads, { userId, query, pageSize }: Question): unknown {
  const from = Number(/^page-(\d+)$/.exec(query.get('cursor') ?? 'page-0')?.[1])
  if (!Number.isInteger(from)) throw new PlatformRefusal(400, 'no such cursor')
  const limit = Number(query.get('limit') ?? pageSize)
  const archived = query.get('includeArchived') === 'true'
  const page = threads.page(userId, query.get('agentId') ?? '', { archived, limit, from })
  const joinToken = threads.joinToken(ownTopic(threads, userId))
  const nextCursor = page.next === null ? null : `page-${page.next}`
  return { threads: page.threads, joinCode: threads.joinCode(userId), joinToken, nextCursor }
}

/** The channel that tells a user of changes in the list. */
function ownTopic(threads: PlatformThreads, userId: string): string {
  return `user_meta:${threads.joinCode(userId)}`
}

function subscribeToMemories(threads: PlatformThreads, { userId }: Question): unknown {
  const joinCode = threads.joinCode(userId)
  return { joinToken: threads.joinToken(`user_meta:memories:${joinCode}`), joinCode }
}

function create(threads: PlatformThreads, { userId, body }: Question): unknown {
  return { thread: threads.create(String(body['threadId']), userId, String(body['agentId'])) }
}

function change(threads: PlatformThreads, { id, userId, body }: Question): unknown {
  const thread = threads.find(id, userId)
  if (typeof body['name'] === 'string') thread.name = body['name']
  if (typeof body['archived'] === 'boolean') thread.archived = body['archived']
  return { thread }
}

function remove(threads: PlatformThreads, { id, userId }: Question): undefined {
  threads.find(id, userId)
  threads.remove(id)
}

function messages(threads: PlatformThreads, { id, userId }: Question): unknown {
  threads.find(id, userId)
  return { messages: messagesOf(threads.events(id)) }
}

function connect(threads: PlatformThreads, { id, userId }: Question): unknown {
  try {
    threads.find(id, userId)
  } catch {
    return undefined
  }
  return { threadId: id, joinToken: threads.joinToken(`thread:${id}`) }
}

function lock(threads: PlatformThreads, { id, userId, body }: Question): unknown {
  const runId = String(body['runId'])
  threads.lock(id, userId, runId)
  return { threadId: id, runId, joinToken: threads.joinToken(`thread:${id}`) }
}
