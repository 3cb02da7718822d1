/** The connection pool for queries. Every failure becomes a PostgresFailure. */
import { createHash } from 'node:crypto'
import pg from 'pg'
import { driverOptions, setUp } from './connecting.ts'
import { failureOf, PostgresFailure } from './failure.ts'
import type { PostgresSettings } from './settings.ts'

/** A named statement is prepared once on each connection. A name means one text in the whole program. */
export interface Statement {
  readonly name?: string
  readonly text: string
}

export interface Queries {
  query<T extends object>(statement: Statement, values?: readonly unknown[]): Promise<readonly T[]>
}

export type TransactionKind = 'write' | 'snapshot' | 'survey'

export interface PostgresPool extends Queries {
  /** Repeats `work` after a rollback by the server or `Crossed`, never if the result is unknown. `survey` may take minutes. */
  transaction<T>(work: (queries: Queries) => Promise<T>, kind?: TransactionKind): Promise<T>
  close(): Promise<void>
}

/** Thrown by `work` if what it read has changed. The transaction is rolled back and repeated. */
export class Crossed extends Error {
  override readonly name = 'Crossed'

  constructor() {
    super('what it read kept changing')
  }
}

export type OnIdleFailure = (failure: PostgresFailure) => void

const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'
const BEGIN: Readonly<Record<TransactionKind, string>> = {
  write: 'BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE',
  snapshot: SNAPSHOT,
  survey: SNAPSHOT,
}

const SURVEY_MS = 600_000

/** Serialization failure and deadlock: certainly rolled back (PostgreSQL, "Serialization Failure Handling"). */
const ROLLED_BACK: ReadonlySet<string | null> = new Set(['40001', '40P01'])

/** Attempts of a step that concurrent changes invalidate. Chance alone does not cause so many. */
export const ATTEMPTS = 20

/** How long a connection may be idle, and how long it may live: the server behind a name may change. */
const IDLE_MS = 300_000
const LIFETIME_S = 3600

export function openPool(settings: PostgresSettings, onIdleFailure: OnIdleFailure = () => {}): PostgresPool {
  const pool = new pg.Pool({
    ...driverOptions(settings),
    max: settings.pool,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_S,
    // Unused connections keep no process alive, even while the server does not answer a disconnect.
    allowExitOnIdle: true,
    // The pool awaits the result, although the types don't say so.
    onConnect: (client) => setUp(client, settings) as unknown as undefined,
  })
  // The driver has already removed the connection. Without a listener the process would end.
  pool.on('error', (error) => onIdleFailure(failureOf(error, settings)))

  const transaction: PostgresPool['transaction'] = async (work, kind = 'write') => {
    for (let attempt = 1; ; attempt += 1) {
      const client = await pool.connect().catch((error: unknown) => {
        throw failureOf(error, settings)
      })
      try {
        return await inTransaction(client, settings, work, kind)
      } catch (error) {
        const again = error instanceof Crossed || (error instanceof PostgresFailure && ROLLED_BACK.has(error.code))
        if (!again || attempt === ATTEMPTS) throw error
      }
    }
  }
  let closed: Promise<void> | undefined
  return { ...queriesOn(pool, settings), transaction, close: () => (closed ??= pool.end()) }
}

async function inTransaction<T>(
  client: pg.PoolClient,
  settings: PostgresSettings,
  work: (queries: Queries) => Promise<T>,
  kind: TransactionKind,
): Promise<T> {
  const queries = queriesOn(client, settings, kind === 'survey' ? SURVEY_MS : undefined)
  // A connection that breaks between two statements reports it here, and again with the next statement.
  const ignore = (): void => {}
  client.on('error', ignore)
  let usable = false
  try {
    await queries.query({ text: BEGIN[kind] })
    if (kind === 'survey') await queries.query({ text: `SET LOCAL statement_timeout = ${SURVEY_MS}` })
    const result = await work(queries)
    await queries.query({ text: 'COMMIT' })
    usable = true
    return result
  } catch (error) {
    // Not if the server did not answer. A discarded connection is a rollback, too.
    if (!(error instanceof PostgresFailure) || error.isAnswer) {
      usable = await queries.query({ text: 'ROLLBACK' }).then(
        () => true,
        () => false,
      )
    }
    throw error
  } finally {
    client.off('error', ignore)
    client.release(!usable)
  }
}

const names = new Map<string, string>()

/** The digest includes the schema: behind a pooler, another gateway's statement of this name would use that gateway's tables. */
function nameOf({ name, text }: Statement): { readonly name?: string } {
  if (name === undefined) return {}
  const known = names.get(text) ?? `${name.slice(0, 40)}-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  names.set(text, known)
  return { name: known }
}

/** @param retry milliseconds that the driver waits for an answer; by default the client's setting */
export function queriesOn(client: pg.Pool | pg.ClientBase, settings: PostgresSettings, retry?: number): Queries {
  return {
    async query<T extends object>(statement: Statement, values: readonly unknown[] = []): Promise<readonly T[]> {
      try {
        // The driver takes the timeout with each statement, although its types don't say so.
        const config = { ...nameOf(statement), text: statement.text, values: [...values], query_timeout: retry }
        const { rows } = await client.query<T & pg.QueryResultRow>(config as pg.QueryConfig)
        return rows
      } catch (error) {
        throw failureOf(error, settings)
      }
    },
  }
}
