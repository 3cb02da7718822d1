/**
 * Administration is written once for both engines, as generators: each yields a statement and continues with its rows.
 * SQLite runs one without a pause, because no request may use its connection during a transaction. PostgreSQL awaits each.
 */
import type { ThreadKey } from '../port/thread.ts'
import type { Dialect, Query, Sql, Values } from './statement.ts'

export type Work<T> = Generator<Query, T, readonly object[]>

export interface Engine {
  readonly dialect: Dialect
  /** `statement` is a single one. The others read one state of the data; a `survey` may take minutes. */
  readonly read: <T>(kind: 'statement' | 'snapshot' | 'survey', work: () => Work<T>) => Promise<T>
  /** May run the work several times; only its last run has an effect. */
  readonly write: <T>(kind: 'statement' | 'transaction', work: () => Work<T>) => Promise<T>
  /** A transaction that may change access: `changed` names the thread, or null for many. */
  readonly change: <T>(work: (changed: (key: ThreadKey | null) => void) => Work<T>) => Promise<T>
  /** For a transaction: another request has claimed a row since the look-up, so the transaction must be repeated. */
  readonly crossed: () => Error
  /** @throws StoreUnavailable if another store than the opened one answered `Dialect.made` */
  readonly requireSame: (made: number | null) => void
}

export function* all<Row extends object>(sql: Sql<Row>, values: Values = {}): Work<readonly Row[]> {
  return (yield { sql, values }) as readonly Row[]
}
