/** A store's file whose pages hold nonsense. */
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import Database from 'better-sqlite3'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { at, NOW } from './contract/under-test.ts'

const ROWS = 2000
const PAGE = 4096

/** The last thread of such a file. */
export const LAST = at(`t-${ROWS - 1}`)

/** The file of a store at rest with so many rows of one owner that its table is many pages. */
export async function filled(file: string, owner: string): Promise<void> {
  const store = await openSqliteStore(file)
  const rows = Array.from({ length: ROWS }, (_, n) => ({
    ...at(`t-${n}`),
    owner,
    agentId: 'agent',
    name: 'a name that takes its place',
    archived: false,
    createdAt: NOW,
    lastUsedAt: NOW,
  }))
  await store.import(rows, { dryRun: false, settleConflicts: false })
  await store.close()
}

/** Writes nonsense over every page but those of the schema and the first of each table and index. @returns puts back what was there */
export function damage(file: string): () => void {
  const before = readFileSync(file)
  const database = new Database(file, { readonly: true })
  const roots = database.prepare<[], { rootpage: number }>('SELECT rootpage FROM sqlite_master WHERE rootpage > 0').all()
  // The schema is too large for the first page alone.
  const schema = database.prepare<[], { pageno: number }>("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'").all()
  database.close()
  const kept = new Set([...schema.map(({ pageno }) => pageno), ...roots.map(({ rootpage }) => rootpage)])
  const descriptor = openSync(file, 'r+')
  for (let page = 1; page <= before.length / PAGE; page += 1) {
    if (!kept.has(page)) writeSync(descriptor, Buffer.alloc(PAGE, 0xa5), 0, PAGE, (page - 1) * PAGE)
  }
  closeSync(descriptor)
  return () => writeFileSync(file, before, { flag: 'r+' })
}
