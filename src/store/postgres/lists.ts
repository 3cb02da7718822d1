/** Lists threads from PostgreSQL, for runtimes without a list of their own. */
import type { Statement } from '../../postgres/pool.ts'
import type { ListedThread, ListStore, ListWindow } from '../port/lists.ts'
import type { Database } from './database.ts'
import type { Tables } from '../sql/statement.ts'

const NAMED = `there.thread_id AS "threadId", user_id AS owner, provisional, agent_id AS "agentId", name, archived,
  created_at AS "createdAt", there.last_used_at AS "updatedAt"`

export function listsOn(database: Database, { threads, grants }: Tables): ListStore {
  // Two parts, used exactly at the previous page's end and used earlier: each reads at most one page of one index range.
  // $1 scope, $2 agent, $3 and $4 the end of the previous page, $5 limit, $6 and $7 the reader.
  const pageOf = (whose: string, agent: string, archived: readonly boolean[]): string =>
    archived
      .flatMap((is) =>
        ['last_used_at = $3 AND thread_id > $4', 'last_used_at < $3'].map(
          (range) => `(SELECT thread_id, last_used_at FROM ${threads}
            WHERE ${whose} ${agent} AND archived = ${is} AND deleted_at IS NULL AND ${range}
            ORDER BY last_used_at DESC, thread_id LIMIT $5)`,
        ),
      )
      .join(' UNION ALL ')
  const ORDERED = 'ORDER BY last_used_at DESC, thread_id LIMIT $5'
  // LIMIT 1 makes the planner look up each row by key. Otherwise it overestimates their number and reads all threads.
  const rowOf = (id: string): string =>
    `LATERAL (SELECT * FROM ${threads} WHERE scope = $1 AND thread_id = ${id} LIMIT 1) AS there`

  const everybody = (agent: string, archived: readonly boolean[]): string => `
    WITH page AS (${pageOf('scope = $1', agent, archived)} ${ORDERED})
    SELECT ${NAMED}, NULL AS granted FROM page CROSS JOIN ${rowOf('page.thread_id')}
      ORDER BY page.last_used_at DESC, page.thread_id`
  // Reads the index of grantees: each thread once, with its right.
  const ofReader = (agent: string, archived: readonly boolean[]): string => `
    WITH
      granted AS MATERIALIZED (SELECT thread_id, max(access) AS access FROM (
          SELECT thread_id, access FROM ${grants} WHERE kind = 'user' AND grantee = $6 AND scope = $1
          UNION ALL SELECT thread_id, access FROM ${grants} WHERE kind = 'group' AND grantee = ANY($7::text[]) AND scope = $1
        ) AS given GROUP BY thread_id),
      page AS (
        ${pageOf("user_id = $6 AND user_id <> '' AND scope = $1", agent, archived)}
        UNION ALL
        (SELECT there.thread_id, there.last_used_at FROM granted CROSS JOIN ${rowOf('granted.thread_id')}
          WHERE user_id <> $6 ${agent} AND archived = ANY('{${archived.join()}}'::boolean[]) AND deleted_at IS NULL
            AND last_used_at <= $3 AND (last_used_at < $3 OR there.thread_id > $4)
          ORDER BY last_used_at DESC, there.thread_id LIMIT $5)
        ${ORDERED})
    SELECT ${NAMED}, granted.access AS granted
      FROM page LEFT JOIN granted USING (thread_id) CROSS JOIN ${rowOf('page.thread_id')} ORDER BY page.last_used_at DESC, page.thread_id`

  const statements = new Map<string, Statement>()
  const statementFor = (kind: 'everybody' | 'reader', { agentId, includeArchived }: ListWindow): Statement => {
    const name = `listed-${kind}${agentId === null ? '' : '-agent'}${includeArchived ? '-archived' : ''}`
    let statement = statements.get(name)
    if (statement === undefined) {
      const make = kind === 'everybody' ? everybody : ofReader
      const agent = agentId === null ? 'AND $2::text IS NULL' : 'AND agent_id = $2'
      statements.set(name, (statement = { name, text: make(agent, includeArchived ? [false, true] : [false]) }))
    }
    return statement
  }
  return {
    listed(scope, reader, window) {
      const { agentId, after, limit } = window
      const values = [scope, agentId, after?.updatedAt ?? Number.MAX_SAFE_INTEGER, after?.threadId ?? '', limit]
      return reader === 'everybody'
        ? database.query<ListedThread>(statementFor('everybody', window), values)
        : database.query<ListedThread>(statementFor('reader', window), [...values, reader.userId, reader.groups])
    },
  }
}
