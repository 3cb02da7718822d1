/** A real store for tests of imports, and imports into it. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { importFrom, type ImportReport } from '../../src/tools/import-export/import.ts'
import { makeRetry } from '../../src/tools/import-export/retry.ts'
import { problemData, type Problem } from '../../src/tools/import-export/problem.ts'
import { entriesOf } from '../../src/tools/import-export/source-file.ts'
import type { TakeoverOptions, Target } from '../../src/tools/import-export/takeover.ts'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { inPieces, NOW, READING } from './sources.ts'

/** An empty store that goes with the test. */
export async function startStore(t: Test): Promise<Store> {
  const { folder, remove } = makeFolder()
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  t.teardown(async () => {
    await store.close()
    remove()
  })
  return store
}

/** A thread. */
export function key(threadId: string): ThreadKey {
  return { scope: '', threadId }
}

/** Makes somebody the owner of a thread by a run that is confirmed. */
export async function own(store: Store, threadId: string, userId: string): Promise<void> {
  const claim = await store.claim(key(threadId), { userId, agentId: 'default', guest: false, now: NOW })
  if (claim.outcome === 'new') await store.settle(key(threadId), userId, claim.registration ?? 0, 'confirmed')
}

/** How imports are done here: with what came of them, a problem a line. */
export function optionsFor(more: Partial<TakeoverOptions> = {}) {
  const problems: object[] = []
  const signal = more.signal ?? new AbortController().signal
  const options = {
    dryRun: false,
    now: NOW,
    signal,
    retry: makeRetry({ limit: 1000, first: 1, signal, onTrouble: () => {} }),
    onProblem: (problem: Problem) => void problems.push(problemData(problem)),
    onProgress: () => {},
    ...more,
  }
  return { options, problems }
}

/** Imports lines of CSV. */
export async function importLines(
  store: Target,
  lines: readonly string[],
  more: Partial<TakeoverOptions & { readonly onSettled: (done: number) => void }> = {},
): Promise<{ readonly report: ImportReport; readonly problems: readonly object[] }> {
  const { options, problems } = optionsFor(more)
  const source = { entries: entriesOf(inPieces(lines.join('\n'), 64), 'csv', READING), mapping: null }
  const tally = { added: 0, same: 0, conflicts: 0 }
  const report = await importFrom(source, store, tally, { onRead: () => {}, onSettled: () => {}, ...options })
  return { report, problems }
}

/** Whose each thread is, as `thread=user`, with `!` behind a tombstone. */
export async function ownersIn(store: Store): Promise<readonly string[]> {
  const rows = await store.threads({ deleted: 'too' }, null, 1000)
  return rows.map(({ threadId, owner, deletedAt }) => `${threadId}=${owner}${deletedAt === null ? '' : '!'}`)
}
