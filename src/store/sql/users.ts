/** Transfers or erases all data of a user, in steps. */
import type { ThreadKey } from '../port/thread.ts'
import { among, BY_KEY, inScope, KEY, sql, type Dialect, type Sql } from './statement.ts'

export function userStatements(dialect: Dialect) {
  const { threads, grants, observations, larger, smaller } = dialect
  const these = among(dialect)
  const pick =
    (rows: string, order = BY_KEY) =>
    (scope?: string): Sql<ThreadKey> =>
      sql(`SELECT ${KEY} FROM ${rows} ${inScope(scope)} ${order} LIMIT :limit`)
  return {
    // No order: PostgreSQL would read the primary key in order until it has found enough of the user's.
    threads: pick(`${threads} WHERE user_id = :userId`, ''),
    received: pick(`${grants} WHERE kind = 'user' AND grantee = :userId`),
    seen: pick(`${observations} WHERE user_id = :userId`),
    // A new incarnation: earlier runs settle nothing after it. The run of a revival may have created the thread again.
    // A live row that no run has confirmed stays unconfirmed.
    move: sql<ThreadKey>(`UPDATE ${threads} SET user_id = :to, upstream_deleted = upstream_deleted AND NOT provisional, deletion = NULL,
        provisional = provisional AND deleted_at IS NULL,
        open_runs = CASE WHEN provisional AND deleted_at IS NULL THEN 1 ELSE 0 END, incarnation = incarnation + 1
      WHERE ${these} AND user_id = :from RETURNING ${KEY}`),
    // The owner needs no grants. Of two grants the wider stays.
    moveGrant: sql(`INSERT INTO ${grants} AS there (scope, thread_id, kind, grantee, access, granted_by, granted_at)
      SELECT scope, thread_id, kind, :to, access, granted_by, granted_at FROM ${grants} AS given
      WHERE ${these} AND kind = 'user' AND grantee = :from AND NOT EXISTS (SELECT 1 FROM ${threads} AS mine
        WHERE mine.scope = given.scope AND mine.thread_id = given.thread_id AND user_id = :to)
      ON CONFLICT (scope, thread_id, kind, grantee) DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by,
        granted_at = excluded.granted_at WHERE excluded.access > there.access`),
    removeGrant: sql(`DELETE FROM ${grants} WHERE ${these} AND kind = 'user' AND grantee = :userId RETURNING 1 AS done`),
    removeGiven: sql(`DELETE FROM ${grants} WHERE (scope, thread_id, kind, grantee) IN
      (SELECT scope, thread_id, kind, grantee FROM ${grants} WHERE granted_by = :userId LIMIT :limit) RETURNING 1 AS done`),
    moveSeen: sql(`INSERT INTO ${observations} AS there (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
      SELECT scope, thread_id, :to, agent_id, first_used_at, last_used_at, ran FROM ${observations} AS seen
      WHERE ${these} AND user_id = :from
      ON CONFLICT (scope, thread_id, user_id) DO UPDATE SET
        first_used_at = ${smaller}(there.first_used_at, excluded.first_used_at),
        last_used_at = ${larger}(there.last_used_at, excluded.last_used_at), ran = there.ran OR excluded.ran,
        agent_id = CASE WHEN excluded.agent_id = '' OR (there.agent_id <> '' AND excluded.last_used_at <= there.last_used_at)
          THEN there.agent_id ELSE excluded.agent_id END`),
    removeSeen: sql(`DELETE FROM ${observations} WHERE ${these} AND user_id = :userId RETURNING 1 AS done`),
    // Other users must not claim what the upstream holds of the thread. The name that the user gave it is removed.
    bury: sql<ThreadKey>(`UPDATE ${threads} SET user_id = '', name = NULL, deleted_at = coalesce(deleted_at, :now),
        upstream_deleted = upstream_deleted AND NOT provisional, provisional = false, open_runs = 0, incarnation = incarnation + 1
      WHERE ${these} AND user_id = :userId RETURNING ${KEY}`),
    // Also where others ran it: two runners are a conflict, and forgetting one of them must not settle it.
    burySeen: sql(`INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, created_at, last_used_at, deleted_at)
      SELECT scope, thread_id, '', agent_id, first_used_at, last_used_at, CAST(:now AS bigint) FROM ${observations}
      WHERE ${these} AND user_id = :userId AND ran ON CONFLICT (scope, thread_id) DO NOTHING`),
  }
}
