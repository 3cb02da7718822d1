/** Lists of threads from the SQLite file, for runtimes that have none of their own. */
import type { Reader, Right } from '../core/sharing.ts'
import type { ListedThread, ListWindow } from './port.ts'
import { sql, type Connection } from './sqlite-connection.ts'

interface Row extends Omit<ListedThread, 'archived' | 'provisional' | 'granted'> {
  readonly archived: number
  readonly provisional: number
  readonly granted: Right | null
}

const COLUMNS = 'thread_id, user_id, provisional, agent_id, name, archived, created_at, last_used_at'
const NAMED = `thread_id AS threadId, user_id AS owner, provisional, agent_id AS agentId, name, archived, created_at AS createdAt,
  last_used_at AS updatedAt`
// One index range in the order of the list, whether or not there is a page before.
const IN_WINDOW = `deleted_at IS NULL AND (:agentId IS NULL OR agent_id = :agentId) AND (:includeArchived = 1 OR archived = 0)
  AND last_used_at <= :usedAt AND (last_used_at < :usedAt OR thread_id > :afterId)`
const ORDERED = 'ORDER BY last_used_at DESC, thread_id LIMIT :limit'

const OF_EVERYBODY = sql<Row>(`SELECT ${NAMED}, NULL AS granted FROM threads WHERE scope = :scope AND ${IN_WINDOW} ${ORDERED}`)
// What is granted is collected from the index of grantees, each thread once, and only the page's rights are looked up.
const OF_READER = sql<Row>(
  `WITH
     mine AS (SELECT ${COLUMNS} FROM threads
       WHERE user_id = :userId AND user_id <> '' AND scope = :scope AND ${IN_WINDOW} ${ORDERED}),
     granted AS (SELECT thread_id AS id FROM grants WHERE kind = 'user' AND grantee = :userId AND scope = :scope
       UNION SELECT thread_id FROM json_each(:groups) AS named
         CROSS JOIN grants ON kind = 'group' AND grantee = named.value AND scope = :scope),
     shared AS (SELECT ${COLUMNS} FROM granted CROSS JOIN threads ON scope = :scope AND thread_id = granted.id
       WHERE user_id <> :userId AND ${IN_WINDOW} ${ORDERED}),
     page AS (SELECT * FROM mine UNION ALL SELECT * FROM shared ${ORDERED})
   SELECT ${NAMED}, (SELECT max(access) FROM (
       SELECT access FROM grants WHERE scope = :scope AND thread_id = page.thread_id AND kind = 'user' AND grantee = :userId
       UNION ALL SELECT access FROM json_each(:groups) AS named CROSS JOIN grants
         ON scope = :scope AND thread_id = page.thread_id AND kind = 'group' AND grantee = named.value)) AS granted
   FROM page ORDER BY last_used_at DESC, thread_id`,
)

/** A page of a list (port.ts). */
export function listedIn(
  database: Connection,
  scope: string,
  reader: Reader | 'everybody',
  { agentId, includeArchived, after, limit }: ListWindow,
): readonly ListedThread[] {
  const values = {
    scope,
    agentId,
    includeArchived: includeArchived ? 1 : 0,
    usedAt: after?.updatedAt ?? Number.MAX_SAFE_INTEGER,
    afterId: after?.threadId ?? '',
    limit,
  }
  const rows =
    reader === 'everybody'
      ? database.all(OF_EVERYBODY, values)
      : database.all(OF_READER, { ...values, userId: reader.userId, groups: JSON.stringify(reader.groups) })
  return rows.map((row) => ({ ...row, archived: row.archived === 1, provisional: row.provisional === 1 }))
}
