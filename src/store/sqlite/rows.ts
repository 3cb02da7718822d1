/** Reads the SQLite file for operators: whole rows, statistics, and all data of a user. */
import type { RowStore, UserStore } from '../port/administration.ts'
import { pageValues, rowOf, rowStatements, statsOf } from '../sql/rows.ts'
import { revocationOf } from '../sql/revocations.ts'
import { SQLITE } from './dialect.ts'
import type { SqliteFile } from './file.ts'
import { grantsOf } from './grants.ts'
import { OBSERVATIONS, runnersOf } from './observations.ts'
import { REVOCATIONS } from './revocations.ts'

const ROWS = rowStatements(SQLITE)

export function rowsIn(file: SqliteFile): RowStore & Pick<UserStore, 'userData'> {
  return {
    thread: (key) =>
      file.read((database) => {
        const row = database.get(ROWS.one, { ...key })
        const runners = runnersOf(database, key)
        if (row === undefined && runners.length === 0) return null
        return { row: row === undefined ? null : rowOf(row), grants: grantsOf(database, key), runners }
      }),
    threads: (filter, after, limit) =>
      file.read((database) => database.all(ROWS.page(filter, after), pageValues(filter, after, limit)).map(rowOf)),
    stats: (scope) =>
      file.read((database) => {
        const values = { scope: scope ?? null }
        return statsOf(database.get(ROWS.counts(scope), values), database.get(OBSERVATIONS.count(scope), values))
      }),
    userData: (userId) =>
      file.read((database) => ({
        threads: database.all(ROWS.ofOwner, { userId }).map(rowOf),
        granted: database.all(ROWS.given, { userId }),
        received: database.all(ROWS.received, { userId }),
        observed: database.all(ROWS.seen, { userId }),
        revocations: database.all(REVOCATIONS.ofUser, { userId }).map(revocationOf),
      })),
  }
}
