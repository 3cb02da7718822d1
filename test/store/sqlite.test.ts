/** The SQLite store keeps the contract of every store. */
import { join } from 'node:path'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { runsOf } from '../../testing/support/sample.ts'
import { storeContract } from './contract/contract.ts'

storeContract(
  'SQLite',
  async (t) => {
    const { folder, remove } = makeFolder()
    const opened: Store[] = []
    const connect = async (): Promise<Store> => {
      const store = await openSqliteStore(join(folder, 'ownership.db'))
      opened.push(store)
      return store
    }
    t.teardown(async () => {
      await Promise.all(opened.map((store) => store.close()))
      remove()
    })
    return { store: await connect(), connect }
  },
  runsOf(80, 4),
)
