/** Assigns and removes owners of threads, for operators, in the SQLite file. */
import type { AssignmentStore, AssignOutcome } from '../port/administration.ts'
import { NOBODY } from '../port/thread.ts'
import { assignmentStatements, assignOutcome } from '../sql/assignment.ts'
import { keyStatements } from '../sql/keys.ts'
import { keysOf, SQLITE } from './dialect.ts'
import type { SqliteInvalidations } from './invalidations.ts'

const ASSIGNMENT = assignmentStatements(SQLITE)
const KEYS = keyStatements(SQLITE)

export function assignmentIn(invalidations: SqliteInvalidations): AssignmentStore {
  return {
    assign: (key, to, now, expected) =>
      invalidations.write<AssignOutcome>((database) => {
        const row = database.get(ASSIGNMENT.row, { ...key })
        const result = assignOutcome(row, to, expected)
        if (result.outcome !== 'assigned') return { result, changed: 'nothing' }
        if (row === undefined) database.all(ASSIGNMENT.insert, { ...key, to, now })
        else database.run(ASSIGNMENT.give, { ...key, to })
        database.run(KEYS.removeGrants, keysOf([key]))
        database.all(KEYS.forget, keysOf([key]))
        return { result, changed: key }
      }),
    withhold: (key) =>
      invalidations.write((database) => {
        const row = database.get(ASSIGNMENT.row, { ...key })
        if (row === undefined || row.owner === NOBODY) return { result: row !== undefined, changed: 'nothing' }
        database.run(ASSIGNMENT.take, { ...key })
        database.run(KEYS.removeGrants, keysOf([key]))
        return { result: true, changed: key }
      }),
  }
}
