/** Settles registered runs when they end, in PostgreSQL. */
import type { ClaimStore } from '../port/claims.ts'
import type { ThreadKey } from '../port/thread.ts'
import { ATTEMPTS } from '../../postgres/pool.ts'
import { crossed, type Database } from './database.ts'
import type { Tables } from '../sql/statement.ts'
import type { PostgresInvalidations } from './invalidations.ts'

// Registered by this run: not settled yet, and the same incarnation of the thread.
const MINE = `WHERE scope = $1 AND thread_id = $2 AND user_id = $3 AND user_id <> '' AND provisional AND incarnation = $4`
// The last run of a row that was never confirmed.
const LAST = `${MINE} AND open_runs = 1 AND deleted_at IS NULL`

export function settlingOn(
  database: Database,
  { threads, grants }: Tables,
  invalidations: PostgresInvalidations,
): ClaimStore['settle'] {
  // A run that may have started settles only a tombstone, which was confirmed before.
  const SETTLE = {
    name: 'settle',
    text: `UPDATE ${threads} SET provisional = false, open_runs = 0, deleted_at = NULL, upstream_deleted = false ${MINE}
      AND ($5::boolean OR deleted_at IS NOT NULL)`,
  }
  // The last run removes the row, or leaves its tombstone. The database checks both conditions again after a concurrent change.
  const LEAVE = {
    name: 'leave',
    text: `WITH
        removed AS (DELETE FROM ${threads} ${LAST}
          AND NOT EXISTS (SELECT FROM ${grants} WHERE scope = $1 AND thread_id = $2) RETURNING true AS released),
        stayed AS (UPDATE ${threads} SET open_runs = open_runs - 1, provisional = open_runs > 1 ${MINE}
          AND (open_runs > 1 OR deleted_at IS NOT NULL) RETURNING NOT provisional AS released)
      SELECT released FROM removed UNION ALL SELECT released FROM stayed`,
  }
  const REGISTERED = { text: `SELECT 1 AS there FROM ${threads} ${MINE}` }
  const REMOVE = { text: `DELETE FROM ${threads} ${LAST} RETURNING 1 AS done` }

  /** Deletes the row and its grants, which sends an invalidation. */
  const removeShared = (key: ThreadKey, values: readonly unknown[]): Promise<boolean> =>
    invalidations.change(async (queries, changed) => {
      const removed = await queries.query(REMOVE, values)
      if (removed.length > 0) changed([key])
      return removed.length > 0
    })

  return async (key, userId, registration, outcome) => {
    const values = [key.scope, key.threadId, userId, registration]
    if (outcome !== 'not-started') {
      await database.query(SETTLE, [...values, outcome === 'confirmed'])
      return false
    }
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const [left] = await database.query<{ released: boolean }>(LEAVE, values)
      if (left !== undefined) return left.released
      if ((await database.query(REGISTERED, values)).length === 0) return false
      if (await removeShared(key, values)) return true
    }
    throw crossed()
  }
}
