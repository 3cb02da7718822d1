/** PostgreSQL as the parts of the store use it: its tables, and every failure as StoreUnavailable. */
import { PostgresFailure } from '../../postgres/failure.ts'
import type { PostgresPool, Queries, TransactionKind } from '../../postgres/pool.ts'
import { quoted } from '../../postgres/settings.ts'
import { StoreUnavailable, type ThreadKey } from '../port.ts'
import type { SchemaIdentity } from './schema-identity.ts'

/** The tables, as they stand in statements. */
export interface Tables {
  readonly threads: string
  readonly grants: string
  readonly observations: string
  readonly revocations: string
  readonly versions: string
  readonly secrets: string
}

export function tablesIn(schema: string): Tables {
  const at = (name: string): string => `${quoted(schema)}.${name}`
  return {
    threads: at('threads'),
    grants: at('grants'),
    observations: at('observations'),
    revocations: at('revocations'),
    versions: at('versions'),
    secrets: at('secrets'),
  }
}

/** Statements and transactions, as in src/postgres/pool.ts; they reject with StoreUnavailable. */
export interface Database extends Queries {
  transaction<T>(work: (queries: Queries) => Promise<T>, kind?: TransactionKind): Promise<T>
}

/** Makes it of a pool, whose schema is asked for as long as it is the one that was opened. */
export function databaseOn(pool: PostgresPool, past: SchemaIdentity): Database {
  const guarded = <T>(work: () => Promise<T>): Promise<T> => {
    const fault = past.fault()
    return fault === null
      ? work().catch(unavailable)
      : Promise.reject(new StoreUnavailable(`the ownership store failed: ${fault}`))
  }
  return {
    query: (statement, values) => guarded(() => pool.query<never>(statement, values)),
    transaction: (work, kind) => guarded(() => pool.transaction(work, kind)),
  }
}

/** How often a step that others cross is begun anew. It can't go on for ever by chance. */
export const ATTEMPTS = 20

/** After so many attempts. */
export function crossed(): StoreUnavailable {
  return new StoreUnavailable('the ownership store failed: the row of a thread was changed by others again and again')
}

/** Two lists of the same length, as parameters: `unnest` makes keys of them again. */
export function listsOf(keys: readonly ThreadKey[]): [scopes: readonly string[], threadIds: readonly string[]] {
  return [keys.map(({ scope }) => scope), keys.map(({ threadId }) => threadId)]
}

/** A text that nobody compares, as PostgreSQL can hold it: it has no character of number 0. */
export function storable(text: string | null): string | null {
  return text?.replaceAll('\0', '\ufffd') ?? null
}

function unavailable(error: unknown): never {
  if (error instanceof StoreUnavailable) throw error
  // What is no failure of the server is a mistake in the program: nothing is known then, either.
  const said = error instanceof PostgresFailure || error instanceof Error ? error.message : String(error)
  throw new StoreUnavailable(`the ownership store failed: ${said}`)
}
