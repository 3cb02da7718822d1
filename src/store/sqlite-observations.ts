/** What was seen under `enforcement: observe`, in the SQLite file. */
import type { ObservationStore } from './port.ts'
import type { SqliteFile } from './sqlite-file.ts'

const MINUTE = 60_000

/** Makes the part of the store that holds observations. */
export function observationsIn(file: SqliteFile): ObservationStore {
  const { database } = file
  const note = database.prepare<object>(
    `INSERT INTO observations (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
     SELECT :scope, :threadId, :userId, :agentId, :now, :now, :ran
     WHERE :ran = 1
       OR EXISTS (SELECT 1 FROM observations WHERE scope = :scope AND thread_id = :threadId AND ran = 1)
       OR EXISTS (SELECT 1 FROM threads WHERE scope = :scope AND thread_id = :threadId)
     ON CONFLICT DO UPDATE SET last_used_at = excluded.last_used_at, ran = max(ran, excluded.ran),
       agent_id = CASE WHEN excluded.agent_id = '' THEN agent_id ELSE excluded.agent_id END`,
  )
  const known = database.prepare<object, { last_used_at: number; ran: number }>(
    'SELECT last_used_at, ran FROM observations WHERE scope = :scope AND thread_id = :threadId AND user_id = :userId',
  )
  const ran = database.prepare<[string, string], { thread_id: string; user_id: string }>(
    `SELECT thread_id, user_id FROM observations
     WHERE scope = ? AND thread_id IN (SELECT value FROM json_each(?)) AND ran = 1
     ORDER BY first_used_at, user_id`,
  )
  const any = database.prepare('SELECT 1 FROM observations LIMIT 1')
  const unowned = database.prepare<[], { threads: number }>(
    `SELECT count(DISTINCT scope || '/' || thread_id) AS threads FROM observations AS seen
     WHERE ran = 1 AND NOT EXISTS (SELECT 1 FROM threads WHERE scope = seen.scope AND thread_id = seen.thread_id)`,
  )
  return {
    observe(key, userId, agentId, ran, now) {
      const values = { ...key, userId, agentId, now, ran: ran ? 1 : 0 }
      const isNoted = (): boolean => {
        const row = known.get({ ...key, userId })
        return row !== undefined && now - row.last_used_at < MINUTE && row.ran >= values.ran
      }
      // Reading needs no lock, and most of what is seen was seen a moment ago.
      return file.guard(isNoted).then((noted) => (noted ? undefined : file.guardLocked(() => void note.run(values))))
    },
    runners: (scope, threadIds) =>
      file.guard(() => {
        const runners = new Map<string, string[]>()
        // Most stores have none, and then no thread costs more than this.
        if (any.get() === undefined) return runners
        for (const { thread_id: id, user_id: user } of ran.all(scope, JSON.stringify(threadIds))) {
          runners.set(id, [...(runners.get(id) ?? []), user])
        }
        return runners
      }),
    unowned: () => file.guard(() => unowned.get()?.threads ?? 0),
  }
}
