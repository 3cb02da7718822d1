/** Prunes rows of PostgreSQL. */
import type { Queries } from '../../postgres/pool.ts'
import type { PruneRule, PruneStore } from '../port/administration.ts'
import type { ThreadKey } from '../port/thread.ts'
import { keyStatements } from '../sql/keys.ts'
import { needsScopes, prunableBy, pruneStatements } from '../sql/prune.ts'
import type { Dialect } from '../sql/statement.ts'
import { keysOf, run, type Database } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

export function pruningOn(database: Database, dialect: Dialect, invalidations: PostgresInvalidations): PruneStore {
  const { scopes, page, count } = pruneStatements(dialect)
  const { removeThreads, forget } = keyStatements(dialect)
  const scopesOf = async (queries: Queries, rule: PruneRule): Promise<readonly (string | undefined)[]> =>
    needsScopes(rule) ? (await run(queries, scopes)).map(({ scope }) => scope) : [rule.scope]
  return {
    prune: async (rule, limit) => {
      const prunable = prunableBy(rule)
      if (prunable === null) return 0
      const { rows, before } = prunable
      return invalidations.change(async (queries, changed) => {
        const found: ThreadKey[] = []
        for (const scope of await scopesOf(queries, rule)) {
          const values = { before, scope, limit: limit - found.length }
          for (const key of await run(queries, page(rows, scope), values)) found.push(key)
        }
        if (found.length === 0) return 0
        await run(queries, removeThreads, keysOf(found))
        await run(queries, forget, keysOf(found))
        if (rows === 'unused') changed(null)
        return found.length
      })
    },
    prunable: async (rule) => {
      const prunable = prunableBy(rule)
      if (prunable === null) return 0
      const { rows, before } = prunable
      return database.transaction(async (queries) => {
        let sum = 0
        for (const scope of await scopesOf(queries, rule)) {
          sum += (await run(queries, count(rows, scope), { before, scope }))[0]?.count ?? 0
        }
        return sum
      }, 'survey')
    },
  }
}
