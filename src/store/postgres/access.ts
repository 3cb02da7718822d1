/** The queries for decisions: one for a single thread, one for several. */
import type { Statement } from '../../postgres/pool.ts'
import type { Tables } from '../sql/statement.ts'

/** ONE: $1 scope, $2 id, $3 user, $4 groups, $5 whether to read all grants. SEVERAL: $2 is the list of ids. */
export function accessStatements({ threads, grants, observations }: Tables): {
  readonly ONE: Statement
  readonly SEVERAL: Statement
} {
  // Reads by the reader's own keys, never all grants of the thread: grants to others must take no time. 'write' > 'read'.
  const right = (id: string): string =>
    `(SELECT max(access) AS granted FROM (
       SELECT access FROM ${grants} WHERE scope = $1 AND thread_id = ${id} AND kind = 'user' AND grantee = $3
       UNION ALL
       SELECT access FROM ${grants} WHERE scope = $1 AND thread_id = ${id} AND kind = 'group' AND grantee = ANY($4::text[])
     ) AS found)`
  const runners = (id: string): string =>
    `(SELECT array_agg(user_id ORDER BY first_used_at, user_id) AS runners FROM ${observations}
      WHERE scope = $1 AND thread_id = ${id} AND ran)`
  return {
    // Finds the row or the next one, so that the time reveals nothing. Reads all grants only of a thread that the reader may use.
    ONE: {
      name: 'access',
      text: `SELECT near.thread_id = $2 AS here, near.user_id AS owner, near.deleted, near.provisional, mine.granted, seen.runners,
          CASE WHEN $5::boolean AND near.thread_id = $2 AND NOT near.deleted AND NOT near.provisional AND near.user_id <> ''
              AND (near.user_id = $3 OR mine.granted IS NOT NULL)
            THEN (SELECT coalesce(json_agg(json_build_object('kind', kind, 'id', grantee, 'right', access)), '[]')
              FROM ${grants} WHERE scope = $1 AND thread_id = $2)
          END AS grants
        FROM ${right('$2')} AS mine CROSS JOIN ${runners('$2')} AS seen
        LEFT JOIN (SELECT thread_id, user_id, deleted_at IS NOT NULL AS deleted, provisional FROM ${threads}
          WHERE scope = $1 AND thread_id >= $2 ORDER BY thread_id LIMIT 1) AS near ON true`,
    },
    // Reads each table once for all ids, in index order. Joins would look into three tables for each id, or do worse.
    SEVERAL: {
      name: 'access-to-several',
      text: `SELECT id AS "threadId", max(owner) AS owner, bool_or(deleted) AS deleted, bool_or(provisional) AS provisional,
          max(access) AS granted, max(users) AS runners
        FROM (
          SELECT thread_id AS id, user_id AS owner, deleted_at IS NOT NULL AS deleted, provisional, NULL AS access, NULL::text[] AS users
            FROM ${threads} WHERE scope = $1 AND thread_id = ANY($2::text[])
          UNION ALL SELECT thread_id, NULL, NULL, NULL, access, NULL
            FROM ${grants} WHERE scope = $1 AND thread_id = ANY($2::text[]) AND kind = 'user' AND grantee = $3
          UNION ALL SELECT thread_id, NULL, NULL, NULL, access, NULL
            FROM ${grants} WHERE scope = $1 AND thread_id = ANY($2::text[]) AND kind = 'group'
              AND grantee || '' IN (SELECT unnest($4::text[]))
          UNION ALL SELECT thread_id, NULL, NULL, NULL, NULL, array_agg(user_id ORDER BY first_used_at, user_id)
            FROM ${observations} WHERE scope = $1 AND thread_id = ANY($2::text[]) AND ran GROUP BY thread_id
        ) AS said GROUP BY id HAVING count(owner) + count(users) > 0`,
    },
  }
}
