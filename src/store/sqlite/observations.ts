/** Reads for decisions who was seen on a thread under `enforcement: observe`. */
import type { ThreadKey } from '../port/thread.ts'
import { sql } from '../sql/statement.ts'
import type { Connection } from './connection.ts'

const ANY = sql<{ there: 1 }>('SELECT 1 AS there FROM observations LIMIT 1')
// The rows of this thread or of the next one, so that the time reveals nothing.
const NEAREST = sql<{ thread_id: string; user_id: string; ran: number }>(
  `SELECT thread_id, user_id, ran FROM observations
   WHERE scope = :scope AND thread_id =
     (SELECT thread_id FROM observations WHERE scope = :scope AND thread_id >= :threadId ORDER BY thread_id LIMIT 1)
   ORDER BY first_used_at, user_id`,
)
const OF_SEVERAL = sql<{ thread_id: string; user_id: string }>(
  `SELECT thread_id, user_id FROM observations
   WHERE scope = :scope AND thread_id IN (SELECT value FROM json_each(:threadIds)) AND ran = 1
   ORDER BY first_used_at, user_id`,
)

/** Earliest first. Takes as long for a thread that no user ran. */
export function runnersOf(database: Connection, key: ThreadKey): readonly string[] {
  // Most stores have no observations; then each thread costs only this query.
  if (database.get(ANY) === undefined) return []
  const rows = database.all(NEAREST, { ...key })
  return rows.filter((row) => row.thread_id === key.threadId && row.ran === 1).map((row) => row.user_id)
}

/** @param threadIds a JSON list */
export function runnersOfSeveral(database: Connection, scope: string, threadIds: string): ReadonlyMap<string, readonly string[]> {
  const runners = new Map<string, string[]>()
  if (database.get(ANY) === undefined) return runners
  for (const { thread_id: id, user_id: user } of database.all(OF_SEVERAL, { scope, threadIds })) {
    runners.set(id, [...(runners.get(id) ?? []), user])
  }
  return runners
}
