/** Lists of threads from PostgreSQL, for runtimes that have none of their own. */
import type { ListedThread, OwnershipStore } from './port.ts'
import type { Database, Tables } from './postgres-database.ts'

const COLUMNS = 'thread_id, user_id, provisional, agent_id, name, archived, created_at, last_used_at'
const NAMED = `thread_id AS "threadId", user_id AS owner, provisional, agent_id AS "agentId", name, archived, created_at AS "createdAt",
  last_used_at AS "updatedAt"`
// One index range in the order of the list, whether or not there is a page before.
const IN_WINDOW = `deleted_at IS NULL AND ($2::text IS NULL OR agent_id = $2) AND ($3::boolean OR NOT archived)
  AND last_used_at <= $4 AND (last_used_at < $4 OR thread_id > $5)`
const ORDERED = 'ORDER BY last_used_at DESC, thread_id LIMIT $6'

/** Makes the part of the store that lists. */
export function listsOn(database: Database, { threads, grants }: Tables): Pick<OwnershipStore, 'listed'> {
  const OF_EVERYBODY = {
    name: 'listed-everybody',
    text: `SELECT ${NAMED}, NULL AS granted FROM ${threads} WHERE scope = $1 AND ${IN_WINDOW} ${ORDERED}`,
  }
  // What is granted is collected from the index of grantees, each thread once, and only the page's rights are looked up. LIMIT 1
  // keeps the planner to looking each of them up: it thinks too much of how many they are, and reads all threads instead.
  const OF_READER = {
    name: 'listed',
    text: `WITH
        granted AS (SELECT thread_id AS id FROM ${grants} WHERE kind = 'user' AND grantee = $7 AND scope = $1
          UNION SELECT thread_id FROM ${grants} WHERE kind = 'group' AND grantee = ANY($8::text[]) AND scope = $1),
        page AS (
          (SELECT ${COLUMNS} FROM ${threads} WHERE user_id = $7 AND user_id <> '' AND scope = $1 AND ${IN_WINDOW} ${ORDERED})
          UNION ALL
          (SELECT ${COLUMNS} FROM granted
            CROSS JOIN LATERAL (SELECT * FROM ${threads} WHERE scope = $1 AND thread_id = granted.id LIMIT 1) AS there
            WHERE user_id <> $7 AND ${IN_WINDOW} ${ORDERED})
          ${ORDERED})
      SELECT ${NAMED}, (SELECT max(access) FROM ${grants} WHERE scope = $1 AND thread_id = page.thread_id
          AND (kind = 'user' AND grantee = $7 OR kind = 'group' AND grantee = ANY($8::text[]))) AS granted
        FROM page ORDER BY last_used_at DESC, thread_id`,
  }
  return {
    listed(scope, reader, { agentId, includeArchived, after, limit }) {
      const window = [scope, agentId, includeArchived, after?.updatedAt ?? Number.MAX_SAFE_INTEGER, after?.threadId ?? '', limit]
      return reader === 'everybody'
        ? database.query<ListedThread>(OF_EVERYBODY, window)
        : database.query<ListedThread>(OF_READER, [...window, reader.userId, reader.groups])
    },
  }
}
