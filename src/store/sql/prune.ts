/** Prunes rows. */
import type { PruneRule, PruneStore } from '../port/administration.ts'
import type { ThreadKey } from '../port/thread.ts'
import { all, type Engine, type Work } from './engine.ts'
import { inScope, KEY, keyStatements, scopesText, sql, type Sql } from './statement.ts'

interface Prunable {
  readonly rows: 'unused' | 'deleted'
  readonly before: number
}

/** No row is both deleted and live. A rule without a condition prunes nothing. */
function prunableBy({ deletedBefore, unusedSince }: PruneRule): Prunable | null {
  if (deletedBefore === undefined) return unusedSince === undefined ? null : { rows: 'unused', before: unusedSince }
  return unusedSince === undefined ? { rows: 'deleted', before: deletedBefore } : null
}

export function pruningIn({ dialect, read, change }: Engine): PruneStore {
  const { threads, isUpstreamDeleted, forUpdate, keysOf } = dialect
  const { removeThreads, removeGrants, forget } = keyStatements(dialect)
  const scopes = sql<{ scope: string }>(scopesText(threads))
  const found = (rows: Prunable['rows'], scope: string | undefined): string =>
    rows === 'unused'
      ? `FROM ${threads} WHERE deleted_at IS NULL AND archived IN (false, true) AND last_used_at < :before ${inScope(scope)}`
      : // Others must not claim what the upstream still holds, or a run may be restoring, however long ago it was deleted.
        `FROM ${threads} WHERE ${isUpstreamDeleted} AND NOT provisional AND deleted_at < :before ${inScope(scope)}`
  const page = (rows: Prunable['rows'], scope?: string): Sql<ThreadKey> =>
    sql(`SELECT ${KEY} ${found(rows, scope)} LIMIT :limit ${forUpdate}`)
  const count = (rows: Prunable['rows'], scope?: string): Sql<{ count: number }> =>
    sql(`SELECT count(*) AS count ${found(rows, scope)}`)
  /** The index of unused rows begins with the scope: a query per scope does not read all rows for a few. */
  function* scopesOf({ unusedSince, scope: only }: PruneRule): Work<readonly (string | undefined)[]> {
    return unusedSince !== undefined && only === undefined ? (yield* all(scopes)).map(({ scope }) => scope) : [only]
  }
  return {
    prune: async (rule, limit) => {
      const prunable = prunableBy(rule)
      if (prunable === null) return 0
      const { rows, before } = prunable
      return change(function* (changed) {
        const keys: ThreadKey[] = []
        for (const scope of yield* scopesOf(rule)) {
          const values = { before, scope: scope ?? null, limit: limit - keys.length }
          for (const key of yield* all(page(rows, scope), values)) keys.push(key)
        }
        if (keys.length === 0) return 0
        for (const statement of [removeThreads, removeGrants, forget]) yield* all<object>(statement, keysOf(keys))
        if (rows === 'unused') changed(null)
        return keys.length
      })
    },
    prunable: async (rule) => {
      const prunable = prunableBy(rule)
      if (prunable === null) return 0
      const { rows, before } = prunable
      return read('survey', function* () {
        let sum = 0
        for (const scope of yield* scopesOf(rule)) {
          sum += (yield* all(count(rows, scope), { before, scope: scope ?? null }))[0]?.count ?? 0
        }
        return sum
      })
    },
  }
}
