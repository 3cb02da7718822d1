/** SQLite as the shared administration uses it (src/store/sql/statement.ts). */
import { type Engine, type Work, sql, type Dialect } from '../sql/statement.ts'
import type { Connection, Values } from './connection.ts'
import type { SqliteFile } from './file.ts'
import type { Changed, SqliteInvalidations } from './invalidations.ts'

const INSERT = sql<{ readonly done: 1 }>(
  `INSERT INTO threads (scope, thread_id, user_id, agent_id, name, archived, created_at, last_used_at)
   VALUES (:scope, :threadId, :owner, :agentId, :name, :archived, :createdAt, :lastUsedAt) RETURNING 1 AS done`,
)

const SQLITE: Dialect = {
  threads: 'threads',
  grants: 'grants',
  observations: 'observations',
  revocations: 'revocations',
  versions: 'versions',
  secrets: 'secrets',
  asked: '(SELECT value ->> 0 AS scope, value ->> 1 AS thread_id FROM json_each(:keys)) AS asked',
  keysOf: (keys) => ({ keys: JSON.stringify(keys.map(({ scope, threadId }) => [scope, threadId])) }),
  insertionOf: (rows) => rows.map((row) => ({ sql: INSERT, values: { ...row, archived: row.archived ? 1 : 0 } })),
  // With statistics SQLite would read all threads in order until it has found enough of the grantee's.
  grantsByGrantee: 'grants INDEXED BY grants_by_grantee',
  // A step that writes has the lock of the whole file.
  forUpdate: '',
  lockRows: null,
  isUpstreamDeleted: 'upstream_deleted = 1',
  isUnconfirmed: 'provisional = 1',
  larger: 'max',
  smaller: 'min',
  made: 'NULL',
}

export function engineIn(file: SqliteFile, invalidations: SqliteInvalidations): Engine {
  return {
    dialect: SQLITE,
    read: (_kind, work) => file.read((database) => perform(database, work())),
    write: (_kind, work) => file.write((database) => perform(database, work())),
    change: (work) =>
      invalidations.write((database) => {
        let changed: Changed = 'nothing'
        const result = perform(
          database,
          work((key) => (changed = key ?? 'many')),
        )
        return { result, changed }
      }),
    crossed: () => new Error('a row was changed in spite of the lock'),
    // The file notices for itself that it was replaced.
    requireSame: () => {},
  }
}

function perform<T>(database: Connection, work: Work<T>): T {
  let step = work.next()
  while (step.done !== true) step = work.next(database.all(step.value.sql, step.value.values as Values))
  return step.value
}
