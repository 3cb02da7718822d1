/** Imports rows. An existing owner is never replaced. */
import { nameOf } from '../access-cache.ts'
import type { ImportedThread, ImportOptions, ImportOutcome } from '../port/import.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import { runnersByThread, type Run } from './observations.ts'
import { among, KEY, sql, type Dialect, type Flag } from './statement.ts'

export interface Owned extends ThreadKey {
  readonly owner: string
  readonly deleted: Flag
}

export function ownedStatement(dialect: Dialect) {
  return sql<Owned>(
    `SELECT ${KEY}, user_id AS owner, deleted_at IS NOT NULL AS deleted FROM ${dialect.threads} WHERE ${among(dialect)}`,
  )
}

/** The outcome of each row, in order: later rows find what an earlier row adds. */
export function importOutcomes(
  rows: readonly ImportedThread[],
  owned: readonly Owned[],
  runs: readonly Run[],
  { settleConflicts }: ImportOptions,
): readonly ImportOutcome[] {
  const known = new Map<string, Omit<Owned, keyof ThreadKey>>(owned.map((row) => [nameOf(row), row]))
  const runners = runnersByThread(runs)
  return rows.map((row): ImportOutcome => {
    const name = nameOf(row)
    const there = known.get(name)
    if (there !== undefined) {
      const users = there.owner === NOBODY ? [] : [there.owner]
      if (there.deleted) return { outcome: 'conflict', with: 'deleted', users }
      return there.owner === row.owner ? { outcome: 'same' } : { outcome: 'conflict', with: 'owner', users }
    }
    const others = (runners.get(name) ?? []).filter((user) => user !== row.owner)
    if (others.length > 0 && !settleConflicts) return { outcome: 'conflict', with: 'observed', users: others }
    known.set(name, { owner: row.owner, deleted: false })
    return { outcome: 'added' }
  })
}

export function addedIn(rows: readonly ImportedThread[], outcomes: readonly ImportOutcome[]): readonly ImportedThread[] {
  return rows.filter((_row, at) => outcomes[at]?.outcome === 'added')
}
