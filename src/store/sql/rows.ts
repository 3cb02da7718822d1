/** Reads for operators: whole rows, statistics, and all data of a user. */
import type { RowFilter, RowStore, StoreStats, ThreadRow, UserData, UserStore } from '../port/administration.ts'
import type { StoredGrant } from '../port/grants.ts'
import type { ThreadKey } from '../port/thread.ts'
import { all, type Engine } from './engine.ts'
import { GRANT_COLUMNS, grantsOfThread } from './grants.ts'
import { observationStatements } from './observations.ts'
import { revocationOf, revocationsOfUser } from './revocations.ts'
import { BY_KEY, KEY, ONE, sql, type Dialect, type Flag, type Sql } from './statement.ts'

interface Row extends Omit<ThreadRow, 'archived' | 'provisional'> {
  readonly archived: Flag
  readonly provisional: Flag
}

type Counts = Omit<StoreStats, 'observed' | 'conflicts'>

function rowStatements({ threads, grants, observations, revocations }: Dialect) {
  const rows = `SELECT ${KEY}, user_id AS owner, agent_id AS "agentId", name, archived, created_at AS "createdAt",
    last_used_at AS "lastUsedAt", deleted_at AS "deletedAt", provisional FROM ${threads}`
  const keyed = `SELECT ${KEY}, ${GRANT_COLUMNS} FROM ${grants}`
  return {
    one: sql<Row>(`${rows} WHERE ${ONE}`),
    page({ scope, owner, agentId, deleted = 'too' }: RowFilter, after: ThreadKey | null): Sql<Row> {
      const conditions = [
        ...(scope === undefined ? [] : ['scope = :within']),
        ...(owner === undefined ? [] : ['user_id = :owner']),
        ...(agentId === undefined ? [] : ['agent_id = :agentId']),
        ...(deleted === 'too' ? [] : [deleted === 'only' ? 'deleted_at IS NOT NULL' : 'deleted_at IS NULL']),
        ...(after === null ? [] : ['(scope, thread_id) > (:scope, :threadId)']),
      ]
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
      return sql(`${rows} ${where} ${BY_KEY} LIMIT :limit`)
    },
    counts(scope: string | undefined): Sql<Counts> {
      const where = scope === undefined ? '' : 'WHERE scope = :scope'
      return sql(`SELECT count(*) FILTER (WHERE deleted_at IS NULL) AS threads, count(*) FILTER (WHERE deleted_at IS NOT NULL) AS deleted,
          count(*) FILTER (WHERE provisional) AS provisional,
          count(*) FILTER (WHERE user_id = '' AND deleted_at IS NULL) AS withheld,
          count(DISTINCT user_id) FILTER (WHERE user_id <> '' AND deleted_at IS NULL) AS owners,
          (SELECT count(*) FROM ${grants} ${where}) AS grants, (SELECT count(*) FROM ${revocations}) AS revocations
        FROM ${threads} ${where}`)
    },
    ofOwner: sql<Row>(`${rows} WHERE user_id = :userId AND user_id <> '' ${BY_KEY}`),
    received: sql<ThreadKey & StoredGrant>(`${keyed} WHERE kind = 'user' AND grantee = :userId ${BY_KEY}`),
    given: sql<ThreadKey & StoredGrant>(`${keyed} WHERE granted_by = :userId
      OR (scope, thread_id) IN (SELECT scope, thread_id FROM ${threads} WHERE user_id = :userId) ${BY_KEY}, kind, grantee`),
    seen: sql<UserData['observed'][number]>(`SELECT ${KEY}, agent_id AS "agentId", first_used_at AS "firstUsedAt",
        last_used_at AS "lastUsedAt" FROM ${observations} WHERE user_id = :userId ${BY_KEY}`),
  }
}

export function rowsIn({ dialect, read }: Engine): RowStore & Pick<UserStore, 'userData'> {
  const rows = rowStatements(dialect)
  const { runs, count } = observationStatements(dialect)
  const grantsOf = grantsOfThread(dialect)
  const revocationsOf = revocationsOfUser(dialect)
  return {
    thread: (key) =>
      read('snapshot', function* () {
        const [row] = yield* all(rows.one, { ...key })
        const runners = (yield* all(runs, dialect.keysOf([key]))).map(({ userId }) => userId)
        if (row === undefined && runners.length === 0) return null
        return { row: row === undefined ? null : rowOf(row), grants: yield* all(grantsOf, { ...key }), runners }
      }),
    threads: async (filter, after, limit) => {
      const { scope = '', owner = '', agentId = '' } = filter
      const values = { within: scope, owner, agentId, limit, ...after }
      return (await read('survey', () => all(rows.page(filter, after), values))).map(rowOf)
    },
    stats: (scope) =>
      read('survey', function* () {
        const values = { scope: scope ?? null }
        const [counts] = yield* all(rows.counts(scope), values)
        const [seen] = yield* all(count(scope), values)
        if (counts === undefined || seen === undefined) throw new Error('a count had no answer')
        return { ...counts, observed: seen.threads, conflicts: seen.conflicts }
      }),
    userData: (userId) =>
      read('survey', function* () {
        return {
          threads: (yield* all(rows.ofOwner, { userId })).map(rowOf),
          granted: yield* all(rows.given, { userId }),
          received: yield* all(rows.received, { userId }),
          observed: yield* all(rows.seen, { userId }),
          revocations: (yield* all(revocationsOf, { userId })).map(revocationOf),
        }
      }),
  }
}

function rowOf({ archived, provisional, ...row }: Row): ThreadRow {
  return { ...row, archived: Boolean(archived), provisional: Boolean(provisional) }
}
