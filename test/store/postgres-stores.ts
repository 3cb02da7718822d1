/** Stores on a real PostgreSQL, for tests. */
import type { Test } from 'tap'
import { storeOf } from '../../src/config/store-place.ts'
import type { PostgresSettings } from '../../src/postgres/settings.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openPostgresStore, type PostgresOptions } from '../../src/store/postgres/store.ts'

/** What the configuration would say of a database; with the patience that tests on a busy machine need. */
export function settingsOf(url: string, changes: Partial<PostgresSettings> = {}): PostgresSettings {
  const named = storeOf({ store: url })
  if (named.kind !== 'postgres') throw new Error(`${named.file} is no PostgreSQL`)
  return { ...named.settings, connectTimeout: 30_000, statementTimeout: 30_000, ...changes }
}

/** Opens a store; it is closed when the test is over. */
export async function openStoreOn(t: Test, settings: PostgresSettings, options: PostgresOptions = {}): Promise<Store> {
  const { store } = await openPostgresStore(settings, options)
  t.teardown(() => store.close())
  return store
}
