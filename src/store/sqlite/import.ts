/** Imports rows into the SQLite file. An existing owner is never replaced. */
import type { ImportedThread, ImportOptions, ImportOutcome, ImportStore } from '../port/import.ts'
import { addedIn, importOutcomes, ownedStatement } from '../sql/import.ts'
import { keyStatements } from '../sql/keys.ts'
import { sql } from '../sql/statement.ts'
import type { Connection } from './connection.ts'
import { keysOf, SQLITE } from './dialect.ts'
import type { SqliteFile } from './file.ts'
import type { SqliteInvalidations } from './invalidations.ts'
import { OBSERVATIONS } from './observations.ts'

const OWNED = ownedStatement(SQLITE)
const KEYS = keyStatements(SQLITE)
const INSERT = sql(
  `INSERT INTO threads (scope, thread_id, user_id, agent_id, name, archived, created_at, last_used_at)
   VALUES (:scope, :threadId, :owner, :agentId, :name, :archived, :createdAt, :lastUsedAt)`,
)

export function importIn(file: SqliteFile, invalidations: SqliteInvalidations): ImportStore {
  return {
    import: (rows, options) =>
      options.dryRun
        ? file.read((database) => outcomesIn(database, rows, options))
        : invalidations.write((database) => {
            const outcomes = outcomesIn(database, rows, options)
            const added = addedIn(rows, outcomes)
            for (const row of added) database.run(INSERT, { ...row, archived: row.archived ? 1 : 0 })
            const forgotten = database.all(KEYS.forget, keysOf(added))
            return { result: outcomes, changed: forgotten.length > 0 ? 'many' : 'nothing' }
          }),
  }
}

function outcomesIn(database: Connection, rows: readonly ImportedThread[], options: ImportOptions): readonly ImportOutcome[] {
  const keys = keysOf(rows)
  return importOutcomes(rows, database.all(OWNED, keys), database.all(OBSERVATIONS.runs, keys), options)
}
