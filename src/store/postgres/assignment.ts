/** Gives threads an owner or takes it away, for operators, in PostgreSQL. */
import { Crossed } from '../../postgres/pool.ts'
import { NOBODY, type ThreadAdministration } from '../port.ts'
import type { Tables } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

const WHERE = 'WHERE scope = $1 AND thread_id = $2'

interface Row {
  readonly owner: string
  /** True for a live row without a pending run. */
  readonly settled: boolean
}

export function assignmentOn(
  { threads, grants, observations }: Tables,
  invalidations: PostgresInvalidations,
): Pick<ThreadAdministration, 'assign' | 'withhold'> {
  const LOCK = {
    text: `SELECT user_id AS owner, deleted_at IS NULL AND NOT provisional AS settled FROM ${threads} ${WHERE} FOR UPDATE`,
  }
  // A new life: a run that registered earlier settles nothing after it.
  const GIVE = {
    text: `UPDATE ${threads} SET user_id = $3, deleted_at = NULL, gone = false, deletion = NULL, provisional = false, pending = 0,
        life = life + 1
      ${WHERE}`,
  }
  const INSERT = {
    text: `INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, created_at, last_used_at)
      VALUES ($1, $2, $3, '', $4, $4) ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`,
  }
  // The run of a revival may have created the thread again at the upstream.
  const TAKE = {
    text: `UPDATE ${threads} SET user_id = '', gone = gone AND NOT provisional, deletion = NULL, provisional = false, pending = 0,
        life = life + 1 ${WHERE}`,
  }
  const REMOVE_GRANTS = { text: `DELETE FROM ${grants} ${WHERE}` }
  const FORGET = { text: `DELETE FROM ${observations} ${WHERE}` }
  return {
    assign: (key, to, now, expected) =>
      invalidations.change(async (queries, changed) => {
        const one = [key.scope, key.threadId]
        const [row] = await queries.query<Row>(LOCK, one)
        const owner = row?.owner ?? null
        if (expected !== undefined && expected !== owner) return { outcome: 'changed', owner }
        if (owner === to && row?.settled === true) return { outcome: 'same' }
        if (row !== undefined) await queries.query(GIVE, [...one, to])
        // Another request has claimed it since the look-up.
        else if ((await queries.query(INSERT, [...one, to, now])).length === 0) throw new Crossed()
        await queries.query(REMOVE_GRANTS, one)
        await queries.query(FORGET, one)
        changed([key])
        return { outcome: 'assigned', before: owner }
      }),
    withhold: (key) =>
      invalidations.change(async (queries, changed) => {
        const one = [key.scope, key.threadId]
        const [row] = await queries.query<Row>(LOCK, one)
        if (row === undefined || row.owner === NOBODY) return row !== undefined
        await queries.query(TAKE, one)
        await queries.query(REMOVE_GRANTS, one)
        changed([key])
        return true
      }),
  }
}
