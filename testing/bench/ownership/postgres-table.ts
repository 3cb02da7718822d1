/** The table in PostgreSQL: the store makes its schema, and the rows are written past it, because as many claims would take days. */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { storeOf } from '../../../src/config/store-place.ts'
import { openPostgresStore } from '../../../src/store/postgres/store.ts'
import { explainOn } from '../../support/plans.ts'
import { NOW, type Population } from './population.ts'
import type { Table, Tell } from './table.ts'

/** Rows in a statement. */
const BATCH = 10_000

const SCHEMA = 'threadwarden'
const FILLED = `IN ('${SCHEMA}.threads'::regclass, '${SCHEMA}.grants'::regclass)`

/** What is made once the rows are there, which is much faster than with each of them. */
interface Later {
  readonly drop: string
  readonly make: string
}

// Foreign keys lean on primary ones: they go first, and come last.
const LATER = `
  SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS make, contype = 'f' AS last
  FROM pg_constraint WHERE conrelid ${FILLED} AND contype IN ('p', 'u', 'f')
  UNION ALL
  SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid), false
  FROM pg_index WHERE indrelid ${FILLED} AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
  ORDER BY last DESC`

// Values come as lines of fields, nothing for null: no value has a tab, a line's end or no character.
const FIELDS = `FROM string_to_table($1, E'\\n') AS line, string_to_array(line, E'\\t', '') AS field`

const THREADS = `INSERT INTO ${SCHEMA}.threads
    (scope, thread_id, user_id, agent_id, created_at, last_used_at, name, deleted_at, upstream_deleted, archived)
  SELECT '', field[1], field[2], field[3], field[4]::bigint, field[5]::bigint, field[6], field[7]::bigint, field[7] IS NOT NULL,
    field[8]::boolean ${FIELDS}`

const GRANTS = `INSERT INTO ${SCHEMA}.grants (scope, thread_id, kind, grantee, access, granted_by, granted_at)
  SELECT '', field[1], field[2], field[3], field[4], field[5], ${NOW} ${FIELDS}`

/**
 * Builds it.
 * @param url of an empty database, as a superuser
 */
export async function buildPostgresTable(url: string, population: Population, tell: Tell = () => {}): Promise<Table> {
  const open = async (cache: number) => (await openPostgresStore(settingsOf(url), { cache })).store
  await (await open(0)).close()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await fill(client, population, tell)
  } catch (error) {
    await client.end()
    throw error
  }
  const ask = async (text: string): Promise<unknown> => (await client.query<[unknown]>({ text, rowMode: 'array' })).rows[0]?.[0]
  return {
    store: 'postgres',
    place: url,
    open,
    bytes: async () => Number(await ask(`SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE oid ${FILLED}`)),
    serverCpu: async () => {
      const { rows } = await client.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`,
      )
      return cpuOf(rows.map(({ pid }) => pid))
    },
    version: async () => `PostgreSQL ${String(await ask('SHOW server_version'))}`,
    accesses: await explainOn(client),
    close: () => client.end(),
  }
}

function settingsOf(url: string) {
  const store = storeOf({ store: url })
  if (store.kind !== 'postgres') throw new Error('not the URL of a PostgreSQL server')
  return store.settings
}

async function fill(client: pg.Client, population: Population, tell: Tell): Promise<void> {
  const { rows: later } = await client.query<Later>(LATER)
  for (const { drop } of later) await client.query(drop)
  const { total } = population
  const place = scattering(total)
  for (let from = 0; from < total; from += BATCH) {
    const threads = Array.from({ length: Math.min(BATCH, total - from) }, (_, at) => population.thread(place(from + at)))
    const rows = threads.map(({ threadId, owner, agentId, createdAt, lastUsedAt, name, deletedAt, archived }) =>
      [threadId, owner, agentId, createdAt, lastUsedAt, name, deletedAt, archived].join('\t'),
    )
    const grants = threads.flatMap(({ threadId, owner, grants }) =>
      grants.map(({ kind, id, right }) => [threadId, kind, id, right, owner].join('\t')),
    )
    await client.query({ name: 'threads', text: THREADS, values: [rows.join('\n')] })
    if (grants.length > 0) await client.query({ name: 'grants', text: GRANTS, values: [grants.join('\n')] })
    tell('rows', from + threads.length, total)
  }
  await client.query(`SET maintenance_work_mem = '512MB'`)
  for (const [at, { make }] of later.toReversed().entries()) {
    tell('indexes', at, later.length)
    await client.query(make)
  }
  // What the server does by itself after a while.
  await client.query(`VACUUM (ANALYZE) ${SCHEMA}.threads, ${SCHEMA}.grants`)
  await client.query('CHECKPOINT')
}

/** Gives each number another's place, so that rows do not lie in the order of their ids or of anything else. */
function scattering(total: number): (number: number) => number {
  // Without a common divisor, so that each place is had once.
  let step = Math.floor(total * 0.618)
  while (commonDivisor(step, total) !== 1) step += 1
  return (number) => (number * step) % total
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other)
}

/** Microseconds of CPU that processes of this machine have had; null where they are none of this machine's, or it does not say. */
function cpuOf(pids: readonly number[]): number | null {
  try {
    const times = pids.map((pid) => {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('postgres')) throw new Error('another machine’s process')
      // Its first number: nanoseconds on a CPU.
      return Number.parseInt(readFileSync(`/proc/${pid}/schedstat`, 'latin1'), 10) / 1000
    })
    return times.reduce((sum, time) => sum + time, 0)
  } catch {
    return null
  }
}
