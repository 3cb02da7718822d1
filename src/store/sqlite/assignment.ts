/** Gives threads an owner or takes it away, for operators, in the SQLite file. */
import { NOBODY, type AssignOutcome, type ThreadAdministration, type ThreadKey } from '../port.ts'
import { sql, type Connection } from './connection.ts'
import { removeGrants } from './grants.ts'
import type { Changed, SqliteInvalidations } from './invalidations.ts'
import { forgetObservations } from './observations.ts'

const WHERE = 'WHERE scope = :scope AND thread_id = :threadId'
const ROW = sql<{ user_id: string; deleted_at: number | null; provisional: number }>(
  `SELECT user_id, deleted_at, provisional FROM threads ${WHERE}`,
)
// A new life: a run that registered earlier settles nothing after it.
const GIVE = sql(
  `UPDATE threads SET user_id = :to, deleted_at = NULL, gone = 0, deletion = NULL, provisional = 0, pending = 0, life = life + 1
   ${WHERE}`,
)
const INSERT = sql(
  `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at)
   VALUES (:scope, :threadId, :to, '', :now, :now)`,
)
// The run of a revival may have created the thread again at the upstream.
const TAKE = sql(
  `UPDATE threads SET user_id = '', gone = gone AND provisional = 0, deletion = NULL, provisional = 0, pending = 0, life = life + 1
   ${WHERE}`,
)

export function assignmentIn(invalidations: SqliteInvalidations): Pick<ThreadAdministration, 'assign' | 'withhold'> {
  return {
    assign: (key, to, now, expected) =>
      invalidations.write((database) => {
        const result = assign(database, key, to, now, expected)
        return { result, changed: result.outcome === 'assigned' ? key : 'nothing' }
      }),
    withhold: (key) => invalidations.write((database) => withhold(database, key)),
  }
}

function assign(database: Connection, key: ThreadKey, to: string, now: number, expected?: string | null): AssignOutcome {
  const row = database.get(ROW, { ...key })
  const owner = row?.user_id ?? null
  if (expected !== undefined && expected !== owner) return { outcome: 'changed', owner }
  if (owner === to && row?.deleted_at === null && row.provisional === 0) return { outcome: 'same' }
  database.run(row === undefined ? INSERT : GIVE, { ...key, to, now })
  removeGrants(database, key)
  forgetObservations(database, key)
  return { outcome: 'assigned', before: owner }
}

function withhold(database: Connection, key: ThreadKey): { readonly result: boolean; readonly changed: Changed } {
  const owner = database.get(ROW, { ...key })?.user_id
  if (owner === undefined) return { result: false, changed: 'nothing' }
  if (owner === NOBODY) return { result: true, changed: 'nothing' }
  database.run(TAKE, { ...key })
  removeGrants(database, key)
  return { result: true, changed: key }
}
