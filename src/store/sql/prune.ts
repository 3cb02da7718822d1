/** Prunes rows. */
import type { PruneRule } from '../port/administration.ts'
import type { ThreadKey } from '../port/thread.ts'
import { inScope, KEY, scopesText, sql, type Dialect, type Sql } from './statement.ts'

export interface Prunable {
  readonly rows: 'unused' | 'deleted'
  readonly before: number
}

/** No row is both deleted and live. A rule without a condition prunes nothing. */
export function prunableBy({ deletedBefore, unusedSince }: PruneRule): Prunable | null {
  if (deletedBefore === undefined) return unusedSince === undefined ? null : { rows: 'unused', before: unusedSince }
  return unusedSince === undefined ? { rows: 'deleted', before: deletedBefore } : null
}

export function pruneStatements({ threads, isUpstreamDeleted, forUpdate }: Dialect) {
  const found = (rows: Prunable['rows'], scope: string | undefined): string =>
    rows === 'unused'
      ? `FROM ${threads} WHERE deleted_at IS NULL AND archived IN (false, true) AND last_used_at < :before ${inScope(scope)}`
      : // Others must not claim what the upstream still holds, or a run may be restoring, however long ago it was deleted.
        `FROM ${threads} WHERE ${isUpstreamDeleted} AND NOT provisional AND deleted_at < :before ${inScope(scope)}`
  return {
    scopes: sql<{ scope: string }>(scopesText(threads)),
    page: (rows: Prunable['rows'], scope?: string): Sql<ThreadKey> =>
      sql(`SELECT ${KEY} ${found(rows, scope)} LIMIT :limit ${forUpdate}`),
    count: (rows: Prunable['rows'], scope?: string): Sql<{ count: number }> =>
      sql(`SELECT count(*) AS count ${found(rows, scope)}`),
  }
}

/** The index of unused rows begins with the scope: a query per scope does not read all rows for a few. */
export function needsScopes(rule: PruneRule): boolean {
  return rule.unusedSince !== undefined && rule.scope === undefined
}
