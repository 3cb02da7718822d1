/** Stores revocations in the SQLite file of the threads. */
import type { RevocationStore } from '../port/revocations.ts'
import { keyOf, revocationOf, revocationStatements, valuesOf } from '../sql/revocations.ts'
import { sql } from '../sql/statement.ts'
import { SQLITE } from './dialect.ts'
import type { SqliteFile } from './file.ts'

export const REVOCATIONS = revocationStatements(SQLITE)
const VERSION = sql<{ value: number }>("SELECT value FROM versions WHERE name = 'revocations'")

export function revocationsIn(file: SqliteFile): RevocationStore {
  return {
    revoke: (revocation) =>
      file.write((database) => {
        database.run(REVOCATIONS.upsert, valuesOf(revocation))
        database.run(REVOCATIONS.next)
      }),
    lift: (what) =>
      file.write((database) => {
        const lifted = database.all(REVOCATIONS.remove, { ...keyOf(what) }).length > 0
        if (lifted) database.run(REVOCATIONS.next)
        return lifted
      }),
    revocations: () => file.read((database) => database.all(REVOCATIONS.all).map(revocationOf)),
    revocationsVersion: () =>
      file.read((database) => {
        const row = database.get(VERSION)
        if (row === undefined) throw new Error('the version of the revocations is missing')
        return row.value
      }),
  }
}
