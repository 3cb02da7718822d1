/** Assigns and removes owners of threads, for operators. */
import type { AssignOutcome } from '../port/administration.ts'
import { ONE, sql, type Dialect, type Flag } from './statement.ts'

export interface Assigned {
  readonly owner: string
  /** True for a live row without an unconfirmed run. */
  readonly settled: Flag
}

export function assignmentStatements({ threads, forUpdate }: Dialect) {
  return {
    row: sql<Assigned>(
      `SELECT user_id AS owner, deleted_at IS NULL AND NOT provisional AS settled FROM ${threads} WHERE ${ONE} ${forUpdate}`,
    ),
    // A new incarnation: a run that registered earlier settles nothing after it.
    give: sql(`UPDATE ${threads} SET user_id = :to, deleted_at = NULL, upstream_deleted = false, deletion = NULL, provisional = false, open_runs = 0,
        incarnation = incarnation + 1 WHERE ${ONE}`),
    insert: sql<{ done: 1 }>(`INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, created_at, last_used_at)
      VALUES (:scope, :threadId, :to, '', :now, :now) ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`),
    // The run of a revival may have created the thread again at the upstream.
    take: sql(`UPDATE ${threads} SET user_id = '', upstream_deleted = upstream_deleted AND NOT provisional, deletion = NULL, provisional = false, open_runs = 0,
        incarnation = incarnation + 1 WHERE ${ONE}`),
  }
}

/** For `assigned`, the caller must assign the thread. */
export function assignOutcome(row: Assigned | undefined, to: string, expected: string | null | undefined): AssignOutcome {
  const owner = row?.owner ?? null
  if (expected !== undefined && expected !== owner) return { outcome: 'changed', owner }
  if (owner === to && Boolean(row?.settled)) return { outcome: 'same' }
  return { outcome: 'assigned', before: owner }
}
