/** Reads PostgreSQL for operators: whole rows, statistics, and all data of a user. */
import type { RowFilter, StoredGrant, StoreStats, ThreadAdministration, ThreadKey, ThreadRow, UserData } from '../port.ts'
import type { Database, Tables } from './database.ts'
import { GRANT_COLUMNS } from './grants.ts'
import { observedCountText, runnersText } from './observations.ts'
import { revocationOf, revocationsOfUserText } from './revocations.ts'

const BY_KEY = 'ORDER BY scope, thread_id'

export function rowsOn(
  database: Database,
  tables: Tables,
): Pick<ThreadAdministration, 'thread' | 'threads' | 'stats' | 'userData'> {
  const { threads, grants, observations, revocations } = tables
  const ROWS = `SELECT scope, thread_id AS "threadId", user_id AS owner, agent_id AS "agentId", name, archived,
    created_at AS "createdAt", last_used_at AS "lastUsedAt", deleted_at AS "deletedAt", provisional FROM ${threads}`
  const ONE = { text: `${ROWS} WHERE scope = $1 AND thread_id = $2` }
  const RUNNERS = { text: runnersText(observations) }
  const GRANTS = {
    text: `SELECT ${GRANT_COLUMNS} FROM ${grants} WHERE scope = $1 AND thread_id = $2 ORDER BY granted_at, kind, grantee`,
  }
  const counts = (where: string) => ({
    text: `SELECT count(*) FILTER (WHERE deleted_at IS NULL) AS threads, count(*) FILTER (WHERE deleted_at IS NOT NULL) AS deleted,
        count(*) FILTER (WHERE provisional) AS provisional,
        count(*) FILTER (WHERE user_id = '' AND deleted_at IS NULL) AS withheld,
        count(DISTINCT user_id) FILTER (WHERE user_id <> '' AND deleted_at IS NULL) AS owners,
        (SELECT count(*) FROM ${grants} ${where}) AS grants, (SELECT count(*) FROM ${revocations}) AS revocations
      FROM ${threads} ${where}`,
  })
  const COUNTS = counts('')
  const COUNTS_OF_SCOPE = counts('WHERE scope = $1')
  const OBSERVED = { text: observedCountText(tables) }
  const KEYED = `SELECT scope, thread_id AS "threadId", ${GRANT_COLUMNS} FROM ${grants} AS given`
  const OF_OWNER = { text: `${ROWS} WHERE user_id = $1 AND user_id <> '' ${BY_KEY}` }
  const RECEIVED = { text: `${KEYED} WHERE kind = 'user' AND grantee = $1 ${BY_KEY}` }
  const GIVEN = {
    text: `${KEYED} WHERE granted_by = $1 OR (scope, thread_id) IN (SELECT scope, thread_id FROM ${threads} WHERE user_id = $1)
      ${BY_KEY}, kind, grantee`,
  }
  const SEEN = {
    text: `SELECT scope, thread_id AS "threadId", agent_id AS "agentId", first_used_at AS "firstUsedAt", last_used_at AS "lastUsedAt"
      FROM ${observations} WHERE user_id = $1 ${BY_KEY}`,
  }
  const REVOKED = { text: revocationsOfUserText(revocations) }

  return {
    thread: (key) =>
      database.transaction(async (queries) => {
        const one = [key.scope, key.threadId]
        const [row] = await queries.query<ThreadRow>(ONE, one)
        const runners = await queries.query<{ userId: string }>(RUNNERS, one)
        if (row === undefined && runners.length === 0) return null
        const given = await queries.query<StoredGrant>(GRANTS, one)
        return { row: row ?? null, grants: given, runners: runners.map(({ userId }) => userId) }
      }, 'snapshot'),
    threads: (filter, after, limit) =>
      database.transaction((queries) => {
        const { where, values } = conditions(filter, after)
        const text = `${ROWS}${where} ${BY_KEY} LIMIT $${values.length + 1}`
        return queries.query<ThreadRow>({ text }, [...values, limit])
      }, 'survey'),
    stats: (scope) =>
      database.transaction(async (queries) => {
        const [counted] = await queries.query<Omit<StoreStats, 'observed' | 'conflicts'>>(
          scope === undefined ? COUNTS : COUNTS_OF_SCOPE,
          scope === undefined ? [] : [scope],
        )
        const [seen] = await queries.query<{ threads: number; conflicts: number }>(OBSERVED, [scope ?? null])
        if (counted === undefined || seen === undefined) throw new Error('a count had no answer')
        return { ...counted, observed: seen.threads, conflicts: seen.conflicts }
      }, 'survey'),
    userData: (userId) =>
      database.transaction(
        async (queries) => ({
          threads: await queries.query<ThreadRow>(OF_OWNER, [userId]),
          granted: await queries.query<ThreadKey & StoredGrant>(GIVEN, [userId]),
          received: await queries.query<ThreadKey & StoredGrant>(RECEIVED, [userId]),
          observed: await queries.query<UserData['observed'][number]>(SEEN, [userId]),
          revocations: (await queries.query<Parameters<typeof revocationOf>[0]>(REVOKED, [userId])).map(revocationOf),
        }),
        'survey',
      ),
  }
}

function conditions(
  { scope, owner, agentId, deleted = 'too' }: RowFilter,
  after: ThreadKey | null,
): { readonly where: string; readonly values: readonly unknown[] } {
  const values: unknown[] = []
  const parameter = (value: unknown): string => `$${values.push(value)}`
  const all = [
    ...(scope === undefined ? [] : [`scope = ${parameter(scope)}`]),
    ...(owner === undefined ? [] : [`user_id = ${parameter(owner)}`]),
    ...(agentId === undefined ? [] : [`agent_id = ${parameter(agentId)}`]),
    ...(deleted === 'too' ? [] : [deleted === 'only' ? 'deleted_at IS NOT NULL' : 'deleted_at IS NULL']),
    ...(after === null ? [] : [`(scope, thread_id) > (${parameter(after.scope)}, ${parameter(after.threadId)})`]),
  ]
  return { where: all.length === 0 ? '' : ` WHERE ${all.join(' AND ')}`, values }
}
