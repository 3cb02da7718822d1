/** SQL that the engines share, and what an engine is asked for. Values are bound by name, as `:name`. */
import type { ImportedThread } from '../port/administration.ts'
import type { ThreadKey } from '../port/thread.ts'

export interface Sql<Row> {
  readonly text: string
  /** PostgreSQL prepares a named statement once on each connection. */
  readonly name?: string
  /** Always undefined: it carries the row type. */
  readonly row?: Row
}

/** By name. A statement ignores names that it does not use. Only PostgreSQL binds lists. */
export type Values = Readonly<Record<string, string | number | null | readonly (string | number | boolean | null)[]>>

export interface Query<Row extends object = object> {
  readonly sql: Sql<Row>
  readonly values: Values
}

export interface Tables {
  readonly threads: string
  readonly grants: string
  readonly observations: string
  readonly revocations: string
  readonly versions: string
  readonly secrets: string
}

/** Where the engines' SQL differs. Booleans are bound as 0 and 1, and come back as the engine has them. */
export interface Dialect extends Tables {
  /** A table `asked (scope, thread_id)` of the keys that `keysOf` binds. */
  readonly asked: string
  readonly keysOf: (keys: readonly ThreadKey[]) => Values
  /** Adds rows that are missing; a row comes back for each. */
  readonly insertionOf: (rows: readonly ImportedThread[]) => readonly Query<{ readonly done: 1 }>[]
  /** `grants`, read by its index of grantees. */
  readonly grantsByGrantee: string
  /** Ends a SELECT whose rows no other transaction may change before this one ends. */
  readonly forUpdate: string
  /** Locks the rows of the keys that `keysOf` binds; null where `forUpdate` needs nothing, either. */
  readonly lockRows: Sql<{ readonly locked: 1 }> | null
  /** The condition of the index of tombstones that may be deleted by age. */
  readonly isUpstreamDeleted: string
  /** The condition of the index of unconfirmed claims. */
  readonly isUnconfirmed: string
  readonly larger: string
  readonly smaller: string
  /** When the store was created, in milliseconds since the epoch; null where nothing else can answer. */
  readonly made: string
}

export type Flag = boolean | 0 | 1

export function sql<Row = never>(text: string): Sql<Row> {
  return { text }
}

export const ONE = 'scope = :scope AND thread_id = :threadId'
export const KEY = 'scope, thread_id AS "threadId"'
export const BY_KEY = 'ORDER BY scope, thread_id'

export function among({ asked }: Dialect): string {
  return `(scope, thread_id) IN (SELECT scope, thread_id FROM ${asked})`
}

export function keyStatements(dialect: Dialect) {
  const these = among(dialect)
  return {
    removeThreads: sql(`DELETE FROM ${dialect.threads} WHERE ${these}`),
    removeGrants: sql(`DELETE FROM ${dialect.grants} WHERE ${these}`),
    /** An operator has decided: observations of the threads no longer count. */
    forget: sql<{ done: 1 }>(`DELETE FROM ${dialect.observations} WHERE ${these} RETURNING 1 AS done`),
  }
}

/** No condition without a scope: a planner would not use an index for an optional condition. */
export function inScope(scope: string | undefined): string {
  return scope === undefined ? '' : 'AND scope = :scope'
}

/** Goes from scope to scope by the primary key: of millions of rows it reads one per scope. */
export function scopesText(threads: string): string {
  return `WITH RECURSIVE scopes (scope) AS (SELECT min(scope) FROM ${threads}
    UNION ALL SELECT (SELECT min(scope) FROM ${threads} WHERE scope > scopes.scope) FROM scopes WHERE scope IS NOT NULL)
    SELECT scope FROM scopes WHERE scope IS NOT NULL`
}

/** `asked` is a query for `thread_id`, the listed ids; `scope` is how the engine binds it. */
export function lookupText(
  { threads, observations }: Pick<Tables, 'threads' | 'observations'>,
  { asked, scope }: { readonly asked: string; readonly scope: string },
): string {
  return `SELECT asked.thread_id AS "threadId",
    EXISTS (SELECT 1 FROM ${threads} AS there WHERE there.scope = ${scope} AND there.thread_id = asked.thread_id) AS "hasRow",
    (SELECT count(*) FROM ${observations} AS seen
      WHERE seen.scope = ${scope} AND seen.thread_id = asked.thread_id AND seen.ran) AS runners
    FROM (${asked}) AS asked`
}

/**
 * The administration is written once, as generators: each yields a statement and continues with its rows. SQLite runs one without
 * a pause, because no request may use its connection during a transaction. PostgreSQL awaits each statement.
 */
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
