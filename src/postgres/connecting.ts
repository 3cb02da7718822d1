/** Opens connections: TLS, timeouts, and session settings that do not depend on the server's defaults. */
import { readFileSync } from 'node:fs'
import { checkServerIdentity } from 'node:tls'
import pg from 'pg'
import { PostgresFailure } from './failure.ts'
import type { PostgresSettings } from './settings.ts'

/** The driver waits this much longer than the server, and decides if the server hangs. */
const GRACE_MS = 500

/** A process that is gone or hangs holds no locks for longer. A slow process is not disconnected. */
const IDLE_IN_TRANSACTION_MS = 30_000

const INT8 = 20

/** @throws PostgresFailure if the CA file can't be read */
export function driverOptions(settings: PostgresSettings): pg.ClientConfig {
  const { host, port, database, user, connectTimeout, statementTimeout } = settings
  return {
    host,
    port,
    database,
    user,
    // A function, so that the driver takes nothing from the environment or a file in the home folder.
    password: () => settings.password ?? '',
    ssl: tlsOptions(settings),
    connectionTimeoutMillis: connectTimeout,
    query_timeout: statementTimeout + GRACE_MS,
    application_name: 'threadwarden',
    client_encoding: 'UTF8',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: getTypeParser as typeof pg.types.getTypeParser },
  }
}

/** One statement: poolers refuse start parameters. Commits must survive a server crash; names must not find others' tables. */
export async function setUp(client: pg.ClientBase, { statementTimeout }: PostgresSettings): Promise<void> {
  await client.query(
    `SELECT set_config('statement_timeout', $1, false), set_config('idle_in_transaction_session_timeout', $2, false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
       set_config('default_transaction_isolation', 'read committed', false), set_config('search_path', 'pg_catalog', false),
       set_config('jit', 'off', false)`,
    [String(statementTimeout), String(IDLE_IN_TRANSACTION_MS)],
  )
}

/** A connection outside the pool. Its errors come with the next query, or as its `end`. */
export async function connect(settings: PostgresSettings, options: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ ...driverOptions(settings), ...options })
  client.on('error', () => {})
  try {
    await client.connect()
    await setUp(client, settings)
    return client
  } catch (error) {
    void client.end()
    throw error
  }
}

function tlsOptions({ tls, ca, host }: PostgresSettings): pg.ClientConfig['ssl'] {
  if (tls === 'off') return false
  return {
    rejectUnauthorized: true,
    // Explicit, because an address is no server name, and without a name the check uses localhost.
    checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate),
    ...(ca === null ? {} : { ca: authorityIn(ca) }),
  }
}

function authorityIn(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new PostgresFailure(`${file}, which ownership.postgres.ca names, cannot be read`)
  }
}

type Parsers = (oid: number, format?: 'text' | 'binary') => (text: string) => unknown

const getTypeParser: Parsers = (oid, format) =>
  oid === INT8 && format !== 'binary' ? safeInteger : (pg.types.getTypeParser as Parsers)(oid, format)

function safeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError('a number of the database is too large')
  return value
}
