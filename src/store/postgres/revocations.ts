/** Stores revocations in PostgreSQL. */
import type { Queries } from '../../postgres/pool.ts'
import type { RevocationStore } from '../port/revocations.ts'
import { StoreUnavailable } from '../port/state.ts'
import { keyOf, revocationOf, revocationStatements, valuesOf } from '../sql/revocations.ts'
import type { Dialect } from '../sql/statement.ts'
import { run, type Database } from './database.ts'
import type { SchemaIdentity } from './schema-identity.ts'

/** Rejects if another schema than the opened one answers: an empty one revokes nothing. `made`: SQL for its creation time. */
export function revocationsOn(database: Database, dialect: Dialect, made: string, identity: SchemaIdentity): RevocationStore {
  const { upsert, remove, next, all } = revocationStatements(dialect)
  const version = {
    name: 'revocations-version',
    text: `SELECT value, ${made} AS made FROM ${dialect.versions} WHERE name = 'revocations'`,
  }
  const versionIn = async (queries: Queries): Promise<number> => {
    const [row] = await queries.query<{ value: number; made: number | null }>(version)
    identity.note(row?.made ?? null)
    const fault = identity.fault()
    if (row === undefined || fault !== null) {
      throw new StoreUnavailable(`the ownership store failed: ${fault ?? 'the version of the revocations is missing'}`)
    }
    return row.value
  }
  return {
    revoke: (revocation) =>
      database.transaction(async (queries) => {
        await run(queries, upsert, valuesOf(revocation))
        await run(queries, next)
      }),
    lift: (what) =>
      database.transaction(async (queries) => {
        const lifted = (await run(queries, remove, { ...keyOf(what) })).length > 0
        if (lifted) await run(queries, next)
        return lifted
      }),
    revocations: () =>
      database.transaction(async (queries) => {
        await versionIn(queries)
        return (await run(queries, all)).map(revocationOf)
      }, 'snapshot'),
    revocationsVersion: () => versionIn(database),
  }
}
