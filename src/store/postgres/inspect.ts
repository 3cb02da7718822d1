/** Checks whether a gateway could open a store on PostgreSQL, and what it knows about threads, without creating or changing anything. */
import { failureOf } from '../../postgres/failure.ts'
import { schemaStateOf } from './migrations.ts'
import { openPool, type PostgresPool } from '../../postgres/pool.ts'
import { placeOf, type PostgresSettings } from '../../postgres/settings.ts'
import { tablesIn } from './database.ts'
import type { KnownThread, ThreadLookup } from '../port/lookup.ts'
import { lookupText, scopesText } from '../sql/statement.ts'

export type PostgresInspection = { readonly place: string } & (
  | {
      readonly outcome: 'usable'
      readonly scopes: readonly string[]
      /** How many migrations the schema lacks; a start applies them. */
      readonly behind: number
    }
  | { readonly outcome: 'missing' }
  | { readonly outcome: 'unusable'; readonly message: string; readonly hint: string }
)

const TABLE_RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE']

export async function inspectPostgres(settings: PostgresSettings): Promise<PostgresInspection> {
  const place = `schema ${settings.schema} in ${placeOf(settings)}`
  let pool: PostgresPool | undefined
  try {
    pool = openPool({ ...settings, pool: 1 })
    return { place, ...(await seen(pool, settings, place)) }
  } catch (error) {
    const { message } = failureOf(error, settings)
    return { place, outcome: 'unusable', message, hint: 'check ownership.store, ownership.postgres and the server' }
  } finally {
    void pool?.close()
  }
}

type Seen = PostgresInspection extends infer Look ? (Look extends PostgresInspection ? Omit<Look, 'place'> : never) : never

async function seen(pool: PostgresPool, settings: PostgresSettings, place: string): Promise<Seen> {
  const { schema, user } = settings
  const unusable = (message: string, hint: string): Seen => ({ outcome: 'unusable', message, hint })
  const [server] = await pool.query<{ readOnly: boolean; mayMakeSchema: boolean; mayMakeTables: boolean | null }>(
    {
      text: `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS "readOnly",
        has_database_privilege(current_database(), 'CREATE') AS "mayMakeSchema",
        (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1) AS "mayMakeTables"`,
    },
    [schema],
  )
  if (server === undefined) return unusable(`${place} did not answer`, 'check the server')
  if (server.readOnly) return unusable(`${placeOf(settings)} accepts no writes: it is a standby or read-only`, 'name the primary')
  const state = await schemaStateOf(pool, settings)
  if (state.missing.length > 0 && !(server.mayMakeTables ?? server.mayMakeSchema)) {
    return unusable(
      `the user ${user} may not create the tables of ${place}`,
      `let it: CREATE SCHEMA ${schema} AUTHORIZATION ${user}`,
    )
  }
  if (state.applied === null) return { outcome: 'missing' }
  const [rights] = await pool.query<{ all: boolean }>(
    {
      text: `SELECT bool_and(has_table_privilege(pg_class.oid, needed)) AS all
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace CROSS JOIN unnest($2::text[]) AS rights (needed)
        WHERE nspname = $1 AND relkind = 'r'`,
    },
    [schema, TABLE_RIGHTS],
  )
  if (rights?.all !== true) {
    return unusable(`the user ${user} may not read and write all tables of ${place}`, `grant ${TABLE_RIGHTS.join(', ')} on them`)
  }
  const { threads } = tablesIn(schema)
  const scopes = await pool.query<{ scope: string }>({ text: scopesText(threads) })
  return { outcome: 'usable', scopes: scopes.map(({ scope }) => scope), behind: state.missing.length }
}

/** Each look-up rejects if the server fails, or its schema lacks the tables. */
export function lookUpInPostgres(settings: PostgresSettings): ThreadLookup {
  const pool = openPool({ ...settings, pool: 1 })
  const text = lookupText(tablesIn(settings.schema), { asked: 'SELECT unnest($2::text[]) AS thread_id', scope: '$1' })
  return {
    known: (scope, threadIds) => pool.query<KnownThread>({ text }, [scope, threadIds]),
    close: () => pool.close(),
  }
}
