/** Imports rows. An existing owner is never replaced. */
import { nameOf } from '../access-cache.ts'
import type { ImportedThread, ImportOptions, ImportOutcome, ImportStore } from '../port/import.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import { all, type Engine, type Work } from './engine.ts'
import { observationStatements, type Run } from './observations.ts'
import { among, KEY, keyStatements, sql, type Flag } from './statement.ts'

interface Owned extends ThreadKey {
  readonly owner: string
  readonly deleted: Flag
}

export function importIn({ dialect, read, change, crossed }: Engine): ImportStore {
  const { runs } = observationStatements(dialect)
  const { forget } = keyStatements(dialect)
  const owned = sql<Owned>(
    `SELECT ${KEY}, user_id AS owner, deleted_at IS NOT NULL AS deleted FROM ${dialect.threads} WHERE ${among(dialect)}`,
  )
  function* outcomesOf(rows: readonly ImportedThread[], options: ImportOptions): Work<readonly ImportOutcome[]> {
    const keys = dialect.keysOf(rows)
    return importOutcomes(rows, yield* all(owned, keys), yield* all(runs, keys), options)
  }
  return {
    import: (rows, options) => {
      if (options.dryRun) return read('snapshot', () => outcomesOf(rows, options))
      return change(function* (changed) {
        const outcomes = yield* outcomesOf(rows, options)
        const added = rows.filter((_row, at) => outcomes[at]?.outcome === 'added')
        if (added.length === 0) return outcomes
        let inserted = 0
        for (const { sql: insert, values } of dialect.insertionOf(added)) inserted += (yield* all(insert, values)).length
        if (inserted < added.length) throw crossed()
        if ((yield* all(forget, dialect.keysOf(added))).length > 0) changed(null)
        return outcomes
      })
    },
  }
}

/** The outcome of each row, in order: later rows find what an earlier row adds. */
function importOutcomes(
  rows: readonly ImportedThread[],
  owned: readonly Owned[],
  runs: readonly Run[],
  { settleConflicts }: ImportOptions,
): readonly ImportOutcome[] {
  const known = new Map<string, Omit<Owned, keyof ThreadKey>>(owned.map((row) => [nameOf(row), row]))
  const runners = Map.groupBy(runs, nameOf)
  return rows.map((row): ImportOutcome => {
    const name = nameOf(row)
    const there = known.get(name)
    if (there !== undefined) {
      const users = there.owner === NOBODY ? [] : [there.owner]
      if (there.deleted) return { outcome: 'conflict', with: 'deleted', users }
      return there.owner === row.owner ? { outcome: 'same' } : { outcome: 'conflict', with: 'owner', users }
    }
    const others = (runners.get(name) ?? []).map(({ userId }) => userId).filter((user) => user !== row.owner)
    if (others.length > 0 && !settleConflicts) return { outcome: 'conflict', with: 'observed', users: others }
    known.set(name, { owner: row.owner, deleted: false })
    return { outcome: 'added' }
  })
}
