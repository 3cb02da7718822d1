/** Takes rows over into the store. An existing owner is never replaced: a conflict is reported, and the store stays as it is. */
import type {
  AssignmentStore,
  RowStore,
  ThreadRow,
  ImportedThread,
  ImportOutcome,
  ImportStore,
} from '../../store/port/administration.ts'
import type { OwnerChanges } from '../../store/port/claims.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import type { Row } from './entry.ts'
import { throttled, type Retry } from './retry.ts'
import { ownerWord, type Problem } from './problem.ts'
import type { StagingTable } from './staging-table.ts'
import type { ObservationStore, ObservedThread } from '../../store/port/observations.ts'

export type Target = ImportStore & Pick<AssignmentStore, 'assign'> & Pick<OwnerChanges, 'bury'> & Pick<RowStore, 'thread'>

/** A store that does not exist yet, for a dry run, which makes none. Every row can be taken over. */
export const EMPTY_TARGET: Target = {
  import: (rows) => Promise.resolve(rows.map(() => ({ outcome: 'added' }))),
  assign: () => Promise.resolve({ outcome: 'assigned', before: null }),
  bury: () => Promise.resolve(),
  thread: () => Promise.resolve(null),
}

export interface Tally {
  added: number
  same: number
  conflicts: number
}

export interface TakeoverOptions {
  readonly dryRun: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly retry: Retry
  readonly signal: AbortSignal
  readonly onProblem: (problem: Problem) => void
  readonly onProgress: (done: number) => void
}

export const BATCH = 500

interface Takeover extends Tally {
  readonly repeated: number
  readonly interrupted: boolean
}

/**
 * @param staging sealed
 * @param tally counts during the work, so that the caller knows the progress if the store fails
 * @throws StoreUnavailable when the retry limit is reached
 */
export async function takeOver(staging: StagingTable, target: Target, tally: Tally, options: TakeoverOptions): Promise<Takeover> {
  let repeated = 0
  for (let after: ThreadKey | null = null; ;) {
    if (options.signal.aborted) return { ...tally, repeated, interrupted: true }
    const page = staging.page(after, BATCH)
    for (const key of page.disputed) {
      tally.conflicts += 1
      for (const problem of disputes(staging, key)) options.onProblem(problem)
    }
    await takeRows(page.rows, target, tally, options)
    repeated += page.repeated
    options.onProgress(tally.added + tally.same + tally.conflicts)
    if (page.next === null) return { ...tally, repeated, interrupted: false }
    after = page.next
  }
}

export function* disputes(staging: StagingTable, { scope, threadId }: ThreadKey): Generator<Problem> {
  for (const { line, owner } of staging.rivals({ scope, threadId })) {
    const reason = 'the file gives this thread to different users'
    yield { kind: 'conflict', line, scope, threadId, owner, users: [], reason }
  }
}

/** Takes over rows of different threads in one step, and reports the conflicts. */
async function takeRows(rows: readonly Row[], target: Target, tally: Tally, options: TakeoverOptions): Promise<void> {
  if (rows.length === 0) return
  const outcomes = await throttled(() => settle(rows, target, options))
  for (const [at, row] of rows.entries()) {
    const outcome = outcomes[at]
    if (outcome === undefined) throw new Error('the store gave no outcome for a row')
    if (outcome.outcome === 'conflict') {
      tally.conflicts += 1
      options.onProblem(conflict(row, outcome))
    } else tally[outcome.outcome] += 1
  }
}

/** The result for a row. `alive` is a conflict, too: the file says that the thread was deleted, but it is in use. */
type Outcome =
  | Exclude<ImportOutcome, { outcome: 'conflict' }>
  | { readonly outcome: 'conflict'; readonly with: 'owner' | 'observed' | 'deleted' | 'alive'; readonly users: readonly string[] }

async function settle(rows: readonly Row[], target: Target, options: TakeoverOptions): Promise<readonly Outcome[]> {
  const owned = rows.filter((row) => row.owner !== NOBODY)
  const { dryRun, retry } = options
  const imported =
    owned.length === 0 ? [] : await retry(() => target.import(owned.map(importedOf), { dryRun, settleConflicts: false }))
  const outcomes = new Map(owned.map((row, at) => [row, imported[at]]))
  const settled: Outcome[] = []
  for (const row of rows) {
    const outcome = outcomes.get(row)
    const { deletedAt } = row.facts
    if (outcome === undefined) settled.push(await withhold(row, target, options))
    else settled.push(deletedAt === null ? outcome : await bury(row, deletedAt, outcome, target, options))
  }
  return settled
}

/** In two steps: in between only the owner has the thread. Keeps the tombstone, as the upstream may still have its data. */
async function bury(
  row: Row,
  deletedAt: number,
  outcome: ImportOutcome,
  target: Target,
  { dryRun, retry }: TakeoverOptions,
): Promise<Outcome> {
  const key = keyOf(row)
  if (outcome.outcome === 'conflict') {
    const isSame = outcome.with === 'deleted' && outcome.users[0] === row.owner
    return isSame ? { outcome: 'same' } : outcome
  }
  if (outcome.outcome === 'same') {
    const there = (await retry(() => target.thread(key)))?.row ?? null
    // A row left by an interrupted run of this import is not in use yet.
    if (there === null || !isAsImported(there, row)) return { outcome: 'conflict', with: 'alive', users: [row.owner] }
  }
  if (!dryRun) await retry(() => target.bury(key, row.owner, deletedAt, 'unknown'))
  return outcome
}

function isAsImported(there: ThreadRow, { owner, facts }: Row): boolean {
  return (
    there.owner === owner &&
    !there.provisional &&
    there.createdAt === facts.createdAt &&
    there.lastUsedAt === facts.lastUsedAt &&
    there.agentId === facts.agentId &&
    there.name === facts.name
  )
}

/** A row whose owner was removed stays foreign to all users, deleted or not: no user can have deleted it. */
async function withhold(row: Row, target: Target, { dryRun, now, retry }: TakeoverOptions): Promise<Outcome> {
  const key = keyOf(row)
  const known = await retry(() => target.thread(key))
  if (known?.row?.owner === NOBODY) return { outcome: 'same' }
  if (known?.row) return { outcome: 'conflict', with: 'owner', users: [known.row.owner] }
  if (known !== null && known.runners.length > 0) return { outcome: 'conflict', with: 'observed', users: known.runners }
  if (dryRun) return { outcome: 'added' }
  const assigned = await retry(() => target.assign(key, NOBODY, now, null))
  if (assigned.outcome === 'changed' && assigned.owner !== NOBODY)
    return { outcome: 'conflict', with: 'owner', users: assigned.owner === null ? [] : [assigned.owner] }
  return { outcome: assigned.outcome === 'assigned' ? 'added' : 'same' }
}

function keyOf({ scope, threadId }: Row): ThreadKey {
  return { scope, threadId }
}

function importedOf(row: Row): ImportedThread {
  const { agentId, name, archived, createdAt, lastUsedAt } = row.facts
  return { ...keyOf(row), owner: row.owner, agentId, name, archived, createdAt, lastUsedAt }
}

function conflict({ line, scope, threadId, owner }: Row, outcome: Extract<Outcome, { outcome: 'conflict' }>): Problem {
  return {
    kind: 'conflict',
    line: line === 0 ? null : line,
    scope,
    threadId,
    owner,
    users: outcome.users,
    reason: reasonOf(outcome),
  }
}

function reasonOf({ with: kind, users }: Extract<Outcome, { outcome: 'conflict' }>): string {
  const who = users.map(ownerWord).join(', ')
  switch (kind) {
    case 'owner':
      return users.length === 0
        ? 'no user may use it (owner revoked, or imported as "nobody"): threadwarden threads assign gives it an owner'
        : `it belongs to ${who}`
    case 'observed':
      return `it was run by ${who} under enforcement: observe`
    case 'deleted':
      return users.length === 0 ? 'it was deleted, and its owner was erased' : `it was deleted by its owner ${who}`
    case 'alive':
      return 'the file says that it was deleted, but it is in use'
  }
}

export type ObservedTarget = Target & Pick<ObservationStore, 'observed'>

/**
 * Confirms owners seen under `enforcement: observe`: an observation gives no ownership until an operator confirms it. Several users
 * on one thread are a conflict for the operator. @throws StoreUnavailable when the retry limit is reached
 */
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
        reason: `several users ran it: ${seen.runners.join(', ')}; threadwarden threads assign gives it to one of them`,
      })
    }
    await takeRows(page.flatMap(observedRow), store, tally, options)
    options.onProgress(tally.added + tally.same + tally.conflicts)
    const last = page.at(-1)
    if (last === undefined || page.length < BATCH) return { ...tally, repeated: 0, interrupted: false }
    after = { scope: last.scope, threadId: last.threadId }
  }
}

function observedRow({ scope, threadId, runners, agentId, firstUsedAt, lastUsedAt }: ObservedThread): readonly Row[] {
  const [owner, ...others] = runners
  if (owner === undefined || owner === NOBODY || others.length > 0) return []
  const facts = { agentId, name: null, archived: false, createdAt: firstUsedAt, lastUsedAt, deletedAt: null }
  return [{ kind: 'row', line: 0, scope, threadId, owner, facts }]
}
