/** Transfers or erases all data of a user in PostgreSQL, in steps. */
import type { Queries } from '../../postgres/pool.ts'
import { NOBODY, type ThreadAdministration, type ThreadKey } from '../port.ts'
import { listsOf, type Tables } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

const ASKED = 'unnest($1::text[], $2::text[]) AS asked (scope, thread_id)'
const KEY = 'scope, thread_id AS "threadId"'

/** The scope is null for all. */
interface Whose {
  readonly userId: string
  readonly scope: string | null
}

export function usersOn(
  { threads, grants, observations }: Tables,
  invalidations: PostgresInvalidations,
): Pick<ThreadAdministration, 'transfer' | 'erase'> {
  const of = (table: string): string => `FROM ${table} AS there USING ${ASKED}
    WHERE there.scope = asked.scope AND there.thread_id = asked.thread_id`
  const picked = `WITH picked AS MATERIALIZED
    (SELECT scope, thread_id FROM ${threads} WHERE user_id = $1 AND ($3::text IS NULL OR scope = $3) LIMIT $2)`
  // The owner is checked twice: a row that changes its owner between the two stays as it is.
  const ofPicked = 'FROM picked WHERE there.scope = picked.scope AND there.thread_id = picked.thread_id AND user_id = $1'
  const returning = 'RETURNING there.scope, there.thread_id AS "threadId"'

  // A new life: a run that registered earlier settles nothing after it. The run of a revival may have created the thread again.
  // A live row that no run has confirmed stays unconfirmed, as by a run that is never settled: it says no more than before.
  const MOVE = {
    text: `${picked} UPDATE ${threads} AS there SET user_id = $4, gone = gone AND NOT provisional, deletion = NULL,
        provisional = provisional AND deleted_at IS NULL, pending = (provisional AND deleted_at IS NULL)::integer, life = life + 1
      ${ofPicked} ${returning}`,
  }
  // Others must not claim what the upstream holds of the thread. The name that the user gave it is removed.
  const BURY = {
    text: `${picked} UPDATE ${threads} AS there SET user_id = '', name = NULL, deleted_at = coalesce(deleted_at, $4),
        gone = gone AND NOT provisional, provisional = false, pending = 0, life = life + 1 ${ofPicked} ${returning}`,
  }
  const RECEIVED = {
    text: `SELECT ${KEY} FROM ${grants} WHERE kind = 'user' AND grantee = $1 AND ($3::text IS NULL OR scope = $3)
      ORDER BY scope, thread_id LIMIT $2`,
  }
  const SEEN = {
    text: `SELECT ${KEY} FROM ${observations} WHERE user_id = $1 AND ($3::text IS NULL OR scope = $3)
      ORDER BY scope, thread_id LIMIT $2`,
  }
  // Serializes grants with statements that remove them.
  const LOCK = {
    text: `SELECT 1 AS locked FROM ${ASKED} JOIN ${threads} AS there USING (scope, thread_id)
      ORDER BY there.scope, there.thread_id FOR UPDATE OF there`,
  }
  const REMOVE_GRANTS = { text: `DELETE ${of(grants)}` }
  const REMOVE_GRANT = { text: `DELETE ${of(grants)} AND kind = 'user' AND grantee = $3 RETURNING 1 AS done` }
  // Nothing is granted to the owner. Of two grants the wider stays.
  const MOVE_GRANT = {
    text: `INSERT INTO ${grants} AS there (scope, thread_id, kind, grantee, access, granted_by, granted_at)
      SELECT scope, thread_id, kind, $4, access, granted_by, granted_at FROM ${ASKED} JOIN ${grants} AS given USING (scope, thread_id)
      WHERE kind = 'user' AND grantee = $3 AND NOT EXISTS (SELECT FROM ${threads} AS mine
        WHERE mine.scope = given.scope AND mine.thread_id = given.thread_id AND user_id = $4)
      ON CONFLICT (scope, thread_id, kind, grantee) DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by,
        granted_at = excluded.granted_at WHERE excluded.access > there.access`,
  }
  const REMOVE_GIVEN = {
    text: `DELETE FROM ${grants} WHERE (scope, thread_id, kind, grantee) IN
      (SELECT scope, thread_id, kind, grantee FROM ${grants} WHERE granted_by = $1 LIMIT $2) RETURNING 1 AS done`,
  }
  const MOVE_SEEN = {
    text: `INSERT INTO ${observations} AS there (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
      SELECT scope, thread_id, $4, agent_id, first_used_at, last_used_at, ran
        FROM ${ASKED} JOIN ${observations} USING (scope, thread_id) WHERE user_id = $3
      ON CONFLICT (scope, thread_id, user_id) DO UPDATE SET first_used_at = least(there.first_used_at, excluded.first_used_at),
        last_used_at = greatest(there.last_used_at, excluded.last_used_at), ran = there.ran OR excluded.ran,
        agent_id = CASE WHEN excluded.agent_id = '' OR (there.agent_id <> '' AND excluded.last_used_at <= there.last_used_at)
          THEN there.agent_id ELSE excluded.agent_id END`,
  }
  // Also where others ran it: two runners are a conflict, and forgetting one of them must not settle it.
  const BURY_SEEN = {
    text: `INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, created_at, last_used_at, deleted_at)
      SELECT scope, thread_id, '', agent_id, first_used_at, last_used_at, $4::bigint
        FROM ${ASKED} JOIN ${observations} USING (scope, thread_id) WHERE user_id = $3 AND ran
      ON CONFLICT (scope, thread_id) DO NOTHING`,
  }
  const REMOVE_SEEN = { text: `DELETE ${of(observations)} AND user_id = $3 RETURNING 1 AS done` }

  const step = (work: (queries: Queries) => Promise<number>): Promise<number> =>
    invalidations.change(async (queries, changed) => {
      const count = await work(queries)
      if (count > 0) changed(null)
      return count
    })
  /** At most `limit` threads with a grant to the user or an observation of the user, with their rows locked. */
  const find = async (queries: Queries, statement: { text: string }, { userId, scope }: Whose, limit: number) => {
    const keys = listsOf(await queries.query<ThreadKey>(statement, [userId, limit, scope]))
    await queries.query(LOCK, keys)
    return keys
  }

  return {
    transfer: (from, to, limit, scope) => {
      // No user owns an unowned thread, so no user can transfer it.
      if (from === to || from === NOBODY || to === NOBODY) return Promise.resolve(0)
      const whose = { userId: from, scope: scope ?? null }
      return step(async (queries) => {
        const moved = await queries.query<ThreadKey>(MOVE, [from, limit, whose.scope, to])
        await queries.query(REMOVE_GRANT, [...listsOf(moved), to])
        const received = await find(queries, RECEIVED, whose, limit - moved.length)
        await queries.query(MOVE_GRANT, [...received, from, to])
        const grantsMoved = (await queries.query(REMOVE_GRANT, [...received, from])).length
        const seen = await find(queries, SEEN, whose, limit - moved.length - grantsMoved)
        await queries.query(MOVE_SEEN, [...seen, from, to])
        return moved.length + grantsMoved + (await queries.query(REMOVE_SEEN, [...seen, from])).length
      })
    },
    erase: (userId, now, limit) => {
      if (userId === NOBODY) return Promise.resolve(0)
      const whose = { userId, scope: null }
      return step(async (queries) => {
        const buried = await queries.query<ThreadKey>(BURY, [userId, limit, null, now])
        await queries.query(REMOVE_GRANTS, listsOf(buried))
        let left = limit - buried.length
        left -= (await queries.query(REMOVE_GRANT, [...(await find(queries, RECEIVED, whose, left)), userId])).length
        left -= (await queries.query(REMOVE_GIVEN, [userId, left])).length
        const seen = await find(queries, SEEN, whose, left)
        await queries.query(BURY_SEEN, [...seen, userId, now])
        left -= (await queries.query(REMOVE_SEEN, [...seen, userId])).length
        return limit - left
      })
    },
  }
}
