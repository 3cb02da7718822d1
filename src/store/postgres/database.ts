/** PostgreSQL for the parts of the store: its tables, and every failure as StoreUnavailable. */
import { PostgresFailure } from '../../postgres/failure.ts'
import type { PostgresPool, Queries, TransactionKind } from '../../postgres/pool.ts'
import { quoted } from '../../postgres/settings.ts'
import { StoreUnavailable } from '../port/state.ts'
import type { ThreadKey } from '../port/thread.ts'
import type { Dialect, Sql, Tables } from '../sql/statement.ts'
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

export function dialectOf(tables: Tables): Dialect {
  return {
    ...tables,
    asked: 'unnest(:scopes::text[], :threadIds::text[]) AS asked (scope, thread_id)',
    forUpdate: 'FOR UPDATE',
    isUpstreamDeleted: 'upstream_deleted',
    larger: 'greatest',
    smaller: 'least',
  }
}

export function keysOf(keys: readonly ThreadKey[]) {
  return { scopes: keys.map(({ scope }) => scope), threadIds: keys.map(({ threadId }) => threadId) }
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

export function run<Row extends object>(
  queries: Queries,
  { name, text }: Sql<Row>,
  values: Readonly<Record<string, unknown>> = {},
): Promise<readonly Row[]> {
  const { text: replaced, names } = positionedOf(text)
  return queries.query<Row>(
    name === undefined ? { text: replaced } : { name, text: replaced },
    names.map((one) => values[one]),
  )
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

function unavailable(error: unknown): never {
  if (error instanceof StoreUnavailable) throw error
  // Any other error is a bug: nothing is known then, either.
  const said = error instanceof PostgresFailure || error instanceof Error ? error.message : String(error)
  throw new StoreUnavailable(`the ownership store failed: ${said}`)
}
