/** Reads all pages of the upstream's own list of threads, for an import from a runtime that keeps one. */
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { readThreadPage, type ThreadPage } from '../../core/wire/thread-page.ts'
import { hasOperation, type RuntimeFacts, type Transport } from '../../core/route/transport.ts'
import { askRuntime } from '../../http/upstream/transport-probe.ts'
import { upstreamRequest, jsonOf, type Upstream } from '../../http/upstream/upstream.ts'
import { collect } from '../../http/upstream/answer-body.ts'
import { SourceFault } from './source-line.ts'

export interface ListedItem {
  readonly id: string
  readonly item: JsonObject
}

export interface UpstreamListParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly headers: Readonly<Record<string, string>>
  /** The transport that the configuration names, or null. */
  readonly named: Transport | null
  /** The agents whose threads are listed; empty for all agents in one list. A managed runtime has no list without an agent. */
  readonly agentIds: readonly string[]
  readonly signal: AbortSignal
}

const MAX_PAGE_BYTES = 32 * 1024 * 1024
const PAGE_TIMEOUT_MS = 60_000

/** @throws SourceFault if the upstream gives no list, or not all of it */
export async function* upstreamList(parts: UpstreamListParts): AsyncGenerator<ListedItem> {
  const facts = await askFacts(parts)
  for (const agentId of parts.agentIds.length === 0 ? [null] : parts.agentIds) {
    const seen = new Set<string>()
    let cursor: string | null = null
    do {
      const page: ThreadPage = await askPage(parts, facts, agentId, cursor)
      yield* page.threads
      cursor = page.next
      if (cursor !== null && seen.has(cursor))
        throw new SourceFault('the pages of the upstream do not end: one names itself as the next')
      if (cursor !== null) seen.add(cursor)
    } while (cursor !== null)
  }
}

async function askFacts(parts: UpstreamListParts): Promise<RuntimeFacts> {
  const verdict = await askRuntime(parts, parts.named, limited(parts.signal))
  if (verdict.kind !== 'runtime') throw new SourceFault(`the upstream does not answer as a runtime: ${verdict.why}`)
  if (!hasOperation(verdict.facts, listOf(null, null).route))
    throw new SourceFault('the upstream is a single-route runtime without a list of threads: import a file')
  return verdict.facts
}

async function askPage(
  { upstream, basePath, headers, signal }: UpstreamListParts,
  facts: RuntimeFacts,
  agentId: string | null,
  cursor: string | null,
): Promise<ThreadPage> {
  const asked = { ...headers, accept: 'application/json', 'accept-encoding': 'identity' }
  const request = upstreamRequest(facts, basePath, { descriptor: listOf(agentId, cursor), headers: asked })
  const answer = await upstream.send(request, limited(signal))
  if (answer.outcome === 'failed') throw new SourceFault(`the upstream gave no list (${answer.detail})`)
  const bytes = await collect(answer.body, MAX_PAGE_BYTES)
  if (answer.status !== 200)
    throw new SourceFault(`the upstream gave no list: it answered ${answer.status}${hintFor(answer.status)}`)
  if (bytes === 'broke-off') throw new SourceFault('the upstream broke off in its list')
  if (bytes === 'too-large') throw new SourceFault(`a page of the upstream's list is larger than ${MAX_PAGE_BYTES} bytes`)
  const value = jsonOf(bytes)
  const page = value === undefined ? null : readThreadPage(value)
  if (page === null) throw new SourceFault('what the upstream answered is no list of threads')
  return page
}

function hintFor(status: number): string {
  switch (status) {
    case 400:
      return ': name an agent with --agent, a managed runtime wants one'
    case 401:
    case 403:
      return ': pass a credential with --token-file, or in upstream.headers'
    case 404:
    case 422:
      return ': its runner keeps none, import a file'
    default:
      return ''
  }
}

function listOf(agentId: string | null, cursor: string | null): RouteDescriptor {
  const query = new Map([
    ['includeArchived', 'true'],
    ...(agentId === null ? [] : [['agentId', agentId] as const]),
    ...(cursor === null ? [] : [['cursor', cursor] as const]),
  ])
  return classify('GET', ['threads'], query) as RouteDescriptor
}

function limited(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(PAGE_TIMEOUT_MS)])
}
