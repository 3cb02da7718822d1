/** The SQLite store keeps the contract of every store of revocations. */
import { join } from 'node:path'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { makeFolder } from '../support/gateway.ts'
import { revocationContract, type Connection } from './revocation-contract.ts'

revocationContract('SQLite', () => {
  const { folder, remove } = makeFolder()
  const opened: Connection[] = []
  const connect = (): Connection => {
    const store = openSqliteStore(join(folder, 'ownership.db'))
    opened.push(store)
    return store
  }
  return {
    store: connect(),
    connect,
    async remove() {
      await Promise.all(opened.map((store) => store.close()))
      remove()
    },
  }
})
