/** Where the stores of race tests have their data: one file, or one database. */
import Database from 'better-sqlite3'
import { configSchema } from '../../src/config/schema.ts'
import { openStore } from '../../src/open-store.ts'
import type { Store } from '../../src/store/port.ts'

/** As it stands under `ownership` in a configuration. */
export interface StoreAddress {
  readonly store: string
  readonly postgres?: Readonly<Record<string, unknown>>
}

/** Opens a store as a gateway with this address would. */
export async function openAt(address: StoreAddress): Promise<Store> {
  return openStore(configSchema.shape.ownership.parse({ ...address, unknownThread: 'claim' }))
}

/** What is wrong with the pages of a SQLite file: null if nothing is. */
export function damageIn(file: string): string | null {
  const database = new Database(file, { fileMustExist: true })
  try {
    const found = database.pragma('integrity_check') as { readonly integrity_check: string }[]
    const [first] = found
    return found.length === 1 && first?.integrity_check === 'ok' ? null : JSON.stringify(found)
  } finally {
    database.close()
  }
}
