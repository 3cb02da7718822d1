/** Transfers or erases all data of a user in the SQLite file, in steps. */
import { NOBODY, type ThreadAdministration, type ThreadKey } from '../port.ts'
import { sql, type Connection, type Sql } from './connection.ts'
import { removeGrants } from './grants.ts'
import type { SqliteInvalidations } from './invalidations.ts'

const WHERE = 'WHERE scope = :scope AND thread_id = :threadId'
const keysOf = (rows: string): Sql<ThreadKey> =>
  sql(`SELECT scope, thread_id AS threadId FROM ${rows} AND (:scope IS NULL OR scope = :scope) LIMIT :limit`)
const THREADS = keysOf('threads WHERE user_id = :userId')
const RECEIVED = keysOf("grants WHERE kind = 'user' AND grantee = :userId")
const SEEN = keysOf('observations WHERE user_id = :userId')

// A new life: a run that registered earlier settles nothing after it. The run of a revival may have created the thread again.
// A live row that no run has confirmed stays unconfirmed, as by a run that is never settled: it says no more than before.
const MOVE = sql(
  `UPDATE threads SET user_id = :to, gone = gone AND provisional = 0, deletion = NULL, provisional = provisional = 1 AND deleted_at IS NULL,
     pending = provisional = 1 AND deleted_at IS NULL, life = life + 1 ${WHERE}`,
)
// Nothing is granted to the owner. Of two grants the wider stays.
const MOVE_GRANT = sql(
  `INSERT INTO grants (scope, thread_id, kind, grantee, access, granted_by, granted_at)
   SELECT scope, thread_id, kind, :to, access, granted_by, granted_at FROM grants ${WHERE} AND kind = 'user' AND grantee = :from
     AND NOT EXISTS (SELECT 1 FROM threads ${WHERE} AND user_id = :to)
   ON CONFLICT DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by, granted_at = excluded.granted_at
     WHERE excluded.access > access`,
)
const REMOVE_GRANT = sql(`DELETE FROM grants ${WHERE} AND kind = 'user' AND grantee = :userId`)
const MOVE_SEEN = sql(
  `INSERT INTO observations (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
   SELECT scope, thread_id, :to, agent_id, first_used_at, last_used_at, ran FROM observations ${WHERE} AND user_id = :from
   ON CONFLICT DO UPDATE SET first_used_at = min(first_used_at, excluded.first_used_at),
     last_used_at = max(last_used_at, excluded.last_used_at), ran = max(ran, excluded.ran),
     agent_id = CASE WHEN excluded.agent_id = '' OR (agent_id <> '' AND excluded.last_used_at <= last_used_at)
       THEN agent_id ELSE excluded.agent_id END`,
)
const REMOVE_SEEN = sql(`DELETE FROM observations ${WHERE} AND user_id = :userId`)

// Others must not claim what the upstream holds of the thread. The name that the user gave it is removed.
const BURY = sql(
  `UPDATE threads SET user_id = '', name = NULL, deleted_at = coalesce(deleted_at, :now), gone = gone AND provisional = 0, provisional = 0, pending = 0,
     life = life + 1 ${WHERE}`,
)
const REMOVE_GIVEN = sql(
  `DELETE FROM grants WHERE (scope, thread_id, kind, grantee) IN
     (SELECT scope, thread_id, kind, grantee FROM grants WHERE granted_by = :userId LIMIT :limit)`,
)
// Also where others ran it: two runners are a conflict, and forgetting one of them must not settle it.
const BURY_SEEN = sql(
  `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at, deleted_at)
   SELECT scope, thread_id, '', agent_id, first_used_at, last_used_at, :now FROM observations
   ${WHERE} AND user_id = :userId AND ran = 1
   ON CONFLICT DO NOTHING`,
)

export function usersIn(invalidations: SqliteInvalidations): Pick<ThreadAdministration, 'transfer' | 'erase'> {
  const step = (work: (database: Connection) => number): Promise<number> =>
    invalidations.write((database) => {
      const count = work(database)
      return { result: count, changed: count > 0 ? 'many' : 'nothing' }
    })
  return {
    transfer: (from, to, limit, scope) =>
      step((database) => (from === to ? 0 : transfer(database, { from, to, scope: scope ?? null }, limit))),
    erase: (userId, now, limit) => step((database) => erase(database, userId, now, limit)),
  }
}

/** Null for all scopes. */
interface Move {
  readonly from: string
  readonly to: string
  readonly scope: string | null
}

function transfer(database: Connection, { from, to, scope }: Move, limit: number): number {
  // No user owns an unowned thread, so no user can transfer it.
  if (from === NOBODY || to === NOBODY) return 0
  let count = 0
  for (const key of database.all(THREADS, { userId: from, scope, limit })) {
    database.run(MOVE, { ...key, to })
    database.run(REMOVE_GRANT, { ...key, userId: to })
    count += 1
  }
  for (const key of database.all(RECEIVED, { userId: from, scope, limit: limit - count })) {
    database.run(MOVE_GRANT, { ...key, from, to })
    database.run(REMOVE_GRANT, { ...key, userId: from })
    count += 1
  }
  for (const key of database.all(SEEN, { userId: from, scope, limit: limit - count })) {
    database.run(MOVE_SEEN, { ...key, from, to })
    database.run(REMOVE_SEEN, { ...key, userId: from })
    count += 1
  }
  return count
}

function erase(database: Connection, userId: string, now: number, limit: number): number {
  if (userId === NOBODY) return 0
  let count = 0
  for (const key of database.all(THREADS, { userId, scope: null, limit })) {
    database.run(BURY, { ...key, now })
    removeGrants(database, key)
    count += 1
  }
  for (const key of database.all(RECEIVED, { userId, scope: null, limit: limit - count })) {
    database.run(REMOVE_GRANT, { ...key, userId })
    count += 1
  }
  if (count < limit) count += database.run(REMOVE_GIVEN, { userId, limit: limit - count })
  for (const key of database.all(SEEN, { userId, scope: null, limit: limit - count })) {
    database.run(BURY_SEEN, { ...key, userId, now })
    database.run(REMOVE_SEEN, { ...key, userId })
    count += 1
  }
  return count
}
