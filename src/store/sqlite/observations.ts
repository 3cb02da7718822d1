/** Stores what was seen under `enforcement: observe`, in the SQLite file. */
import type { ObservationStore, ObservedThread, ThreadKey } from '../port.ts'
import { sql, type Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { largest, smallest } from '../../core/json/extremes.ts'

const MINUTE = 60_000

const KNOWN = sql<{ last_used_at: number; ran: number }>(
  'SELECT last_used_at, ran FROM observations WHERE scope = :scope AND thread_id = :threadId AND user_id = :userId',
)
const NOTE = sql(
  `INSERT INTO observations (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
   SELECT :scope, :threadId, :userId, :agentId, :now, :now, :ran
   WHERE :ran = 1
     OR EXISTS (SELECT 1 FROM observations WHERE scope = :scope AND thread_id = :threadId AND ran = 1)
     OR EXISTS (SELECT 1 FROM threads WHERE scope = :scope AND thread_id = :threadId)
   ON CONFLICT DO UPDATE SET last_used_at = excluded.last_used_at, ran = max(ran, excluded.ran),
     agent_id = CASE WHEN excluded.agent_id = '' THEN agent_id ELSE excluded.agent_id END`,
)
const ANY = sql<{ there: 1 }>('SELECT 1 AS there FROM observations LIMIT 1')
// Rows of this thread or of the next one: rows are found and read either way, so the time reveals nothing.
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
const UNOWNED = `FROM observations AS seen WHERE ran = 1
  AND NOT EXISTS (SELECT 1 FROM threads WHERE scope = seen.scope AND thread_id = seen.thread_id)`
const COUNT = sql<{ threads: number; conflicts: number }>(
  `SELECT count(*) AS threads, coalesce(sum(users > 1), 0) AS conflicts
   FROM (SELECT count(*) AS users ${UNOWNED} AND (:scope IS NULL OR scope = :scope) GROUP BY scope, thread_id)`,
)
const PAGE = sql<ThreadKey>(
  `SELECT DISTINCT scope, thread_id AS threadId ${UNOWNED} AND (scope, thread_id) > (:scope, :threadId)
   ORDER BY scope, thread_id LIMIT :limit`,
)
const FIRST_PAGE = sql<ThreadKey>(
  `SELECT DISTINCT scope, thread_id AS threadId ${UNOWNED} ORDER BY scope, thread_id LIMIT :limit`,
)
const RUNS = sql<{ userId: string; agentId: string; firstUsedAt: number; lastUsedAt: number }>(
  `SELECT user_id AS userId, agent_id AS agentId, first_used_at AS firstUsedAt, last_used_at AS lastUsedAt FROM observations
   WHERE scope = :scope AND thread_id = :threadId AND ran = 1 ORDER BY first_used_at, user_id`,
)
const FORGET = sql('DELETE FROM observations WHERE scope = :scope AND thread_id = :threadId')

export function observationsIn(file: SqliteFile): ObservationStore {
  return {
    async observe(key, userId, agentId, ran, now) {
      const values = { ...key, userId, agentId, now, ran: ran ? 1 : 0 }
      // Reading needs no lock, and most observations repeat one from a moment ago.
      const row = await file.read((database) => database.get(KNOWN, values))
      if (row !== undefined && now - row.last_used_at < MINUTE && row.ran >= values.ran) return
      await file.write((database) => database.run(NOTE, values))
    },
    unowned: () => file.read((database) => countObserved(database).threads),
    observed: (after, limit) =>
      file.read((database) => {
        const page = after === null ? database.all(FIRST_PAGE, { limit }) : database.all(PAGE, { ...after, limit })
        return page.map((key) => observedThread(database, key))
      }),
  }
}

/** Who ran a thread, the first first. It takes as long for a thread that no user ran. */
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

/** Counts threads that were run and have no row, and those of them that several users ran; undefined: in all scopes. */
export function countObserved(database: Connection, scope?: string): { readonly threads: number; readonly conflicts: number } {
  return database.get(COUNT, { scope: scope ?? null }) ?? { threads: 0, conflicts: 0 }
}

export function forgetObservations(database: Connection, key: ThreadKey): number {
  return database.run(FORGET, { ...key })
}

function observedThread(database: Connection, key: ThreadKey): ObservedThread {
  const runs = database.all(RUNS, { ...key })
  return {
    ...key,
    runners: runs.map(({ userId }) => userId),
    agentId: runs[0]?.agentId ?? '',
    firstUsedAt: smallest(runs.map(({ firstUsedAt }) => firstUsedAt)),
    lastUsedAt: largest(runs.map(({ lastUsedAt }) => lastUsedAt)),
  }
}
