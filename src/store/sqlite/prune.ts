/** Prunes rows of the SQLite file. */
import type { PruneRule, ThreadAdministration, ThreadKey } from '../port.ts'
import { sql, type Connection, type Sql } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { removeGrants } from './grants.ts'
import type { Changed, SqliteInvalidations } from './invalidations.ts'
import { forgetObservations } from './observations.ts'

interface Found {
  readonly page: Sql<ThreadKey>
  readonly count: Sql<{ rows: number }>
}

const LISTED = 'threads.scope AS scope, threads.thread_id AS threadId'

// Others must not claim what the upstream still holds, or a run may be restoring, however long ago it was deleted.
const DELETED = found(
  '',
  'threads WHERE gone = 1 AND provisional = 0 AND deleted_at < :deletedBefore AND (:scope IS NULL OR scope = :scope)',
)
// The index begins with the scope: each scope is queried separately, instead of reading all rows for a few.
const UNUSED = found(
  `WITH RECURSIVE scopes (scope) AS (
     SELECT min(scope) FROM threads
     UNION ALL SELECT (SELECT min(scope) FROM threads WHERE scope > scopes.scope) FROM scopes WHERE scopes.scope IS NOT NULL)`,
  `scopes CROSS JOIN threads ON threads.scope = scopes.scope
   WHERE (:scope IS NULL OR scopes.scope = :scope) AND deleted_at IS NULL AND archived IN (0, 1) AND last_used_at < :unusedSince`,
)
const REMOVE = sql('DELETE FROM threads WHERE scope = :scope AND thread_id = :threadId')

export function pruningIn(
  file: SqliteFile,
  invalidations: SqliteInvalidations,
): Pick<ThreadAdministration, 'prune' | 'prunable'> {
  return {
    prune: (rule, limit) => invalidations.write((database) => prune(database, rule, limit)),
    prunable: (rule) =>
      file.read((database) => {
        const rows = rowsOf(rule)
        return rows === null ? 0 : (database.get(rows.count, { scope: null, ...rule })?.rows ?? 0)
      }),
  }
}

function found(before: string, rows: string): Found {
  return {
    page: sql(`${before} SELECT ${LISTED} FROM ${rows} LIMIT :limit`),
    count: sql(`${before} SELECT count(*) AS rows FROM ${rows}`),
  }
}

/** No row is deleted and live at once. A rule without a condition prunes nothing. */
function rowsOf({ deletedBefore, unusedSince }: PruneRule): Found | null {
  if (deletedBefore === undefined) return unusedSince === undefined ? null : UNUSED
  return unusedSince === undefined ? DELETED : null
}

function prune(database: Connection, rule: PruneRule, limit: number): { readonly result: number; readonly changed: Changed } {
  const rows = rowsOf(rule)
  if (rows === null) return { result: 0, changed: 'nothing' }
  const keys = database.all(rows.page, { scope: null, ...rule, limit })
  for (const key of keys) {
    database.run(REMOVE, { ...key })
    removeGrants(database, key)
    // The thread then counts as never seen.
    forgetObservations(database, key)
  }
  return { result: keys.length, changed: keys.length > 0 && rows === UNUSED ? 'many' : 'nothing' }
}
