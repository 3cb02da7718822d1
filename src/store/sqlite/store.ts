/** The store on SQLite: one file, shared by processes on one machine. */
import type { Store } from '../port/store.ts'
import { administrationIn } from '../sql/administration.ts'
import { engineIn } from './engine.ts'
import { SqliteFile } from './file.ts'
import { healthOf } from './health.ts'
import { listedIn } from './lists.ts'
import { invalidationsOf } from './invalidations.ts'
import { ownershipIn } from './ownership.ts'
import { sqliteAccessCache } from './access.ts'
import { makeSlots, makeSteps } from '../steps.ts'

export interface SqliteOptions {
  /** Milliseconds to wait for another process's lock; 5000 by default. */
  readonly retry?: number
  /** For how many threads access is cached; 20,000 by default. */
  readonly cache?: number
}

/** Bounds the lists that are read at once, because their memory is not counted. */
const LISTS_AT_ONCE = 8

const CACHE = 20_000

/** @throws StoreUnavailable with the path and a remedy, if the file can't be opened or written */
export async function openSqliteStore(path: string, { retry, cache = CACHE }: SqliteOptions = {}): Promise<Store> {
  const file = await SqliteFile.open(path, retry)
  const remembered = sqliteAccessCache(file, cache)
  const steps = makeSteps()
  const listing = makeSlots(LISTS_AT_ONCE, LISTS_AT_ONCE / 2)
  const invalidations = invalidationsOf(file, {
    onOwn: (changed) => remembered.forget(changed),
    onAny: () => remembered.askAgain(),
  })
  return {
    ...ownershipIn(file, steps, invalidations, remembered),
    listed: (scope, reader, window) =>
      listing(reader === 'everybody' ? reader : reader.userId, () => listedIn(file, steps, scope, reader, window)),
    ...administrationIn(engineIn(file, invalidations)),
    onInvalidation: (listener) => invalidations.onInvalidation(listener),
    fault: healthOf(file),
    async close() {
      invalidations.stop()
      file.close()
    },
  }
}
