/** PostgreSQL as the shared administration uses it (src/store/sql/statement.ts). */
import { Crossed, type Queries } from '../../postgres/pool.ts'
import { StoreUnavailable } from '../port/state.ts'
import type { ThreadKey } from '../port/thread.ts'
import { type Engine, type Work, sql, type Dialect, type Query } from '../sql/statement.ts'
import { storable, tablesIn, unavailable, type Database, type SchemaIdentity } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'
import { madeIn } from './migrations.ts'

function dialectOf(schema: string): Dialect {
  const tables = tablesIn(schema)
  const asked = 'unnest(:scopes::text[], :threadIds::text[]) AS asked (scope, thread_id)'
  // In key order: two imports of the same threads wait for each other, but not in a circle.
  const insert = sql<{ readonly done: 1 }>(
    `INSERT INTO ${tables.threads} (scope, thread_id, user_id, agent_id, name, archived, created_at, last_used_at)
      SELECT * FROM unnest(:scopes::text[], :threadIds::text[], :owners::text[], :agentIds::text[], :names::text[],
        :archived::boolean[], :createdAt::bigint[], :lastUsedAt::bigint[])
        AS row (scope, thread_id) ORDER BY scope COLLATE "C", thread_id COLLATE "C"
      ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`,
  )
  return {
    ...tables,
    asked,
    keysOf,
    insertionOf: (rows) => {
      const values = {
        ...keysOf(rows),
        owners: rows.map(({ owner }) => owner),
        agentIds: rows.map(({ agentId }) => agentId),
        names: rows.map(({ name }) => storable(name)),
        archived: rows.map(({ archived }) => archived),
        createdAt: rows.map(({ createdAt }) => createdAt),
        lastUsedAt: rows.map(({ lastUsedAt }) => lastUsedAt),
      }
      return [{ sql: insert, values }]
    },
    grantsByGrantee: tables.grants,
    forUpdate: 'FOR UPDATE',
    lockRows: sql(`SELECT 1 AS locked FROM ${asked} JOIN ${tables.threads} AS there USING (scope, thread_id)
      ORDER BY there.scope, there.thread_id FOR UPDATE OF there`),
    isUpstreamDeleted: 'upstream_deleted',
    isUnconfirmed: 'provisional',
    larger: 'greatest',
    smaller: 'least',
    made: madeIn(schema),
  }
}

function keysOf(keys: readonly ThreadKey[]) {
  return { scopes: keys.map(({ scope }) => scope), threadIds: keys.map(({ threadId }) => threadId) }
}

export function engineOn(
  database: Database,
  schema: string,
  invalidations: PostgresInvalidations,
  identity: SchemaIdentity,
): Engine {
  const alone = <T>(work: () => Work<T>): Promise<T> => perform(database, work()).catch(unavailable)
  return {
    dialect: dialectOf(schema),
    read: (kind, work) =>
      kind === 'statement' ? alone(work) : database.transaction((queries) => perform(queries, work()), kind),
    write: (kind, work) => (kind === 'statement' ? alone(work) : database.transaction((queries) => perform(queries, work()))),
    change: (work) =>
      invalidations.change((queries, changed) =>
        perform(
          queries,
          work((key) => changed(key === null ? null : [key])),
        ),
      ),
    crossed: () => new Crossed(),
    requireSame(made) {
      identity.note(made)
      const fault = identity.fault()
      if (fault !== null) throw new StoreUnavailable(`the ownership store failed: ${fault}`)
    },
  }
}

async function perform<T>(queries: Queries, work: Work<T>): Promise<T> {
  let step = work.next()
  while (step.done !== true) step = work.next(await ask(queries, step.value))
  return step.value
}

const positioned = new Map<string, { readonly text: string; readonly names: readonly string[] }>()

/** The driver binds by position. A name is a colon and letters, unlike the two colons of a cast. */
function positionedOf(text: string) {
  let known = positioned.get(text)
  if (known === undefined) {
    const names: string[] = []
    const replaced = text.replace(/(?<!:):([a-z]\w*)/gi, (_whole, name: string) => {
      if (!names.includes(name)) names.push(name)
      return `$${names.indexOf(name) + 1}`
    })
    positioned.set(text, (known = { text: replaced, names }))
  }
  return known
}

function ask(queries: Queries, { sql: { name, text }, values }: Query): Promise<readonly object[]> {
  const { text: replaced, names } = positionedOf(text)
  return queries.query(
    name === undefined ? { text: replaced } : { name, text: replaced },
    names.map((one) => values[one]),
  )
}
