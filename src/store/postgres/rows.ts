/** Reads PostgreSQL for operators: whole rows, statistics, and all data of a user. */
import type { RowStore, UserStore } from '../port/administration.ts'
import { grantStatements } from '../sql/grants.ts'
import { observationStatements } from '../sql/observations.ts'
import { revocationOf, revocationStatements } from '../sql/revocations.ts'
import { pageValues, rowOf, rowStatements, statsOf } from '../sql/rows.ts'
import type { Dialect } from '../sql/statement.ts'
import { keysOf, run, type Database } from './database.ts'

export function rowsOn(database: Database, dialect: Dialect): RowStore & Pick<UserStore, 'userData'> {
  const rows = rowStatements(dialect)
  const observed = observationStatements(dialect)
  const { ofThread } = grantStatements(dialect, dialect.grants)
  const { ofUser } = revocationStatements(dialect)
  return {
    thread: (key) =>
      database.transaction(async (queries) => {
        const [row] = await run(queries, rows.one, { ...key })
        const runners = (await run(queries, observed.runs, keysOf([key]))).map(({ userId }) => userId)
        if (row === undefined && runners.length === 0) return null
        return { row: row === undefined ? null : rowOf(row), grants: await run(queries, ofThread, { ...key }), runners }
      }, 'snapshot'),
    threads: (filter, after, limit) =>
      database.transaction(
        async (queries) => (await run(queries, rows.page(filter, after), pageValues(filter, after, limit))).map(rowOf),
        'survey',
      ),
    stats: (scope) =>
      database.transaction(async (queries) => {
        const [counts] = await run(queries, rows.counts(scope), { scope })
        const [seen] = await run(queries, observed.count(scope), { scope })
        return statsOf(counts, seen)
      }, 'survey'),
    userData: (userId) =>
      database.transaction(
        async (queries) => ({
          threads: (await run(queries, rows.ofOwner, { userId })).map(rowOf),
          granted: await run(queries, rows.given, { userId }),
          received: await run(queries, rows.received, { userId }),
          observed: await run(queries, rows.seen, { userId }),
          revocations: (await run(queries, ofUser, { userId })).map(revocationOf),
        }),
        'survey',
      ),
  }
}
