/** The table in SQLite: the store makes its schema, and the rows are written past it, because as many claims would take days. */
import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { openSqliteStore } from '../../../src/store/sqlite/store.ts'
import { sqliteAccesses } from '../../support/plans.ts'
import { NOW, type Population } from './population.ts'
import type { Table, Tell } from './table.ts'

/** Rows in a transaction. */
const BATCH = 50_000

/**
 * Builds it.
 * @param file its path; nothing is there yet
 */
export async function buildSqliteTable(file: string, population: Population, tell: Tell = () => {}): Promise<Table> {
  await (await openSqliteStore(file)).close()
  await fill(file, population, tell)
  return {
    store: 'sqlite',
    place: file,
    open: (cache) => openSqliteStore(file, { cache }),
    bytes: async () => statSync(file).size,
    serverCpu: async () => null,
    version: async () => versionIn(file),
    accesses: async (sent) => sqliteAccesses(file, sent),
    close: async () => {},
  }
}

async function fill(file: string, population: Population, tell: Tell): Promise<void> {
  const database = new Database(file)
  try {
    // Whatever happens meanwhile, the file is made anew then.
    database.pragma('journal_mode = OFF')
    database.pragma('synchronous = OFF')
    database.pragma('cache_size = -500000')
    const indexes = database
      .prepare<[], { name: string; sql: string }>(
        `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('threads', 'grants') AND sql IS NOT NULL`,
      )
      .all()
    for (const { name } of indexes) database.exec(`DROP INDEX ${name}`)
    const insertBatch = makeInsert(database, population)
    for (let from = 0; from < population.total; from += BATCH) {
      insertBatch(from)
      tell('rows', Math.min(from + BATCH, population.total), population.total)
      await new Promise(setImmediate)
    }
    for (const [at, { sql }] of indexes.entries()) {
      tell('indexes', at, indexes.length)
      database.exec(sql)
      await new Promise(setImmediate)
    }
    database.pragma('journal_mode = WAL')
  } finally {
    database.close()
  }
}

function makeInsert(database: Database.Database, population: Population): (from: number) => void {
  const thread = database.prepare(
    `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at, name, deleted_at, upstream_deleted, archived)
     VALUES ('', ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const granted = database.prepare(
    `INSERT INTO grants (scope, thread_id, kind, grantee, access, granted_by, granted_at) VALUES ('', ?, ?, ?, ?, ?, ${NOW})`,
  )
  return database.transaction((from: number) => {
    for (let number = from; number < Math.min(from + BATCH, population.total); number += 1) {
      const { threadId, owner, agentId, createdAt, lastUsedAt, name, deletedAt, archived, grants } = population.thread(number)
      thread.run(threadId, owner, agentId, createdAt, lastUsedAt, name, deletedAt, deletedAt === null ? 0 : 1, archived ? 1 : 0)
      for (const { kind, id, right } of grants) granted.run(threadId, kind, id, right, owner)
    }
  })
}

function versionIn(file: string): string {
  const database = new Database(file, { readonly: true })
  try {
    return `SQLite ${String(database.prepare('SELECT sqlite_version()').pluck().get())}`
  } finally {
    database.close()
  }
}
