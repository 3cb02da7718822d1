/** Reads the SQLite file for operators: whole rows, statistics, and all data of a user. */
import type { RowFilter, StoredGrant, StoreStats, ThreadAdministration, ThreadKey, ThreadRow, UserData } from '../port.ts'
import { sql, type Connection, type Sql, type Values } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { GRANT_COLUMNS, grantsOf } from './grants.ts'
import { countObserved, runnersOf } from './observations.ts'
import { revocationsOfUser } from './revocations.ts'

interface Row extends Omit<ThreadRow, 'archived' | 'provisional'> {
  readonly archived: number
  readonly provisional: number
}

const ROWS = `SELECT scope, thread_id AS threadId, user_id AS owner, agent_id AS agentId, name, archived, created_at AS createdAt,
  last_used_at AS lastUsedAt, deleted_at AS deletedAt, provisional FROM threads`
const BY_KEY = 'ORDER BY scope, thread_id'
const ONE = sql<Row>(`${ROWS} WHERE scope = :scope AND thread_id = :threadId`)
const OF_OWNER = sql<Row>(`${ROWS} WHERE user_id = :userId AND user_id <> '' ${BY_KEY}`)

const counts = (where: string): Sql<Omit<StoreStats, 'observed' | 'conflicts'>> =>
  sql(
    `SELECT count(*) FILTER (WHERE deleted_at IS NULL) AS threads, count(*) FILTER (WHERE deleted_at IS NOT NULL) AS deleted,
     count(*) FILTER (WHERE provisional = 1) AS provisional,
     count(*) FILTER (WHERE user_id = '' AND deleted_at IS NULL) AS withheld,
     count(DISTINCT user_id) FILTER (WHERE user_id <> '' AND deleted_at IS NULL) AS owners,
     (SELECT count(*) FROM grants ${where}) AS grants, (SELECT count(*) FROM revocations) AS revocations
   FROM threads ${where}`,
  )
const COUNTS = counts('')
const COUNTS_OF_SCOPE = counts('WHERE scope = :scope')

const GRANTS = `SELECT scope, thread_id AS threadId, ${GRANT_COLUMNS} FROM grants`
const RECEIVED = sql<ThreadKey & StoredGrant>(`${GRANTS} WHERE kind = 'user' AND grantee = :userId ${BY_KEY}`)
const GIVEN = sql<ThreadKey & StoredGrant>(
  `${GRANTS} WHERE granted_by = :userId OR EXISTS (SELECT 1 FROM threads
     WHERE scope = grants.scope AND thread_id = grants.thread_id AND user_id = :userId) ${BY_KEY}, kind, grantee`,
)
const SEEN = sql<UserData['observed'][number]>(
  `SELECT scope, thread_id AS threadId, agent_id AS agentId, first_used_at AS firstUsedAt, last_used_at AS lastUsedAt
   FROM observations WHERE user_id = :userId ${BY_KEY}`,
)

export function rowsIn(file: SqliteFile): Pick<ThreadAdministration, 'thread' | 'threads' | 'stats' | 'userData'> {
  return {
    thread: (key) =>
      file.read((database) => {
        const row = database.get(ONE, { ...key })
        const runners = runnersOf(database, key)
        if (row === undefined && runners.length === 0) return null
        return { row: row === undefined ? null : rowOf(row), grants: grantsOf(database, key), runners }
      }),
    threads: (filter, after, limit) =>
      file.read((database) => database.all(sql<Row>(pageText(filter, after)), pageValues(filter, after, limit)).map(rowOf)),
    stats: (scope) => file.read((database) => statsOf(database, scope)),
    userData: (userId) =>
      file.read((database) => ({
        threads: database.all(OF_OWNER, { userId }).map(rowOf),
        granted: database.all(GIVEN, { userId }),
        received: database.all(RECEIVED, { userId }),
        observed: database.all(SEEN, { userId }),
        revocations: revocationsOfUser(database, userId),
      })),
  }
}

function pageText({ scope, owner, agentId, deleted = 'too' }: RowFilter, after: ThreadKey | null): string {
  const conditions = [
    ...(scope === undefined ? [] : ['scope = :within']),
    ...(owner === undefined ? [] : ['user_id = :owner']),
    ...(agentId === undefined ? [] : ['agent_id = :agentId']),
    ...(deleted === 'too' ? [] : [deleted === 'only' ? 'deleted_at IS NOT NULL' : 'deleted_at IS NULL']),
    ...(after === null ? [] : ['(scope, thread_id) > (:scope, :threadId)']),
  ]
  return `${ROWS} ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ${BY_KEY} LIMIT :limit`
}

function pageValues({ scope: within = '', owner = '', agentId = '' }: RowFilter, after: ThreadKey | null, limit: number): Values {
  return { within, owner, agentId, limit, ...after }
}

function rowOf({ archived, provisional, ...row }: Row): ThreadRow {
  return { ...row, archived: archived === 1, provisional: provisional === 1 }
}

function statsOf(database: Connection, scope: string | undefined): StoreStats {
  const counts = scope === undefined ? database.get(COUNTS) : database.get(COUNTS_OF_SCOPE, { scope })
  if (counts === undefined) throw new Error('a count had no answer')
  const { threads: observed, conflicts } = countObserved(database, scope)
  return { ...counts, observed, conflicts }
}
