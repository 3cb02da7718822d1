/** Transfers or erases all data of a user, in steps. */
import type { UserStore } from '../port/administration.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import {
  all,
  type Engine,
  type Work,
  among,
  BY_KEY,
  inScope,
  KEY,
  keyStatements,
  sql,
  type Dialect,
  type Sql,
  type Values,
} from './statement.ts'

function userStatements(dialect: Dialect) {
  const { threads, grants, observations, larger, smaller } = dialect
  const these = among(dialect)
  // Ordered as the index of each table by user is. Without an order PostgreSQL may read the whole table for a user of many rows.
  const pick =
    (rows: string) =>
    (scope?: string): Sql<ThreadKey> =>
      sql(`SELECT ${KEY} FROM ${rows} ${inScope(scope)} ${BY_KEY} LIMIT :limit`)
  return {
    threads: pick(`${threads} WHERE user_id = :userId`),
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
    removeGrant: sql<{ done: 1 }>(
      `DELETE FROM ${grants} WHERE ${these} AND kind = 'user' AND grantee = :userId RETURNING 1 AS done`,
    ),
    removeGiven: sql<{ done: 1 }>(`DELETE FROM ${grants} WHERE (scope, thread_id, kind, grantee) IN
      (SELECT scope, thread_id, kind, grantee FROM ${grants} WHERE granted_by = :userId LIMIT :limit) RETURNING 1 AS done`),
    moveSeen: sql(`INSERT INTO ${observations} AS there (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
      SELECT scope, thread_id, :to, agent_id, first_used_at, last_used_at, ran FROM ${observations} AS seen
      WHERE ${these} AND user_id = :from
      ON CONFLICT (scope, thread_id, user_id) DO UPDATE SET
        first_used_at = ${smaller}(there.first_used_at, excluded.first_used_at),
        last_used_at = ${larger}(there.last_used_at, excluded.last_used_at), ran = there.ran OR excluded.ran,
        agent_id = CASE WHEN excluded.agent_id = '' OR (there.agent_id <> '' AND excluded.last_used_at <= there.last_used_at)
          THEN there.agent_id ELSE excluded.agent_id END`),
    removeSeen: sql<{ done: 1 }>(`DELETE FROM ${observations} WHERE ${these} AND user_id = :userId RETURNING 1 AS done`),
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

export function usersIn({ dialect, change }: Engine): Omit<UserStore, 'userData'> {
  const { keysOf, lockRows } = dialect
  const users = userStatements(dialect)
  const { removeGrants } = keyStatements(dialect)
  const step = (work: () => Work<number>): Promise<number> =>
    change(function* (changed) {
      const count = yield* work()
      if (count > 0) changed(null)
      return count
    })
  /** The rows of these threads are locked: that serializes grants with statements that remove them. */
  function* find(statement: Sql<ThreadKey>, userId: string, limit: number, scope?: string): Work<Values> {
    const keys = keysOf(yield* all(statement, { userId, limit, scope: scope ?? null }))
    if (lockRows !== null) yield* all(lockRows, keys)
    return keys
  }
  return {
    transfer: async (from, to, limit, scope) => {
      // No user owns an unowned thread, so no user can transfer it.
      if (from === to || from === NOBODY || to === NOBODY) return 0
      return step(function* () {
        let left = limit
        const threads = yield* find(users.threads(scope), from, left, scope)
        const moved = yield* all(users.move, { ...threads, from, to })
        yield* all(users.removeGrant, { ...keysOf(moved), userId: to })
        left -= moved.length
        const received = yield* find(users.received(scope), from, left, scope)
        yield* all(users.moveGrant, { ...received, from, to })
        left -= (yield* all(users.removeGrant, { ...received, userId: from })).length
        const seen = yield* find(users.seen(scope), from, left, scope)
        yield* all(users.moveSeen, { ...seen, from, to })
        left -= (yield* all(users.removeSeen, { ...seen, userId: from })).length
        return limit - left
      })
    },
    erase: async (userId, now, limit) => {
      if (userId === NOBODY) return 0
      return step(function* () {
        let left = limit
        const threads = yield* find(users.threads(), userId, left)
        const buried = yield* all(users.bury, { ...threads, userId, now })
        yield* all(removeGrants, keysOf(buried))
        left -= buried.length
        const received = yield* find(users.received(), userId, left)
        left -= (yield* all(users.removeGrant, { ...received, userId })).length
        left -= (yield* all(users.removeGiven, { userId, limit: left })).length
        const seen = yield* find(users.seen(), userId, left)
        yield* all(users.burySeen, { ...seen, userId, now })
        left -= (yield* all(users.removeSeen, { ...seen, userId })).length
        return limit - left
      })
    },
  }
}
