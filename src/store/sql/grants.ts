/** Grants of rights on threads. */
import { BY_OPERATOR, MAX_GRANTS, MAX_GRANTS_TO_ONE, type Right } from '../../core/decide/sharing.ts'
import type { GrantOutcome, GrantStore, StoredGrant } from '../port/grants.ts'
import type { ThreadKey } from '../port/thread.ts'
import { all, type Engine, BY_KEY, KEY, ONE, sql, type Dialect, type Sql } from './statement.ts'

export const GRANT_COLUMNS = 'kind, grantee AS id, access AS "right", granted_by AS "grantedBy", granted_at AS "grantedAt"'

interface Survey {
  readonly before: Right | null
  readonly giver: string | null
  readonly count: number
  readonly toOne: number
}

export function grantsOfThread({ grants }: Dialect): Sql<StoredGrant> {
  return sql(`SELECT ${GRANT_COLUMNS} FROM ${grants} WHERE ${ONE} ORDER BY granted_at, kind, grantee`)
}

export function grantsIn({ dialect, read, change }: Engine): GrantStore {
  const { threads, grants, grantsByGrantee, forUpdate } = dialect
  const grant = `${ONE} AND kind = :kind AND grantee = :id`
  const owner = `SELECT user_id AS owner FROM ${threads} WHERE ${ONE} AND deleted_at IS NULL AND user_id <> ''`
  const ownerOf = sql<{ owner: string }>(owner)
  // Serializes grants with statements that remove them.
  const lock = sql<{ owner: string }>(`${owner} ${forUpdate}`)
  const ofThread = grantsOfThread(dialect)
  // Grants of operators and grants of all others are counted separately.
  const survey = sql<Survey>(`SELECT (SELECT access FROM ${grants} WHERE ${grant}) AS before,
      (SELECT granted_by FROM ${grants} WHERE ${grant}) AS giver,
      (SELECT count(*) FROM ${grants} WHERE ${ONE} AND (granted_by = :operator) = (:grantedBy = :operator)) AS count,
      (SELECT count(*) FROM (SELECT 1 FROM ${grants}
        WHERE granted_by = :grantedBy AND kind = :kind AND grantee = :id LIMIT ${MAX_GRANTS_TO_ONE}) AS given) AS "toOne"`)
  const put = sql(`INSERT INTO ${grants} (scope, thread_id, kind, grantee, access, granted_by, granted_at)
      VALUES (:scope, :threadId, :kind, :id, :right, :grantedBy, :grantedAt) ON CONFLICT (scope, thread_id, kind, grantee)
      DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by, granted_at = excluded.granted_at`)
  const remove = sql<{ done: 1 }>(`DELETE FROM ${grants} WHERE ${grant} RETURNING 1 AS done`)
  const to = (after: ThreadKey | null): Sql<ThreadKey & StoredGrant> =>
    sql(`SELECT ${KEY}, ${GRANT_COLUMNS} FROM ${grantsByGrantee} WHERE kind = :kind AND grantee = :id
        ${after === null ? '' : 'AND (scope, thread_id) > (:scope, :threadId)'} ${BY_KEY} LIMIT :limit`)
  return {
    grants: (key, user) =>
      read('snapshot', function* () {
        const [row] = yield* all(ownerOf, { ...key })
        return isOwnedBy(row, user) ? yield* all(ofThread, { ...key }) : null
      }),
    grant: (key, user, given) =>
      change<GrantOutcome>(function* (changed) {
        const [row] = yield* all(lock, { ...key })
        if (!isOwnedBy(row, user)) return 'not-owner'
        const values = { ...key, ...given, operator: BY_OPERATOR }
        const [counts] = yield* all(survey, values)
        const outcome = grantOutcome(counts, given)
        if (outcome !== 'done') return outcome
        yield* all(put, values)
        changed(key)
        return outcome
      }),
    ungrant: (key, user, grantee) =>
      change<GrantOutcome>(function* (changed) {
        const [row] = yield* all(lock, { ...key })
        if (!isOwnedBy(row, user)) return 'not-owner'
        if ((yield* all(remove, { ...key, ...grantee })).length === 0) return 'unchanged'
        changed(key)
        return 'done'
      }),
    grantedTo: (grantee, after, limit) => read('statement', () => all(to(after), { ...grantee, ...after, limit })),
  }
}

function isOwnedBy(row: { readonly owner: string } | undefined, owner: string | null): boolean {
  return row !== undefined && (owner === null || row.owner === owner)
}

/** For `done`, the caller must write the grant. The thread may have grants. */
function grantOutcome(survey: Survey | undefined, { right, grantedBy }: StoredGrant): GrantOutcome {
  if (survey === undefined) throw new Error('a count had no answer')
  const { before, giver, count, toOne } = survey
  if (before === right) return 'unchanged'
  const byOperator = grantedBy === BY_OPERATOR
  const isRoomTaken = giver === null || (giver === BY_OPERATOR) !== byOperator
  if (isRoomTaken && count >= MAX_GRANTS) return 'too-many'
  if (!byOperator && giver !== grantedBy && toOne >= MAX_GRANTS_TO_ONE) return 'too-many'
  return 'done'
}
