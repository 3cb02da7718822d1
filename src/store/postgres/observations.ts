/** Stores what was seen under `enforcement: observe`, in PostgreSQL. */
import type { ObservationStore, ObservedThread } from '../port.ts'
import type { Database, Tables } from './database.ts'

const MINUTE = 60_000

/** Who ran a thread ($1 scope, $2 id), the first first. */
export function runnersText(observations: string): string {
  return `SELECT user_id AS "userId" FROM ${observations} WHERE scope = $1 AND thread_id = $2 AND ran
    ORDER BY first_used_at, user_id`
}

/** How many threads were run and have no row, and how many of them several users ran ($1 scope; null: all). */
export function observedCountText({ threads, observations }: Tables): string {
  return `SELECT count(*) AS threads, count(*) FILTER (WHERE users > 1) AS conflicts
    FROM (SELECT count(*) AS users ${unowned(threads, observations)}
      AND ($1::text IS NULL OR scope = $1) GROUP BY scope, thread_id) AS each`
}

export function observationsOn(database: Database, tables: Tables): ObservationStore {
  const { threads, observations } = tables
  const KNOWN = {
    name: 'observed',
    text: `SELECT last_used_at AS "usedAt", ran FROM ${observations} WHERE scope = $1 AND thread_id = $2 AND user_id = $3`,
  }
  const NOTE = {
    name: 'observe',
    text: `INSERT INTO ${observations} AS there (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
      SELECT $1, $2, $3, $4, $5::bigint, $5::bigint, $6::boolean
      WHERE $6 OR EXISTS (SELECT FROM ${observations} WHERE scope = $1 AND thread_id = $2 AND ran)
        OR EXISTS (SELECT FROM ${threads} WHERE scope = $1 AND thread_id = $2)
      ON CONFLICT (scope, thread_id, user_id) DO UPDATE SET last_used_at = excluded.last_used_at, ran = there.ran OR excluded.ran,
        agent_id = CASE WHEN excluded.agent_id = '' THEN there.agent_id ELSE excluded.agent_id END`,
  }
  const COUNT = { text: observedCountText(tables) }
  const PAGE = {
    text: `SELECT scope, thread_id AS "threadId", array_agg(user_id ORDER BY first_used_at, user_id) AS runners,
        (array_agg(agent_id ORDER BY first_used_at, user_id))[1] AS "agentId",
        min(first_used_at) AS "firstUsedAt", max(last_used_at) AS "lastUsedAt"
      ${unowned(threads, observations)} AND ($1::text IS NULL OR (scope, thread_id) > ($1, $2))
      GROUP BY scope, thread_id ORDER BY scope, thread_id LIMIT $3`,
  }
  return {
    async observe({ scope, threadId }, userId, agentId, ran, now) {
      const one = [scope, threadId, userId]
      // Reading takes no lock, and most observations repeat one from a moment ago.
      const [row] = await database.query<{ usedAt: number; ran: boolean }>(KNOWN, one)
      if (row !== undefined && now - row.usedAt < MINUTE && (row.ran || !ran)) return
      await database.query(NOTE, [...one, agentId, now, ran])
    },
    unowned: () =>
      database.transaction(
        async (queries) => (await queries.query<{ threads: number }>(COUNT, [null]))[0]?.threads ?? 0,
        'survey',
      ),
    observed: (after, limit) =>
      database.transaction(
        (queries) => queries.query<ObservedThread>(PAGE, [after?.scope ?? null, after?.threadId ?? null, limit]),
        'survey',
      ),
  }
}

function unowned(threads: string, observations: string): string {
  return `FROM ${observations} AS seen WHERE ran
    AND NOT EXISTS (SELECT FROM ${threads} WHERE scope = seen.scope AND thread_id = seen.thread_id)`
}
