/** PostgreSQL for the parts of the store: its tables, and every failure as StoreUnavailable. */
import { PostgresFailure } from '../../postgres/failure.ts'
import type { PostgresPool, Queries, TransactionKind } from '../../postgres/pool.ts'
import { quoted } from '../../postgres/settings.ts'
import { StoreUnavailable } from '../port/state.ts'
import type { Tables } from '../sql/statement.ts'
import type { SchemaIdentity } from './schema-identity.ts'

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

/** As in src/postgres/pool.ts, but rejects with StoreUnavailable. */
export interface Database extends Queries {
  transaction<T>(work: (queries: Queries) => Promise<T>, kind?: TransactionKind): Promise<T>
}

/** Refuses all queries while the schema is not the one that was opened. */
export function databaseOn(pool: PostgresPool, identity: SchemaIdentity): Database {
  const guarded = <T>(work: () => Promise<T>): Promise<T> => {
    const fault = identity.fault()
    return fault === null
      ? work().catch(unavailable)
      : Promise.reject(new StoreUnavailable(`the ownership store failed: ${fault}`))
  }
  return {
    query: (statement, values) => guarded(() => pool.query<never>(statement, values)),
    transaction: (work, kind) => guarded(() => pool.transaction(work, kind)),
  }
}

/** Attempts of a step that concurrent changes invalidate. Chance alone does not cause so many. */
export const ATTEMPTS = 20

export function crossed(): StoreUnavailable {
  return new StoreUnavailable('the ownership store failed: the row of a thread was changed by others again and again')
}

/** PostgreSQL cannot store U+0000. Only for text that is never compared. */
export function storable(text: string | null): string | null {
  return text?.replaceAll('\0', '\ufffd') ?? null
}

export function unavailable(error: unknown): never {
  if (error instanceof StoreUnavailable) throw error
  // Any other error is a bug: nothing is known then, either.
  const said = error instanceof PostgresFailure || error instanceof Error ? error.message : String(error)
  throw new StoreUnavailable(`the ownership store failed: ${said}`)
}
