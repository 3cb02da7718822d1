/** Reads the upstream's list of threads page by page, up to a limit, to compare it with the ownership table. */
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { readThreadPage, type ThreadPage } from '../../core/wire/thread-page.ts'
import { collect } from '../../http/upstream/answer-body.ts'
import { jsonOf, upstreamRequest } from '../../http/upstream/upstream.ts'
import type { Subject } from './subject.ts'

const MAX_PAGE_BYTES = 32 * 1024 * 1024

/** With pages that are empty, or that repeat, a list has no end. */
const MOST_PAGES = 1000

/** No list, or not all of it. The message is for an operator. */
export class NoList extends Error {
  override readonly name = 'NoList'
}

/** @throws NoList */
export async function* listedPages(
  subject: Subject,
  facts: RuntimeFacts,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  if (!hasOperation(facts, listOf(null, null).route)) throw new NoList('the upstream has no list of threads')
  const first = await askPage(subject, facts, headers, listOf(null, null), signal)
  // A managed runtime has a list for each agent only.
  const agentIds = first === 'needs-agent' ? subject.known.agents : [null]
  if (agentIds.length === 0) throw new NoList('the upstream lists only the threads of an agent, and names no agent')
  let pages = 0
  for (const agentId of agentIds) {
    let page = first === 'needs-agent' ? await askPage(subject, facts, headers, listOf(agentId, null), signal) : first
    for (;;) {
      if (page === 'needs-agent') throw new NoList('the upstream answers 400 to a request for its list')
      yield page.threads.map(({ id }) => id)
      if (page.next === null) break
      pages += 1
      if (pages >= MOST_PAGES) throw new NoList(`the list has more than ${MOST_PAGES} pages`)
      page = await askPage(subject, facts, headers, listOf(agentId, page.next), signal)
    }
  }
}

async function askPage(
  { upstream, mount }: Subject,
  facts: RuntimeFacts,
  headers: Readonly<Record<string, string>>,
  descriptor: RouteDescriptor,
  signal: AbortSignal,
): Promise<ThreadPage | 'needs-agent'> {
  const asked = { descriptor, headers: { ...headers, accept: 'application/json' } }
  const answer = await upstream.send(upstreamRequest(facts, mount.basePath, asked), signal)
  if (answer.outcome === 'failed') throw new NoList(`the upstream gave no list (${answer.detail})`)
  const bytes = await collect(answer.body, MAX_PAGE_BYTES)
  if (answer.status === 400) return 'needs-agent'
  if (answer.status !== 200)
    throw new NoList(`the upstream does not show its list of threads to the doctor: it answered ${answer.status}`)
  const value = typeof bytes === 'string' ? undefined : jsonOf(bytes)
  const page = value === undefined ? null : readThreadPage(value)
  if (page === null) throw new NoList('the upstream does not show its list of threads to the doctor: its answer is no such list')
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
