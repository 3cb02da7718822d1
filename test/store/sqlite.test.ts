/** The SQLite store keeps the contract of every ownership store. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { OwnershipStore } from '../../src/store/port.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { makeFolder } from '../support/gateway.ts'
import { ownershipContract } from './ownership-contract.ts'

interface Row {
  readonly name: string | null
  readonly lastUsedAt: number
}

ownershipContract('SQLite', () => {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const opened: OwnershipStore[] = []
  const connect = (): OwnershipStore => {
    const store = openSqliteStore(file)
    opened.push(store)
    return store
  }
  return {
    store: connect(),
    connect,
    row({ scope, threadId }) {
      const database = new Database(file, { readonly: true })
      try {
        return database
          .prepare<[string, string], Row>(
            'SELECT name, last_used_at AS lastUsedAt FROM threads WHERE scope = ? AND thread_id = ?',
          )
          .get(scope, threadId)
      } finally {
        database.close()
      }
    },
    async remove() {
      await Promise.all(opened.map((store) => store.close()))
      remove()
    },
  }
})
