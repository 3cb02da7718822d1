/** Migrates a database to the schema of this program. */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { connect } from '../../postgres/connecting.ts'
import { failureOf, PostgresFailure } from '../../postgres/failure.ts'
import { queriesOn, type Queries } from '../../postgres/pool.ts'
import { MIGRATIONS, type Migration } from './schema.ts'
import { placeOf, quoted, type PostgresSettings } from '../../postgres/settings.ts'

const LOCK_TIMEOUT_MS = 60_000

export interface SchemaState {
  /** How many migrations were applied; null without any tables. */
  readonly applied: number | null
  readonly missing: readonly Migration[]
}

/** @throws PostgresFailure, also if the schema is newer than this program or was made by other migrations */
export async function schemaStateOf(
  queries: Queries,
  settings: PostgresSettings,
  known: readonly Migration[] = MIGRATIONS,
): Promise<SchemaState> {
  const [table] = await queries.query<{ there: boolean }>(
    {
      text: `SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname = $1 AND relname = 'migrations') AS there`,
    },
    [settings.schema],
  )
  if (table?.there !== true) return { applied: null, missing: known }
  const text = `SELECT number, checksum FROM ${quoted(settings.schema)}.migrations ORDER BY number`
  const applied = await queries.query<{ number: number; checksum: string }>({ text })
  const latest = applied.at(-1)?.number ?? 0
  const says = `schema ${settings.schema} in ${placeOf(settings)}`
  if (latest > known.length) {
    throw refused(`${says} is ${latest}, which is newer than this program knows (${known.length}): run the newer program`)
  }
  for (const { number, name, checksum } of known.slice(0, latest)) {
    if (applied.find((one) => one.number === number)?.checksum === checksum) continue
    throw refused(`${says}: its migration ${number} (${name}) differs: another build of this program wrote it`)
  }
  return { applied: latest, missing: known.slice(latest) }
}

/** SQL for the schema's creation time (ms since the epoch). A restored backup keeps it; a recreated schema has another. */
export function madeIn(schema: string): string {
  return `(SELECT applied_at FROM ${quoted(schema)}.migrations WHERE number = 1)`
}

/** One of several processes migrates; the others wait. Returns the state before. @throws PostgresFailure, with nothing changed */
export async function migrate(settings: PostgresSettings, known: readonly Migration[] = MIGRATIONS): Promise<SchemaState> {
  let client: pg.Client | undefined
  try {
    // No time limit: a migration of a large table may take long.
    client = await connect(settings, { query_timeout: 0 })
    const state = await schemaStateOf(queriesOn(client, settings), settings, known)
    return state.missing.length === 0 ? state : await apply(client, settings, known)
  } catch (error) {
    throw failureOf(error, settings)
  } finally {
    void client?.end()
  }
}

/** One transaction with its own lock: all or nothing, and a pooler cannot pass the lock on to another client. */
async function apply(client: pg.Client, settings: PostgresSettings, known: readonly Migration[]): Promise<SchemaState> {
  const schema = quoted(settings.schema)
  const queries = queriesOn(client, settings)
  const record = {
    text: `INSERT INTO ${schema}.migrations (number, name, checksum, applied_at)
      VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`,
  }
  await queries.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE' })
  await queries.query({
    text: `SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true),
      set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true)`,
  })
  await queries.query({ text: 'SELECT pg_advisory_xact_lock($1)' }, [lockOf(settings.schema)])
  const state = await schemaStateOf(queries, settings, known)
  if (state.applied === null) await makeSchema(queries, settings)
  for (const { number, name, checksum, text } of state.missing) {
    await queries.query({ text: text.replaceAll('{schema}', schema) })
    await queries.query(record, [number, name, checksum])
  }
  await queries.query({ text: 'COMMIT' })
  return state
}

/** Uses an existing schema as it is: its user needs no right to create schemas. */
async function makeSchema(queries: Queries, { schema }: PostgresSettings): Promise<void> {
  const there = await queries.query({ text: 'SELECT 1 FROM pg_namespace WHERE nspname = $1' }, [schema])
  if (there.length === 0) await queries.query({ text: `CREATE SCHEMA ${quoted(schema)}` })
  await queries.query({
    text: `CREATE TABLE ${quoted(schema)}.migrations
      (number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)`,
  })
}

function lockOf(schema: string): string {
  return createHash('sha256').update(`threadwarden ${schema}`).digest().readBigInt64BE(0).toString()
}

function refused(message: string): PostgresFailure {
  return new PostgresFailure(message)
}
