/** Reads the upstream's own list of all threads for an operator, page by page. */
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { readThreadPage, type ThreadPage } from '../../core/wire/thread-page.ts'
import { collect } from './answer-body.ts'
import { jsonOf, upstreamRequest, type Upstream } from './upstream.ts'

interface ListParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly facts: RuntimeFacts
  /** With the credential of the operator, if the upstream requires one. */
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
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

async function askPage(
  { upstream, basePath, facts, headers, signal }: ListParts,
  descriptor: RouteDescriptor,
): Promise<ThreadPage> {
  const asked = { ...headers, accept: 'application/json', 'accept-encoding': 'identity' }
  const limited = AbortSignal.any([signal, AbortSignal.timeout(PAGE_TIMEOUT_MS)])
  const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor, headers: asked }), limited)
  if (answer.outcome === 'failed') throw new NoList(`the upstream gave no list (${answer.detail})`)
  const bytes = await collect(answer.body, MAX_PAGE_BYTES)
  if (answer.status !== 200) throw new NoList(`the upstream gave no list: it answered ${answer.status}`, answer.status)
  if (bytes === 'broke-off') throw new NoList('the upstream closed the connection in its list')
  if (bytes === 'too-large') throw new NoList("a page of the upstream's list is larger than 32MiB")
  const value = jsonOf(bytes)
  const page = value === undefined ? null : readThreadPage(value)
  if (page === null) throw new NoList('the answer of the upstream is not a list of threads')
  return page
}

function listOf(agentId: string | null, cursor: string | null): RouteDescriptor {
  const query = new Map([
    ['includeArchived', 'true'],
    ...(agentId === null ? [] : [['agentId', agentId] as const]),
    ...(cursor === null ? [] : [['cursor', cursor] as const]),
  ])
  return classify('GET', ['threads'], query) as RouteDescriptor
}
