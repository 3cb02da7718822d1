/** Stores what was seen under `enforcement: observe`, in PostgreSQL. */
import type { ObservationStore } from '../port/observations.ts'
import { isNoted, observationStatements, observedThreads } from '../sql/observations.ts'
import type { Dialect } from '../sql/statement.ts'
import { keysOf, run, type Database } from './database.ts'

export function observationsOn(database: Database, dialect: Dialect): ObservationStore {
  const { known, note, count, page, runs } = observationStatements(dialect)
  return {
    async observe(key, userId, agentId, use, now) {
      const values = { ...key, userId, agentId, now, ran: use === 'run' ? 1 : 0 } as const
      // Reading takes no lock, and most observations repeat a recent one.
      const [row] = await run(database, known, values)
      if (!isNoted(row, values)) await run(database, note, values)
    },
    unowned: () => database.transaction(async (queries) => (await run(queries, count()))[0]?.threads ?? 0, 'survey'),
    observed: (after, limit) =>
      database.transaction(async (queries) => {
        const keys = await run(queries, page(after), { ...after, limit })
        return observedThreads(keys, await run(queries, runs, keysOf(keys)))
      }, 'survey'),
  }
}
