/** Inspects the store of a configuration, of either kind, without a change to it. */
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { inspectSqlite, type SqliteInspection } from '../store/inspect.ts'
import { SCHEMA_VERSION } from '../store/sqlite/schema.ts'

/** Each kind of store counts its schemas from 1. */
export type Inspected = {
  readonly place: string
  readonly latest: number
} & (
  | { readonly outcome: 'usable'; readonly schema: number }
  | { readonly outcome: 'missing' }
  | { readonly outcome: 'unusable'; readonly message: string; readonly hint: string }
)

/** How long a starting gateway waits for the lock of another process, in milliseconds. */
const LOCK_WAIT = 5000

/** @param file an absolute path */
export function inspectFile(file: string): SqliteInspection {
  return inspectSqlite(file, LOCK_WAIT)
}

export async function inspectStore(ownership: Config['ownership']): Promise<Inspected> {
  const named = storeOf(ownership)
  if (named.kind === 'sqlite') return { place: named.file, latest: SCHEMA_VERSION, ...inspectFile(named.file) }
  const { inspectPostgres } = await import('../store/postgres/inspect.ts')
  const { MIGRATIONS } = await import('../store/postgres/schema.ts')
  const latest = MIGRATIONS.length
  const seen = await inspectPostgres(named.settings)
  return seen.outcome === 'usable' ? { ...seen, latest, schema: latest - seen.behind } : { ...seen, latest }
}

/** The name of the configured store if it does not exist; else null. */
export async function missingStore({ ownership }: Config): Promise<string | null> {
  const { outcome, place } = await inspectStore(ownership)
  return outcome === 'missing' ? place : null
}
