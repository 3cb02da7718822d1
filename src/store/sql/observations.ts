/** Observations under `enforcement: observe`. */
import { nameOf } from '../access-cache.ts'
import type { UserData } from '../port/administration.ts'
import type { ObservationStore, ObservedThread } from '../port/observations.ts'
import type { ThreadKey } from '../port/thread.ts'
import { largest, smallest } from '../../core/json/extremes.ts'
import { all, type Engine, among, BY_KEY, inScope, KEY, ONE, sql, type Dialect, type Flag, type Sql } from './statement.ts'

const MINUTE = 60_000

export type Run = UserData['observed'][number] & { readonly userId: string }

interface Noted {
  readonly usedAt: number
  readonly ran: Flag
}

export function observationStatements(dialect: Dialect) {
  const { threads, observations } = dialect
  const unowned = `FROM ${observations} AS seen WHERE ran
    AND NOT EXISTS (SELECT 1 FROM ${threads} AS there WHERE there.scope = seen.scope AND there.thread_id = seen.thread_id)`
  return {
    known: {
      name: 'observed',
      ...sql<Noted>(`SELECT last_used_at AS "usedAt", ran FROM ${observations} WHERE ${ONE} AND user_id = :userId`),
    },
    note: {
      name: 'observe',
      ...sql(`INSERT INTO ${observations} AS there (scope, thread_id, user_id, agent_id, first_used_at, last_used_at, ran)
        SELECT :scope, :threadId, :userId, :agentId, CAST(:now AS bigint), CAST(:now AS bigint), CAST(:ran AS boolean)
        WHERE CAST(:ran AS boolean) OR EXISTS (SELECT 1 FROM ${observations} WHERE ${ONE} AND ran)
          OR EXISTS (SELECT 1 FROM ${threads} WHERE ${ONE})
        ON CONFLICT (scope, thread_id, user_id) DO UPDATE SET last_used_at = excluded.last_used_at, ran = there.ran OR excluded.ran,
          agent_id = CASE WHEN excluded.agent_id = '' THEN there.agent_id ELSE excluded.agent_id END`),
    },
    /** Threads that were run and have no row, and how many of them several users ran. */
    count: (scope?: string): Sql<{ threads: number; conflicts: number }> =>
      sql(`SELECT count(*) AS threads, count(*) FILTER (WHERE users > 1) AS conflicts
        FROM (SELECT count(*) AS users ${unowned} ${inScope(scope)} GROUP BY scope, thread_id) AS counted`),
    page: (after: ThreadKey | null): Sql<ThreadKey> =>
      sql(`SELECT DISTINCT ${KEY} ${unowned} ${after === null ? '' : 'AND (scope, thread_id) > (:scope, :threadId)'}
        ${BY_KEY} LIMIT :limit`),
    runs: sql<Run>(`SELECT ${KEY}, user_id AS "userId", agent_id AS "agentId", first_used_at AS "firstUsedAt",
        last_used_at AS "lastUsedAt" FROM ${observations} WHERE ${among(dialect)} AND ran ORDER BY first_used_at, user_id`),
  }
}

export function observationsIn({ dialect, read, write }: Engine): ObservationStore {
  const { known, note, count, page, runs } = observationStatements(dialect)
  return {
    async observe(key, userId, agentId, use, now) {
      const values = { ...key, userId, agentId, now, ran: use === 'run' ? 1 : 0 } as const
      // Reading takes no lock, and most observations repeat a recent one.
      const [row] = await read('statement', () => all(known, values))
      const isNoted = row !== undefined && now - row.usedAt < MINUTE && Number(row.ran) >= values.ran
      if (!isNoted) await write('statement', () => all(note, values))
    },
    unowned: async () => (await read('survey', () => all(count())))[0]?.threads ?? 0,
    observed: (after, limit) =>
      read('survey', function* () {
        const keys = yield* all(page(after), { ...after, limit })
        return observedThreads(keys, yield* all(runs, dialect.keysOf(keys)))
      }),
  }
}

function observedThreads(keys: readonly ThreadKey[], runs: readonly Run[]): readonly ObservedThread[] {
  const byThread = Map.groupBy(runs, nameOf)
  return keys.map((key) => {
    const all = byThread.get(nameOf(key)) ?? []
    return {
      ...key,
      runners: all.map(({ userId }) => userId),
      agentId: all[0]?.agentId ?? '',
      firstUsedAt: smallest(all.map(({ firstUsedAt }) => firstUsedAt)),
      lastUsedAt: largest(all.map(({ lastUsedAt }) => lastUsedAt)),
    }
  })
}
