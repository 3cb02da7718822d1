/** Stores grants in PostgreSQL. */
import { BY_OPERATOR } from '../../core/decide/sharing.ts'
import type { GrantStore } from '../port/grants.ts'
import { grantOutcome, grantStatements, isOwnedBy } from '../sql/grants.ts'
import type { Dialect } from '../sql/statement.ts'
import { run, type Database } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

export function grantsOn(database: Database, dialect: Dialect, invalidations: PostgresInvalidations): GrantStore {
  const grants = grantStatements(dialect, dialect.grants)
  return {
    grants: (key, owner) =>
      database.transaction(async (queries) => {
        const [row] = await run(queries, grants.owner, { ...key })
        return isOwnedBy(row, owner) ? run(queries, grants.ofThread, { ...key }) : null
      }, 'snapshot'),
    grant: (key, owner, grant) =>
      invalidations.change(async (queries, changed) => {
        const [row] = await run(queries, grants.lock, { ...key })
        if (!isOwnedBy(row, owner)) return 'not-owner'
        const values = { ...key, ...grant, operator: BY_OPERATOR }
        const [survey] = await run(queries, grants.survey, values)
        const outcome = grantOutcome(survey, grant)
        if (outcome !== 'done') return outcome
        await run(queries, grants.put, values)
        changed([key])
        return outcome
      }),
    ungrant: (key, owner, grantee) =>
      invalidations.change(async (queries, changed) => {
        const [row] = await run(queries, grants.lock, { ...key })
        if (!isOwnedBy(row, owner)) return 'not-owner'
        const removed = await run(queries, grants.remove, { ...key, ...grantee })
        if (removed.length === 0) return 'unchanged'
        changed([key])
        return 'done'
      }),
    grantedTo: (grantee, after, limit) => run(database, grants.to(after), { ...grantee, ...after, limit }),
  }
}
