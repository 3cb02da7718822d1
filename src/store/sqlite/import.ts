/** Imports rows into the SQLite file. An existing owner is never replaced. */
import { NOBODY, type ImportedThread, type ImportOutcome, type ThreadAdministration } from '../port.ts'
import { sql, type Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import type { SqliteInvalidations } from './invalidations.ts'
import { forgetObservations, runnersOf } from './observations.ts'

interface Options {
  readonly dryRun: boolean
  readonly settleConflicts: boolean
}

interface Owned {
  readonly user_id: string
  readonly deleted_at: number | null
}

const ROW = sql<Owned>('SELECT user_id, deleted_at FROM threads WHERE scope = :scope AND thread_id = :threadId')
const INSERT = sql(
  `INSERT INTO threads (scope, thread_id, user_id, agent_id, name, archived, created_at, last_used_at)
   VALUES (:scope, :threadId, :owner, :agentId, :name, :archived, :createdAt, :lastUsedAt)`,
)

export function importIn(file: SqliteFile, invalidations: SqliteInvalidations): Pick<ThreadAdministration, 'import'> {
  return {
    import: (rows, options) =>
      options.dryRun
        ? file.read((database) => importRows(database, rows, options).outcomes)
        : invalidations.write((database) => {
            const { outcomes, forgotten } = importRows(database, rows, options)
            return { result: outcomes, changed: forgotten ? 'many' : 'nothing' }
          }),
  }
}

function importRows(
  database: Connection,
  rows: readonly ImportedThread[],
  options: Options,
): { readonly outcomes: readonly ImportOutcome[]; readonly forgotten: boolean } {
  let forgotten = false
  /** What a dry run would have added so far. */
  const added = new Map<string, Owned>()
  const outcomes = rows.map((row): ImportOutcome => {
    const name = JSON.stringify([row.scope, row.threadId])
    const outcome = outcomeOf(database, row, added.get(name) ?? database.get(ROW, valuesOf(row)), options)
    if (outcome.outcome !== 'added') return outcome
    if (options.dryRun) {
      added.set(name, { user_id: row.owner, deleted_at: null })
    } else {
      database.run(INSERT, valuesOf(row))
      // The operator has decided: observations of the thread no longer count.
      if (forgetObservations(database, row) > 0) forgotten = true
    }
    return outcome
  })
  return { outcomes, forgotten }
}

function outcomeOf(
  database: Connection,
  row: ImportedThread,
  there: Owned | undefined,
  { settleConflicts }: Options,
): ImportOutcome {
  if (there !== undefined) {
    const users = there.user_id === NOBODY ? [] : [there.user_id]
    if (there.deleted_at !== null) return { outcome: 'conflict', with: 'deleted', users }
    return there.user_id === row.owner ? { outcome: 'same' } : { outcome: 'conflict', with: 'owner', users }
  }
  const others = runnersOf(database, row).filter((user) => user !== row.owner)
  if (others.length > 0 && !settleConflicts) return { outcome: 'conflict', with: 'observed', users: others }
  return { outcome: 'added' }
}

function valuesOf(row: ImportedThread) {
  return { ...row, archived: row.archived ? 1 : 0 }
}
