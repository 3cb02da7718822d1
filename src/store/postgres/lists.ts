/** Lists of threads from PostgreSQL, for runtimes that have none of their own. */
import type { Statement } from '../../postgres/pool.ts'
import type { ListedThread, ListWindow, OwnershipStore } from '../port.ts'
import type { Database, Tables } from './database.ts'

const NAMED = `there.thread_id AS "threadId", user_id AS owner, provisional, agent_id AS "agentId", name, archived,
  created_at AS "createdAt", there.last_used_at AS "updatedAt"`

/** Makes the part of the store that lists. */
export function listsOn(database: Database, { threads, grants }: Tables): Pick<OwnershipStore, 'listed'> {
  // The values are $1 the scope, $2 the agent, $3 and $4 where the page before ended, $5 the limit, $6 and $7 the reader.
  /**
   * The keys of a page of the threads of `whose`. Each part is one range of an index in the order of the list, of which no more
   * is read than the page is long: what was used at the very time at which the page before ended, and what was used before.
   */
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
  // The rows themselves are looked up only of what is on the page. LIMIT 1 keeps the planner to looking each of them up: it thinks
  // too much of how many they are, and reads all threads instead.
  const rowOf = (id: string): string =>
    `LATERAL (SELECT * FROM ${threads} WHERE scope = $1 AND thread_id = ${id} LIMIT 1) AS there`

  const everybody = (agent: string, archived: readonly boolean[]): string => `
    WITH page AS (${pageOf('scope = $1', agent, archived)} ${ORDERED})
    SELECT ${NAMED}, NULL AS granted FROM page CROSS JOIN ${rowOf('page.thread_id')}
      ORDER BY page.last_used_at DESC, page.thread_id`
  // What is granted is collected from the index of grantees, each thread once, with its right.
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
