/** Imports rows into PostgreSQL. An existing owner is never replaced. */
import { Crossed, type Queries } from '../../postgres/pool.ts'
import type { ImportedThread, ImportOptions, ImportOutcome, ImportStore } from '../port/import.ts'
import { addedIn, importOutcomes, ownedStatement } from '../sql/import.ts'
import { keyStatements } from '../sql/keys.ts'
import { observationStatements } from '../sql/observations.ts'
import { sql, type Dialect } from '../sql/statement.ts'
import { keysOf, run, storable, type Database } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

export function importOn(database: Database, dialect: Dialect, invalidations: PostgresInvalidations): ImportStore {
  const owned = ownedStatement(dialect)
  const { runs } = observationStatements(dialect)
  const { forget } = keyStatements(dialect)
  // In key order: two imports of the same threads wait for each other, but not in a circle.
  const insert = sql<{ done: 1 }>(
    `INSERT INTO ${dialect.threads} (scope, thread_id, user_id, agent_id, name, archived, created_at, last_used_at)
      SELECT * FROM unnest(:scopes::text[], :threadIds::text[], :owners::text[], :agentIds::text[], :names::text[],
        :archived::boolean[], :createdAt::bigint[], :lastUsedAt::bigint[])
        AS row (scope, thread_id) ORDER BY scope COLLATE "C", thread_id COLLATE "C"
      ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`,
  )
  const outcomesOf = async (
    queries: Queries,
    rows: readonly ImportedThread[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]> => {
    const keys = keysOf(rows)
    return importOutcomes(rows, await run(queries, owned, keys), await run(queries, runs, keys), options)
  }
  return {
    import: (rows, options) => {
      if (options.dryRun) return database.transaction((queries) => outcomesOf(queries, rows, options), 'snapshot')
      return invalidations.change(async (queries, changed) => {
        const outcomes = await outcomesOf(queries, rows, options)
        const added = addedIn(rows, outcomes)
        if (added.length === 0) return outcomes
        const inserted = await run(queries, insert, {
          ...keysOf(added),
          owners: added.map(({ owner }) => owner),
          agentIds: added.map(({ agentId }) => agentId),
          names: added.map(({ name }) => storable(name)),
          archived: added.map(({ archived }) => archived),
          createdAt: added.map(({ createdAt }) => createdAt),
          lastUsedAt: added.map(({ lastUsedAt }) => lastUsedAt),
        })
        // Another request has claimed one of them since the look-up.
        if (inserted.length < added.length) throw new Crossed()
        if ((await run(queries, forget, keysOf(added))).length > 0) changed(null)
        return outcomes
      })
    },
  }
}
