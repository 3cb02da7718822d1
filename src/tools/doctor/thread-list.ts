/** The ids in the upstream's list of threads, up to a limit, to compare them with the ownership table. */
import type { RuntimeFacts } from '../../core/route/transport.ts'
import { NoList, threadPages } from '../../http/upstream/thread-pages.ts'
import type { Subject } from './subject.ts'

/** With pages that are empty, or that repeat threads, a list has no end. */
const MOST_PAGES = 1000

/** @throws NoList */
export async function* listedPages(
  { upstream, mount, known }: Subject,
  facts: RuntimeFacts,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  const parts = { upstream, basePath: mount.basePath, facts, headers, signal }
  let left = MOST_PAGES
  const idsOf = async function* (agentId: string | null): AsyncGenerator<readonly string[]> {
    for await (const threads of threadPages(parts, agentId)) {
      if (left === 0) throw new NoList(`the list has more than ${MOST_PAGES} pages`)
      left -= 1
      yield threads.map(({ id }) => id)
    }
  }
  try {
    yield* idsOf(null)
  } catch (error) {
    const needsAgent = error instanceof NoList && error.status === 400 && left === MOST_PAGES
    if (!needsAgent) throw error
    if (known.agents.length === 0) {
      throw new NoList('the upstream lists only the threads of an agent, and names no agent', error.status)
    }
    for (const agentId of known.agents) yield* idsOf(agentId)
  }
}
