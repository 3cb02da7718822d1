/** Prunes rows of PostgreSQL. */
import type { PruneRule, ThreadAdministration, ThreadKey } from '../port.ts'
import { listsOf, type Database, type Tables } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

// Others must not claim what the upstream still holds, or a run may be restoring, however long ago it was deleted.
const GONE = 'gone AND NOT provisional AND deleted_at < $1'
const DELETED = `${GONE} AND ($2::text IS NULL OR scope = $2)`
const UNUSED = "deleted_at IS NULL AND archived = ANY('{false,true}'::boolean[]) AND last_used_at < $1"

/** Rows from before a time, live ones or tombstones; the scope is null for all. */
interface Found {
  readonly scope: string | null
  readonly live: boolean
  readonly before: number
}

export function pruningOn(
  database: Database,
  { threads, observations }: Tables,
  invalidations: PostgresInvalidations,
): Pick<ThreadAdministration, 'prune' | 'prunable'> {
  // The index begins with the scope: each scope is queried separately, instead of reading all rows for a few.
  const scopes = `RECURSIVE scopes (scope) AS (SELECT min(scope) FROM ${threads}
    UNION ALL SELECT (SELECT min(scope) FROM ${threads} WHERE scope > scopes.scope) FROM scopes WHERE scope IS NOT NULL)`
  const unused = (
    end: string,
  ): string => `SELECT found.scope, thread_id FROM (SELECT scope FROM scopes WHERE $2::text IS NULL OR scope = $2) AS scopes
    CROSS JOIN LATERAL (SELECT scope, thread_id FROM ${threads} WHERE scope = scopes.scope AND ${UNUSED} ${end}) AS found ${end}`
  // The condition is repeated: a row that is used between finding and deleting stays.
  const remove = (condition: string): string => `DELETE FROM ${threads} AS there USING found
    WHERE there.scope = found.scope AND there.thread_id = found.thread_id AND ${condition}
    RETURNING there.scope, there.thread_id AS "threadId"`
  const PRUNE_DELETED = {
    text: `WITH found AS MATERIALIZED (SELECT scope, thread_id FROM ${threads} WHERE ${DELETED} LIMIT $3) ${remove(GONE)}`,
  }
  const PRUNE_UNUSED = { text: `WITH ${scopes}, found AS MATERIALIZED (${unused('LIMIT $3')}) ${remove(UNUSED)}` }
  const COUNT_DELETED = { text: `SELECT count(*) FROM ${threads} WHERE ${DELETED}` }
  const COUNT_UNUSED = { text: `WITH ${scopes} SELECT count(*) FROM (${unused('')}) AS unused` }
  // The thread then counts as never seen.
  const FORGET = {
    text: `DELETE FROM ${observations} AS seen USING unnest($1::text[], $2::text[]) AS asked (scope, thread_id)
      WHERE seen.scope = asked.scope AND seen.thread_id = asked.thread_id`,
  }
  return {
    prune: (rule, limit) => {
      const found = foundBy(rule)
      if (found === null) return Promise.resolve(0)
      return invalidations.change(async (queries, changed) => {
        const removed = await queries.query<ThreadKey>(found.live ? PRUNE_UNUSED : PRUNE_DELETED, [
          found.before,
          found.scope,
          limit,
        ])
        if (removed.length === 0) return 0
        await queries.query(FORGET, listsOf(removed))
        if (found.live) changed(null)
        return removed.length
      })
    },
    prunable: (rule) => {
      const found = foundBy(rule)
      if (found === null) return Promise.resolve(0)
      const count = found.live ? COUNT_UNUSED : COUNT_DELETED
      return database.transaction(async (queries) => {
        const [row] = await queries.query<{ count: number }>(count, [found.before, found.scope])
        return row?.count ?? 0
      }, 'survey')
    },
  }
}

/** No row is deleted and live at once. A rule without a condition prunes nothing. */
function foundBy({ scope: asked, deletedBefore, unusedSince }: PruneRule): Found | null {
  const scope = asked ?? null
  if (deletedBefore === undefined) return unusedSince === undefined ? null : { scope, live: true, before: unusedSince }
  return unusedSince === undefined ? { scope, live: false, before: deletedBefore } : null
}
