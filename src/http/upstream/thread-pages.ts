/** Reads the upstream's own list of all threads for an operator, page by page. */
import { isObject, type Json } from '../../core/json/read.ts'
import { ROUTES_OF } from '../../core/route/all-routes.ts'
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { readThreadPage, type PageThread, type ThreadPage } from '../../core/wire/thread-page.ts'
import { collect } from './answer-body.ts'
import { jsonOf, upstreamRequest, type Upstream } from './upstream.ts'

interface ListParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly facts: RuntimeFacts
  /** With the credential of the operator, if the upstream requires one. */
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** The members of each thread that a LangGraph server gives; by default its id alone. */
  readonly select?: readonly string[]
}

/** No list, or not all of it. The message is for an operator. */
export class NoList extends Error {
  override readonly name = 'NoList'
  /** The status of the upstream's answer, if that is the reason. A managed runtime answers 400 if the request names no agent. */
  readonly status: number | null

  constructor(message: string, status: number | null = null) {
    super(message)
    this.status = status
  }
}

const MAX_PAGE_BYTES = 32 * 1024 * 1024
const PAGE_TIMEOUT_MS = 60_000

/**
 * @param agentId null for the threads of all agents
 * @throws NoList
 */
export async function* threadPages(parts: ListParts, agentId: string | null): AsyncGenerator<ThreadPage['threads']> {
  if (parts.facts.transport === 'langgraph') {
    yield* searchPages(parts)
    return
  }
  if (!hasOperation(parts.facts, listOf(agentId, null).route)) {
    throw new NoList('the upstream is a single-route runtime without a list of threads')
  }
  const seen = new Set<string>()
  let cursor: string | null = null
  do {
    const page = await askPage(parts, listOf(agentId, cursor))
    yield page.threads
    cursor = page.next
    if (cursor !== null && seen.has(cursor)) {
      throw new NoList('the list of the upstream does not end: a page names itself as the next')
    }
    if (cursor !== null) seen.add(cursor)
  } while (cursor !== null)
}

async function askPage(parts: ListParts, descriptor: RouteDescriptor): Promise<ThreadPage> {
  const value = await askList(parts, { descriptor, headers: parts.headers })
  const page = value === undefined ? null : readThreadPage(value)
  if (page === null) throw new NoList(NO_LIST)
  return page
}

const NO_LIST = 'the answer of the upstream is not a list of threads'

/** @returns undefined for an answer that is not JSON */
async function askList(
  { upstream, basePath, facts, signal }: ListParts,
  { headers, ...asked }: Parameters<typeof upstreamRequest>[2],
): Promise<Json | undefined> {
  const whole = { ...asked, headers: { ...headers, accept: 'application/json', 'accept-encoding': 'identity' } }
  const limited = AbortSignal.any([signal, AbortSignal.timeout(PAGE_TIMEOUT_MS)])
  const answer = await upstream.send(upstreamRequest(facts, basePath, whole), limited)
  if (answer.outcome === 'failed') throw new NoList(`the upstream gave no list (${answer.detail})`)
  const bytes = await collect(answer.body, MAX_PAGE_BYTES)
  if (answer.status !== 200) throw new NoList(`the upstream gave no list: it answered ${answer.status}`, answer.status)
  if (bytes === 'broke-off') throw new NoList('the upstream closed the connection in its list')
  if (bytes === 'too-large') throw new NoList("a page of the upstream's list is larger than 32MiB")
  return jsonOf(bytes)
}

export const SEARCH = classify('POST', ['threads', 'search'], new Map(), ROUTES_OF.langgraph) as RouteDescriptor

/** The most that a LangGraph server gives in one answer. */
export const LONGEST_SEARCH = 1000

/**
 * A LangGraph server has offsets and no cursors, and threads may begin and end between two pages. Each page begins with the last
 * thread of the page before, so that no thread is left out without notice.
 */
async function* searchPages(parts: ListParts): AsyncGenerator<ThreadPage['threads']> {
  let offset = 0
  let last: string | null = null
  for (;;) {
    const page = await askSearch(parts, offset)
    const known = last === null ? -1 : page.findIndex(({ id }) => id === last)
    if (last !== null && known === -1) throw new NoList('threads were deleted while the upstream gave its list: try again')
    const more = page.slice(known + 1)
    if (more.length === 0) return
    yield more
    last = more.at(-1)?.id ?? last
    offset += page.length - 1
  }
}

async function askSearch(parts: ListParts, offset: number): Promise<readonly PageThread[]> {
  const { headers, select = [] } = parts
  // A thread that begins meanwhile comes last.
  const sorted = { sort_by: 'created_at', sort_order: 'asc' }
  const query = { limit: LONGEST_SEARCH, offset, ...sorted, select: [...new Set(['thread_id', ...select])] }
  const value = await askList(parts, {
    descriptor: SEARCH,
    headers: { ...headers, 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(query)),
  })
  if (!Array.isArray(value)) throw new NoList(NO_LIST)
  return (value as readonly Json[]).map((item, at) => {
    const id = isObject(item) ? item['thread_id'] : undefined
    if (!isObject(item) || typeof id !== 'string') throw new NoList(NO_LIST)
    return { id, at, item }
  })
}

function listOf(agentId: string | null, cursor: string | null): RouteDescriptor {
  const query = new Map([
    ['includeArchived', 'true'],
    ...(agentId === null ? [] : [['agentId', agentId] as const]),
    ...(cursor === null ? [] : [['cursor', cursor] as const]),
  ])
  return classify('GET', ['threads'], query) as RouteDescriptor
}
