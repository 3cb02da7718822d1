/** PostgreSQL for the parts of the store: its tables, whether they are those that were opened, and every failure as StoreUnavailable. */
import { PostgresFailure } from '../../postgres/failure.ts'
import type { PostgresPool, Queries, TransactionKind } from '../../postgres/pool.ts'
import { quoted, placeOf, type PostgresSettings } from '../../postgres/settings.ts'
import { StoreUnavailable } from '../port/state.ts'
import type { Tables } from '../sql/statement.ts'

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

export function crossed(): StoreUnavailable {
  return new StoreUnavailable('the ownership store failed: the row of a thread kept changing')
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

/**
 * Detects that a schema was lost and recreated while in use. All threads are unowned in the new one, so the store stops using it.
 * A restored backup has the history of the opened schema, and the store uses it again.
 */
export interface SchemaIdentity {
  /** @param made when the answering schema was created; null if it does not say: it is empty, or is being restored */
  note(made: number | null): void
  onChange(listener: () => void): void
  /** Why the schema must not be used; null if it is the opened one. */
  fault(): string | null
}

export function schemaIdentityFrom(opened: number, settings: PostgresSettings): SchemaIdentity {
  const other =
    `schema ${settings.schema} in ${placeOf(settings)} is not the one that was opened: it was lost and recreated; ` +
    'restore a backup, or restart all gateways to continue with the new one'
  let last: number | null = opened
  const listeners: (() => void)[] = []
  return {
    note(made) {
      if (made === last) return
      last = made
      for (const listener of listeners) listener()
    },
    onChange: (listener) => void listeners.push(listener),
    fault: () => {
      if (last === opened) return null
      return last === null ? `schema ${settings.schema} in ${placeOf(settings)} is empty, or is being restored` : other
    },
  }
}
