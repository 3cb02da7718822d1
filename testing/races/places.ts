/** Where the stores of race tests have their data: one file, or one database. */
import Database from 'better-sqlite3'
import { configSchema } from '../../src/config/schema.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/port/store.ts'
import type { Query } from '../support/postgres.ts'

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

const INDEXES = `SELECT bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
  WHERE relnamespace = 'threadwarden'::regnamespace`
const TABLES = `SELECT relname, found.* FROM pg_class CROSS JOIN LATERAL verify_heapam(pg_class.oid) AS found
  WHERE relnamespace = 'threadwarden'::regnamespace AND relkind = 'r'`

/** What is wrong with the pages of a PostgreSQL database whose server has the module amcheck: null if nothing is. */
export async function damageOn(admin: Query): Promise<string | null> {
  await admin('CREATE EXTENSION IF NOT EXISTS amcheck')
  try {
    await admin(INDEXES)
  } catch (error) {
    return String(error)
  }
  const found = await admin(TABLES)
  return found.length === 0 ? null : JSON.stringify(found)
}
