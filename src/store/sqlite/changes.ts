/**
 * Numbers the last access changes in the file, so that other processes learn which threads changed.
 * A change of many threads or by an older program has no row: any thread may have changed then.
 */
import type { ThreadKey } from '../port/thread.ts'
import { sql } from '../sql/statement.ts'
import type { Connection } from './connection.ts'

export type Changed = ThreadKey | 'many' | 'nothing'

export interface NumberedChange {
  readonly number: number
  readonly key: ThreadKey
}

const KEPT = 256

const NUMBER = sql<{ value: number }>("SELECT value FROM versions WHERE name = 'standing'")
const NEXT = sql<{ value: number }>("UPDATE versions SET value = value + 1 WHERE name = 'standing' RETURNING value")
const PUT = sql(
  `INSERT INTO standing_changes (number, scope, thread_id) VALUES (:number, :scope, :threadId)
   ON CONFLICT DO UPDATE SET scope = excluded.scope, thread_id = excluded.thread_id`,
)
const PRUNE = sql('DELETE FROM standing_changes WHERE number <= :number')
const BETWEEN = sql<ThreadKey & { number: number }>(
  `SELECT number, scope, thread_id AS threadId FROM standing_changes WHERE number > :after AND number <= :number ORDER BY number`,
)

export function countChanges(database: Connection): number {
  return counted(database.get(NUMBER))
}

/** Call it last in a step: all changes share this row. @returns the number of the change */
export function noteChange(database: Connection, changed: ThreadKey | 'many'): number {
  const number = counted(database.get(NEXT))
  if (changed !== 'many') database.run(PUT, { number, scope: changed.scope, threadId: changed.threadId })
  database.run(PRUNE, { number: number - KEPT })
  return number
}

/** @returns null if any thread may have changed: a change is missing, or there are too many */
export function changesBetween(database: Connection, after: number, number: number): readonly NumberedChange[] | null {
  if (number < after || number - after > KEPT) return null
  if (number === after) return []
  const rows = database.all(BETWEEN, { after, number })
  return rows.length === number - after ? rows.map(({ number: its, ...key }) => ({ number: its, key })) : null
}

function counted(row: { readonly value: number } | undefined): number {
  if (row === undefined) throw new Error('the count of access changes is missing')
  return row.value
}
