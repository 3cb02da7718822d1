/** Stores grants in PostgreSQL. */
import { BY_OPERATOR, MAX_GRANTS, MAX_GRANTS_TO_ONE, type Right } from '../../core/decide/sharing.ts'
import type { Queries } from '../../postgres/pool.ts'
import type { GrantStore, StoredGrant, ThreadKey } from '../port.ts'
import type { Database, Tables } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

export const GRANT_COLUMNS = 'kind, grantee AS id, access AS "right", granted_by AS "grantedBy", granted_at AS "grantedAt"'

const WHERE = 'WHERE scope = $1 AND thread_id = $2'

/** The state before a grant: the grantee's right and its giver, and the counts that have bounds. */
interface Survey {
  readonly before: Right | null
  readonly giver: string | null
  readonly count: number
  readonly toOne: number
}

export function grantsOn(database: Database, { threads, grants }: Tables, invalidations: PostgresInvalidations): GrantStore {
  // Only live rows with an owner have grants. The lock serializes grants with statements that remove them.
  const OWNER = `SELECT user_id AS owner FROM ${threads} ${WHERE} AND deleted_at IS NULL AND user_id <> ''`
  const LOCK = { text: `${OWNER} FOR UPDATE` }
  const OF_THREAD = { text: `SELECT ${GRANT_COLUMNS} FROM ${grants} ${WHERE} ORDER BY granted_at, kind, grantee` }
  const SURVEY = {
    text: `SELECT (SELECT access FROM ${grants} ${WHERE} AND kind = $3 AND grantee = $4) AS before,
      (SELECT granted_by FROM ${grants} ${WHERE} AND kind = $3 AND grantee = $4) AS giver,
      (SELECT count(*) FROM ${grants} ${WHERE} AND (granted_by = $6) = ($5 = $6)) AS count,
      (SELECT count(*) FROM (SELECT FROM ${grants}
        WHERE granted_by = $5 AND kind = $3 AND grantee = $4 LIMIT ${MAX_GRANTS_TO_ONE}) AS given) AS "toOne"`,
  }
  const PUT = {
    text: `INSERT INTO ${grants} (scope, thread_id, kind, grantee, access, granted_by, granted_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (scope, thread_id, kind, grantee)
      DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by, granted_at = excluded.granted_at`,
  }
  const REMOVE = { text: `DELETE FROM ${grants} ${WHERE} AND kind = $3 AND grantee = $4 RETURNING 1 AS done` }
  const TO = {
    text: `SELECT scope, thread_id AS "threadId", ${GRANT_COLUMNS} FROM ${grants}
      WHERE kind = $1 AND grantee = $2 AND ($3::text IS NULL OR (scope, thread_id) > ($3, $4))
      ORDER BY scope, thread_id LIMIT $5`,
  }

  const isGrantable = async (queries: Queries, statement: { text: string }, key: ThreadKey, owner: string | null) => {
    const [row] = await queries.query<{ owner: string }>(statement, [key.scope, key.threadId])
    return row !== undefined && (owner === null || row.owner === owner)
  }
  return {
    grants: (key, owner) =>
      database.transaction(async (queries) => {
        if (!(await isGrantable(queries, { text: OWNER }, key, owner))) return null
        return queries.query<StoredGrant>(OF_THREAD, [key.scope, key.threadId])
      }, 'snapshot'),
    grant: (key, owner, { kind, id, right, grantedBy, grantedAt }) =>
      invalidations.change(async (queries, changed) => {
        if (!(await isGrantable(queries, LOCK, key, owner))) return 'not-owner'
        const one = [key.scope, key.threadId, kind, id]
        const [there] = await queries.query<Survey>(SURVEY, [...one, grantedBy, BY_OPERATOR])
        if (there === undefined) throw new Error('a count had no answer')
        const { before, giver, count, toOne } = there
        if (before === right) return 'unchanged'
        const byOperator = grantedBy === BY_OPERATOR
        const isRoomTaken = giver === null || (giver === BY_OPERATOR) !== byOperator
        if (isRoomTaken && count >= MAX_GRANTS) return 'too-many'
        if (!byOperator && giver !== grantedBy && toOne >= MAX_GRANTS_TO_ONE) return 'too-many'
        await queries.query(PUT, [...one, right, grantedBy, grantedAt])
        changed([key])
        return 'done'
      }),
    ungrant: (key, owner, { kind, id }) =>
      invalidations.change(async (queries, changed) => {
        if (!(await isGrantable(queries, LOCK, key, owner))) return 'not-owner'
        const removed = await queries.query(REMOVE, [key.scope, key.threadId, kind, id])
        if (removed.length === 0) return 'unchanged'
        changed([key])
        return 'done'
      }),
    grantedTo: ({ kind, id }, after, limit) =>
      database.query<ThreadKey & StoredGrant>(TO, [kind, id, after?.scope ?? null, after?.threadId ?? null, limit]),
  }
}
