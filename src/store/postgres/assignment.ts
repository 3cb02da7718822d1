/** Gives threads an owner or takes it away, for operators, in PostgreSQL. */
import { Crossed } from '../../postgres/pool.ts'
import type { AssignmentStore } from '../port/administration.ts'
import { NOBODY } from '../port/thread.ts'
import { assignmentStatements, assignOutcome } from '../sql/assignment.ts'
import { keyStatements } from '../sql/keys.ts'
import type { Dialect } from '../sql/statement.ts'
import { keysOf, run } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

export function assignmentOn(dialect: Dialect, invalidations: PostgresInvalidations): AssignmentStore {
  const { row: lock, give, insert, take } = assignmentStatements(dialect)
  const { removeGrants, forget } = keyStatements(dialect)
  return {
    assign: (key, to, now, expected) =>
      invalidations.change(async (queries, changed) => {
        const [row] = await run(queries, lock, { ...key })
        const outcome = assignOutcome(row, to, expected)
        if (outcome.outcome !== 'assigned') return outcome
        if (row !== undefined) await run(queries, give, { ...key, to })
        // Another request has claimed it since the look-up.
        else if ((await run(queries, insert, { ...key, to, now })).length === 0) throw new Crossed()
        await run(queries, removeGrants, keysOf([key]))
        await run(queries, forget, keysOf([key]))
        changed([key])
        return outcome
      }),
    withhold: (key) =>
      invalidations.change(async (queries, changed) => {
        const [row] = await run(queries, lock, { ...key })
        if (row === undefined || row.owner === NOBODY) return row !== undefined
        await run(queries, take, { ...key })
        await run(queries, removeGrants, keysOf([key]))
        changed([key])
        return true
      }),
  }
}
