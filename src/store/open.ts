/** Opens the store that a configuration names. PostgreSQL and its driver are loaded only where they are used. */
import { existsSync } from 'node:fs'
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../observe/log.ts'
import type { PostgresPool } from '../postgres/pool.ts'
import { StoreUnavailable } from './port/state.ts'
import type { Store } from './port/store.ts'
import { openSqliteStore } from './sqlite/store.ts'

export interface OpenStoreOptions {
  readonly log?: Logger
  /** False: a store on which no gateway has run is not created, and openStore throws StoreUnavailable. */
  readonly make?: boolean
}

/** `pool` is null where the store has no connections; other shared state may be kept in the same database. */
export interface OpenedStore {
  readonly store: Store
  readonly pool: PostgresPool | null
}

/** Creates and migrates the store where needed. @throws StoreUnavailable with what to do */
export async function openStore(ownership: Config['ownership'], options: OpenStoreOptions = {}): Promise<Store> {
  return (await openStoreWithPool(ownership, options)).store
}

/** The pool closes with the store. */
export async function openStoreWithPool(
  ownership: Config['ownership'],
  { log, make = true }: OpenStoreOptions = {},
): Promise<OpenedStore> {
  const named = storeOf(ownership)
  const missing = (place: string): StoreUnavailable =>
    new StoreUnavailable(`the store ${place} does not exist: check ownership.store, or create it with threadwarden store migrate`)
  if (named.kind === 'sqlite') {
    if (!make && !existsSync(named.file)) throw missing(named.file)
    return { store: await openSqliteStore(named.file), pool: null }
  }
  const { settings, cache } = named
  const { openPostgresStore } = await import('./postgres/store.ts')
  if (!make) {
    const { inspectPostgres } = await import('./postgres/inspect.ts')
    const seen = await inspectPostgres(settings)
    if (seen.outcome === 'missing') throw missing(seen.place)
  }
  return openPostgresStore(settings, {
    cache,
    onIdleFailure: (failure) => log?.warn({ detail: failure.message }, 'a connection to the store broke: the next one is new'),
  })
}
