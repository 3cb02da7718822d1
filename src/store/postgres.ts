/** The store on PostgreSQL, all of it in one schema, shared safely by several processes on several machines. */
import { failureOf, PostgresFailure } from '../postgres/failure.ts'
import { migrate } from '../postgres/migrating.ts'
import { openPool, type OnIdleFailure, type PostgresPool } from '../postgres/pool.ts'
import type { PostgresSettings } from '../postgres/settings.ts'
import { StoreUnavailable, type Store } from './port.ts'
import { assignmentOn } from './postgres-assignment.ts'
import { databaseOn, tablesIn } from './postgres-database.ts'
import { grantsOn } from './postgres-grants.ts'
import { importOn } from './postgres-import.ts'
import { listsOn } from './postgres-lists.ts'
import { makePostgresNews } from './postgres-news.ts'
import { observationsOn } from './postgres-observations.ts'
import { ownershipOn } from './postgres-ownership.ts'
import { peopleOn } from './postgres-people.ts'
import { pruningOn } from './postgres-prune.ts'
import { revocationsOn } from './postgres-revocations.ts'
import { rowsOn } from './postgres-rows.ts'

/** What may be set. */
export interface PostgresOptions {
  /** Of how many threads it is remembered who may use them; 0, which is the default: none. */
  readonly cache?: number
  /** Told of connections that break while nobody uses them. */
  readonly onIdleFailure?: OnIdleFailure
}

/** An open store. */
export interface OpenedPostgres {
  readonly store: Store
  /** Its connections, for what else is kept in the same schema. They close with the store. */
  readonly pool: PostgresPool
}

/**
 * Opens the store and brings its schema up to date.
 * @throws StoreUnavailable with the place and what to do, if it can't be reached or written
 */
export async function openPostgresStore(settings: PostgresSettings, options: PostgresOptions = {}): Promise<OpenedPostgres> {
  const { cache = 0, onIdleFailure } = options
  let pool: PostgresPool | undefined
  try {
    await migrate(settings)
    pool = openPool(settings, onIdleFailure)
    const fault = await writeFault(pool)
    if (fault !== null) throw new Error(fault)
    return { store: storeOn(pool, settings, cache), pool }
  } catch (error) {
    await pool?.close()
    throw new StoreUnavailable(`the ownership store cannot be opened: ${failureOf(error, settings).message}`)
  }
}

function storeOn(pool: PostgresPool, settings: PostgresSettings, cache: number): Store {
  const database = databaseOn(pool)
  const tables = tablesIn(settings.schema)
  const news = makePostgresNews(database, pool, settings, cache)
  return {
    ...ownershipOn(database, tables, news),
    ...listsOn(database, tables),
    ...observationsOn(database, tables),
    ...grantsOn(database, tables, news),
    ...rowsOn(database, tables),
    ...importOn(database, tables, news),
    ...assignmentOn(tables, news),
    ...peopleOn(tables, news),
    ...pruningOn(database, tables, news),
    ...revocationsOn(database, tables),
    onStanding: (listener) => news.onStanding(listener),
    fault: () => writeFault(pool).catch((error: unknown) => failureOf(error, settings).message),
    async close() {
      news.stop()
      await pool.close()
    },
  }
}

/** Why nothing can be written, though the server answers: it is a standby, or read only. Null if nothing stands in the way. */
async function writeFault(pool: PostgresPool): Promise<string | null> {
  const [row] = await pool.query<{ standby: boolean; readOnly: boolean }>({
    text: `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::boolean AS "readOnly"`,
  })
  if (row === undefined) throw new PostgresFailure('the server did not say whether it can be written', null, false)
  if (row.standby) return 'the server is a standby and takes no writes: name the primary in ownership.store'
  return row.readOnly ? 'the server is set to read only, and takes no writes' : null
}
