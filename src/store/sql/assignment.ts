/** Assigns and removes owners of threads, for operators. */
import type { AssignmentStore, AssignOutcome } from '../port/administration.ts'
import { NOBODY } from '../port/thread.ts'
import { all, type Engine } from './engine.ts'
import { keyStatements, ONE, sql, type Flag } from './statement.ts'

interface Assigned {
  readonly owner: string
  /** True for a live row without an unconfirmed run. */
  readonly settled: Flag
}

export function assignmentIn({ dialect, change, crossed }: Engine): AssignmentStore {
  const { threads, forUpdate, keysOf } = dialect
  const { removeGrants, forget } = keyStatements(dialect)
  const lock = sql<Assigned>(
    `SELECT user_id AS owner, deleted_at IS NULL AND NOT provisional AS settled FROM ${threads} WHERE ${ONE} ${forUpdate}`,
  )
  // A new incarnation: a run that registered earlier settles nothing after it.
  const give =
    sql(`UPDATE ${threads} SET user_id = :to, deleted_at = NULL, upstream_deleted = false, deletion = NULL, provisional = false, open_runs = 0,
        incarnation = incarnation + 1 WHERE ${ONE}`)
  const insert = sql<{ done: 1 }>(`INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, created_at, last_used_at)
      VALUES (:scope, :threadId, :to, '', :now, :now) ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`)
  // The run of a revival may have created the thread again at the upstream.
  const take =
    sql(`UPDATE ${threads} SET user_id = '', upstream_deleted = upstream_deleted AND NOT provisional, deletion = NULL, provisional = false, open_runs = 0,
        incarnation = incarnation + 1 WHERE ${ONE}`)
  return {
    assign: (key, to, now, expected) =>
      change(function* (changed) {
        const [row] = yield* all(lock, { ...key })
        const outcome = assignOutcome(row, to, expected)
        if (outcome.outcome !== 'assigned') return outcome
        if (row !== undefined) yield* all(give, { ...key, to })
        else if ((yield* all(insert, { ...key, to, now })).length === 0) throw crossed()
        yield* all(removeGrants, keysOf([key]))
        yield* all(forget, keysOf([key]))
        changed(key)
        return outcome
      }),
    withhold: (key) =>
      change(function* (changed) {
        const [row] = yield* all(lock, { ...key })
        if (row === undefined || row.owner === NOBODY) return row !== undefined
        yield* all(take, { ...key })
        yield* all(removeGrants, keysOf([key]))
        changed(key)
        return true
      }),
  }
}

/** For `assigned`, the caller must assign the thread. */
function assignOutcome(row: Assigned | undefined, to: string, expected: string | null | undefined): AssignOutcome {
  const owner = row?.owner ?? null
  if (expected !== undefined && expected !== owner) return { outcome: 'changed', owner }
  if (owner === to && Boolean(row?.settled)) return { outcome: 'same' }
  return { outcome: 'assigned', before: owner }
}
