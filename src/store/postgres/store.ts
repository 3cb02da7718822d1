/** The store on PostgreSQL: one schema, shared by processes on several machines. */
import { failureOf, PostgresFailure } from '../../postgres/failure.ts'
import { madeIn, migrate } from './migrations.ts'
import { openPool, type OnIdleFailure, type PostgresPool } from '../../postgres/pool.ts'
import type { PostgresSettings } from '../../postgres/settings.ts'
import { StoreUnavailable } from '../port/state.ts'
import type { Store } from '../port/store.ts'
import { administrationIn } from '../sql/administration.ts'
import { engineOn } from './engine.ts'
import { databaseOn, tablesIn, schemaIdentityFrom, type SchemaIdentity } from './database.ts'
import { listsOn } from './lists.ts'
import { makePostgresInvalidations } from './invalidations.ts'
import { ownershipOn } from './ownership.ts'

export interface PostgresOptions {
  /** For how many threads access is cached; 0, the default: none. */
  readonly cache?: number
  readonly onIdleFailure?: OnIdleFailure
}

export interface OpenedPostgres {
  readonly store: Store
  /** For other data in the same schema. Closes with the store. */
  readonly pool: PostgresPool
}

/** @throws StoreUnavailable with the place and a remedy, if the server can't be reached or written */
export async function openPostgresStore(settings: PostgresSettings, options: PostgresOptions = {}): Promise<OpenedPostgres> {
  const { cache = 0, onIdleFailure } = options
  let pool: PostgresPool | undefined
  try {
    await migrate(settings)
    pool = openPool(settings, onIdleFailure)
    const state = await stateOf(pool, settings)
    if (state.fault !== null) throw new Error(state.fault)
    if (state.made === null) throw new Error(`schema ${settings.schema} is empty, or is being restored`)
    return { store: storeOn(pool, settings, cache, schemaIdentityFrom(state.made, settings)), pool }
  } catch (error) {
    await pool?.close()
    throw new StoreUnavailable(`the ownership store cannot be opened: ${failureOf(error, settings).message}`)
  }
}

function storeOn(pool: PostgresPool, settings: PostgresSettings, cache: number, identity: SchemaIdentity): Store {
  const database = databaseOn(pool, identity)
  const tables = tablesIn(settings.schema)
  const invalidations = makePostgresInvalidations(database, pool, settings, cache, identity)
  return {
    ...ownershipOn(database, tables, invalidations),
    ...listsOn(database, tables),
    ...administrationIn(engineOn(database, settings.schema, invalidations, identity)),
    onInvalidation: (listener) => invalidations.onInvalidation(listener),
    async fault() {
      try {
        const { fault, made } = await stateOf(pool, settings)
        identity.note(made)
        return identity.fault() ?? fault
      } catch (error) {
        return failureOf(error, settings).message
      }
    },
    async close() {
      invalidations.stop()
      await pool.close()
    },
  }
}

interface State {
  /** Why nothing can be read or written, although the server answers. */
  readonly fault: string | null
  /** When the schema was created; null if it does not say. */
  readonly made: number | null
}

/** Checks the server and that all tables are usable. Reads none: it must not wait for a table's lock. @throws PostgresFailure */
async function stateOf(pool: PostgresPool, { schema, user }: PostgresSettings): Promise<State> {
  const text = `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::boolean AS "readOnly",
    (SELECT bool_and(has_table_privilege(name, kind)) FROM unnest($1::text[]) AS tables (name),
      unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS kinds (kind)) AS usable,
    ${madeIn(schema)} AS made`
  const [row] = await pool.query<{ standby: boolean; readOnly: boolean; usable: boolean; made: number | null }>({ text }, [
    Object.values(tablesIn(schema)),
  ])
  if (row === undefined) throw new PostgresFailure('the server did not report its state')
  const { made } = row
  if (row.standby) return { made, fault: 'the server is a standby and accepts no writes: name the primary in ownership.store' }
  if (row.readOnly) return { made, fault: 'the server is read-only and accepts no writes' }
  return { made, fault: row.usable ? null : `the user ${user} may not read and write all tables of the schema ${schema}` }
}
