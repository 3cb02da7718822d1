/** Confirms owners seen under `enforcement: observe`: an observation gives no ownership until an operator confirms it. */
import type { ObservationStore, ObservedThread } from '../../store/port/observations.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import type { Row } from './entry.ts'
import { BATCH, takeRows, type Tally, type Takeover, type TakeoverOptions, type Target } from './takeover.ts'

export type ObservedTarget = Target & Pick<ObservationStore, 'observed'>

/** Several users on one thread are a conflict for the operator. @throws StoreUnavailable when the retry limit is reached */
export async function confirmObserved(
  store: ObservedTarget,
  scope: string | undefined,
  tally: Tally,
  options: TakeoverOptions,
): Promise<Takeover> {
  // Threads come in the order of their keys, and no thread id is empty.
  let after: ThreadKey | null = scope === undefined ? null : { scope, threadId: '' }
  for (;;) {
    if (options.signal.aborted) return { ...tally, repeated: 0, interrupted: true }
    const asked: ThreadKey | null = after
    const found: readonly ObservedThread[] = await options.retry(() => store.observed(asked, BATCH))
    const page = found.filter((seen) => scope === undefined || seen.scope === scope)
    for (const seen of page.filter(({ runners }) => runners.length > 1)) {
      tally.conflicts += 1
      options.onProblem({
        kind: 'conflict',
        line: null,
        scope: seen.scope,
        threadId: seen.threadId,
        owner: null,
        users: seen.runners,
        reason: `several users ran it: ${seen.runners.join(', ')}; threads assign gives it to one of them`,
      })
    }
    await takeRows(page.flatMap(rowOf), store, tally, options)
    options.onProgress(tally.added + tally.same + tally.conflicts)
    const last = page.at(-1)
    if (last === undefined || page.length < BATCH) return { ...tally, repeated: 0, interrupted: false }
    after = { scope: last.scope, threadId: last.threadId }
  }
}

function rowOf({ scope, threadId, runners, agentId, firstUsedAt, lastUsedAt }: ObservedThread): readonly Row[] {
  const [owner, ...others] = runners
  if (owner === undefined || owner === NOBODY || others.length > 0) return []
  const facts = { agentId, name: null, archived: false, createdAt: firstUsedAt, lastUsedAt, deletedAt: null }
  return [{ kind: 'row', line: 0, scope, threadId, owner, facts }]
}
