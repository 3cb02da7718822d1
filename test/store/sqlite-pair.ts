/** Two stores on one SQLite file, as two processes have them. */
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

/** The stores, which close with the test, and the file. */
export interface SqlitePair {
  readonly store: Store
  readonly other: Store
  readonly file: string
}

/** Opens them. */
export async function openPair(t: Test): Promise<SqlitePair> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const [store, other] = [await openSqliteStore(file), await openSqliteStore(file)]
  t.teardown(async () => {
    await Promise.all([store.close(), other.close()])
    remove()
  })
  return { store, other, file }
}
