/** Thread ownership in PostgreSQL, as requests need it. */
import { randomBytes, randomUUID } from 'node:crypto'
import { widest, type Grant, type Right } from '../../core/decide/sharing.ts'
import type { AccessStore, RowFacts, ThreadAccess } from '../port/access.ts'
import { LONGEST_RUN, type Claim, type ClaimResult, type ClaimStore, type OwnerChanges } from '../port/claims.ts'
import type { StoreState } from '../port/state.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import { ATTEMPTS } from '../../postgres/pool.ts'
import { crossed, storable, type Database } from './database.ts'
import type { Tables } from '../sql/statement.ts'
import type { PostgresInvalidations } from './invalidations.ts'
import { settlingOn } from './settling.ts'
import { accessStatements } from './access.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const WHERE = 'WHERE scope = $1 AND thread_id = $2'
// NOBODY is no user: no user may change unowned rows.
const MINE = `${WHERE} AND user_id = $3 AND user_id <> ''`

interface Row {
  readonly owner: string
  readonly deleted: boolean
  readonly provisional: boolean
  readonly usedAt: number
  /** True if a run must be recorded: a deletion is pending, or this process has sent none of the runs. */
  readonly stale: boolean
}

interface AccessRow {
  /** False if the row is of the next thread; null without a row. */
  readonly here: boolean | null
  readonly owner: string
  readonly deleted: boolean
  readonly provisional: boolean
  readonly granted: Right | null
  readonly runners: readonly string[] | null
  /** All grants of the row, if it may be cached. */
  readonly grants: readonly Grant[] | null
}

interface ReaderRow extends Omit<RowFacts, 'granted'> {
  readonly threadId: string
  /** Null in the row that says that the reader owns the thread. */
  readonly granted: Right | null
}

type Ownership = AccessStore & ClaimStore & OwnerChanges & Pick<StoreState, 'isEmpty' | 'secret'>

export function ownershipOn(database: Database, tables: Tables, invalidations: PostgresInvalidations): Ownership {
  const { threads, grants, secrets } = tables
  const { ONE, SEVERAL } = accessStatements(tables)
  const ROW = {
    name: 'row',
    text: `SELECT user_id AS owner, deleted_at IS NOT NULL AS deleted, provisional, last_used_at AS "usedAt",
      deletion IS NOT NULL OR runs_by NOT IN ($3, '*') AS stale FROM ${threads} ${WHERE}`,
  }
  const FACTS = 'thread_id AS "threadId", user_id AS owner, deleted_at IS NOT NULL AS deleted, provisional'
  // With a limit it is not merged into the query: a planner may read the whole table for a join.
  const ROW_OF_GRANT = `CROSS JOIN LATERAL (SELECT ${FACTS} FROM ${threads} WHERE scope = $1 AND thread_id = given.thread_id LIMIT 1)`
  // Each part reads ranges of an index, and its rows by their keys, up to the limit.
  const OF_READER = {
    name: 'access-of-reader',
    text: `SELECT * FROM (
        SELECT ${FACTS}, NULL AS granted FROM ${threads} WHERE user_id = $2 AND user_id <> '' AND scope = $1
        UNION ALL SELECT there.*, access FROM ${grants} AS given ${ROW_OF_GRANT} AS there
          WHERE kind = 'user' AND grantee = $2 AND scope = $1
        UNION ALL SELECT there.*, access FROM ${grants} AS given ${ROW_OF_GRANT} AS there
          WHERE kind = 'group' AND grantee = ANY($3::text[]) AND scope = $1
      ) AS theirs LIMIT $4`,
  }
  // No row comes back for another user's row or a settled live one: both stay unchanged. A new row or incarnation has one run.
  const REGISTER = {
    name: 'register',
    text: `INSERT INTO ${threads} AS there
        (scope, thread_id, user_id, agent_id, created_at, last_used_at, provisional, open_runs, runs_by)
      VALUES ($1, $2, $3, $4, $5, $5, true, 1, $6)
      ON CONFLICT (scope, thread_id) DO UPDATE SET
        provisional = true,
        open_runs = CASE WHEN there.provisional THEN there.open_runs + 1 ELSE 1 END,
        incarnation = CASE WHEN there.provisional THEN there.incarnation ELSE there.incarnation + 1 END,
        agent_id = CASE WHEN there.provisional THEN there.agent_id ELSE excluded.agent_id END,
        last_used_at = CASE WHEN there.provisional THEN there.last_used_at ELSE excluded.last_used_at END,
        deletion = NULL,
        runs_by = CASE there.runs_by WHEN excluded.runs_by THEN there.runs_by ELSE '*' END
      WHERE there.user_id = excluded.user_id AND (there.provisional OR there.deleted_at IS NOT NULL)
      RETURNING incarnation, open_runs`,
  }
  const REGISTER_GUEST = {
    name: 'register-guest',
    text: `UPDATE ${threads} SET open_runs = open_runs + 1, runs_by = CASE runs_by WHEN $4 THEN $4 ELSE '*' END
      ${MINE} AND provisional AND deleted_at IS NULL RETURNING incarnation, open_runs`,
  }
  // Records on a settled live row its use and the sender of its runs, and that the run overtakes a pending deletion.
  const CONTINUE = {
    name: 'continue',
    text: `UPDATE ${threads} SET last_used_at = CASE WHEN $4 - last_used_at >= ${MINUTE} THEN $4 ELSE last_used_at END, deletion = NULL,
        runs_by = CASE runs_by WHEN $5 THEN $5 ELSE '*' END
      ${MINE} AND deleted_at IS NULL AND NOT provisional RETURNING 1 AS done`,
  }
  const IS_USED_AGAIN = `deleted_at IS NULL AND $3 - last_used_at >= ${HOUR}`
  const NOTE_WRITE = {
    name: 'note-write',
    text: `UPDATE ${threads} SET upstream_deleted = false,
        runs_by = CASE WHEN deletion IS NULL AND runs_by = $4 THEN $4 ELSE '*' END,
        last_used_at = CASE WHEN ${IS_USED_AGAIN} THEN $3 ELSE last_used_at END
      ${WHERE} AND (upstream_deleted OR runs_by NOT IN ($4, '*') OR (deletion IS NOT NULL AND runs_by <> '*') OR (${IS_USED_AGAIN}))`,
  }
  const RENAME = { text: `UPDATE ${threads} SET name = $4 ${MINE} AND deleted_at IS NULL RETURNING 1 AS done` }
  const ARCHIVE = { text: `UPDATE ${threads} SET archived = $4 ${MINE} AND deleted_at IS NULL RETURNING 1 AS done` }
  const BURY = {
    text: `UPDATE ${threads} SET deleted_at = $4, upstream_deleted = $5, deletion = NULL, provisional = false, open_runs = 0 ${MINE} RETURNING 1 AS done`,
  }
  const BEGIN_DELETION = {
    text: `UPDATE ${threads} SET deletion = coalesce(deletion, $4) ${MINE} AND deleted_at IS NULL AND NOT provisional
      RETURNING deletion`,
  }
  const END_DELETION = {
    text: `UPDATE ${threads} SET deleted_at = $4, deletion = NULL, upstream_deleted = $5::boolean AND (runs_by = $7 OR last_used_at < $8)
      ${MINE} AND deletion = $6 AND deleted_at IS NULL RETURNING 1 AS done`,
  }
  const REMOVE_GRANTS = { text: `DELETE FROM ${grants} ${WHERE}` }
  // In index order: otherwise a planner may search the rows of all other scopes.
  const ANY = { text: `SELECT true AS there FROM ${threads} WHERE scope = $1 ORDER BY thread_id LIMIT 1` }
  const KEEP_SECRET = { text: `INSERT INTO ${secrets} (name, value) VALUES ('cursor', $1) ON CONFLICT DO NOTHING` }
  const SECRET = { text: `SELECT value FROM ${secrets} WHERE name = 'cursor'` }

  const self = randomUUID()

  const claim = async ({ scope, threadId }: ThreadKey, { userId, agentId, guest, now }: Claim): Promise<ClaimResult> => {
    const key = [scope, threadId]
    if (userId === NOBODY) return { outcome: 'foreign' }
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const [row] = await database.query<Row>(ROW, [...key, self])
      if (row === undefined ? guest : row.owner !== userId || (guest && row.deleted)) return { outcome: 'foreign' }
      if (row !== undefined && !row.provisional && !row.deleted) {
        if (!row.stale && now - row.usedAt < MINUTE) return { outcome: 'own', registration: null }
        // No row: it was deleted or assigned to another user since the look-up.
        const noted = await database.query(CONTINUE, [...key, userId, now, self])
        if (noted.length === 0) continue
        return { outcome: 'own', registration: null }
      }
      const [registered] = await database.query<{ incarnation: number; open_runs: number }>(
        guest ? REGISTER_GUEST : REGISTER,
        guest ? [...key, userId, self] : [...key, userId, agentId, now, self],
      )
      // No row: it became another user's or was settled since the look-up.
      if (registered === undefined) continue
      return { outcome: registered.open_runs === 1 ? 'new' : 'own', registration: registered.incarnation }
    }
    throw crossed()
  }

  const accessTo: Ownership['accessTo'] = async (key, reader) => {
    const { cache } = invalidations
    if (cache !== null) invalidations.start()
    const known = cache?.find(key, reader)
    if (known !== undefined && known !== null) return known
    const remember = cache?.begin()
    const values = [key.scope, key.threadId, reader.userId, reader.groups, remember !== undefined]
    const [row] = await database.query<AccessRow>(ONE, values)
    if (row?.here !== true) return { row: null, runners: row?.runners ?? [] }
    const { owner, deleted, provisional, granted, runners, grants: all } = row
    if (all !== null && runners === null) remember?.(key, { owner, grants: all })
    return { row: { owner, deleted, provisional, granted: deleted ? null : granted }, runners: runners ?? [] }
  }

  return {
    accessTo,
    async accessToSeveral(scope, threadIds, reader) {
      const values = [scope, threadIds, reader.userId, reader.groups]
      const rows = await database.query<Omit<AccessRow, 'here' | 'grants'> & { threadId: string }>(SEVERAL, values)
      return new Map(
        rows.map(({ threadId, owner, deleted, provisional, granted, runners }): [string, ThreadAccess] => [
          threadId,
          {
            row: (owner as string | null) === null ? null : { owner, deleted, provisional, granted: deleted ? null : granted },
            runners: runners ?? [],
          },
        ]),
      )
    },
    async accessOfReader(scope, { userId, groups }, most) {
      const rows = await database.query<ReaderRow>(OF_READER, [scope, userId, groups, most + 1])
      if (rows.length > most) return null
      const byThread = new Map<string, ThreadAccess>()
      for (const { threadId, owner, deleted, provisional, granted } of rows) {
        const right = deleted ? null : widest(byThread.get(threadId)?.row?.granted ?? null, granted)
        byThread.set(threadId, { row: { owner, deleted, provisional, granted: right }, runners: [] })
      }
      return byThread
    },
    claim,
    async noteWrite({ scope, threadId }, now) {
      await database.query(NOTE_WRITE, [scope, threadId, now, self])
    },
    settle: settlingOn(database, tables, invalidations),
    rename: async ({ scope, threadId }, userId, name) =>
      (await database.query(RENAME, [scope, threadId, userId, storable(name)])).length > 0,
    archive: async ({ scope, threadId }, userId, { archived }) =>
      (await database.query(ARCHIVE, [scope, threadId, userId, archived])).length > 0,
    bury: (key, userId, now, upstream) =>
      invalidations.change(async (queries, changed) => {
        const { scope, threadId } = key
        const buried = await queries.query(BURY, [scope, threadId, userId, now, upstream === 'deleted'])
        if (buried.length === 0) return
        // A separate statement after the row is locked: it sees the grants that were made until then.
        await queries.query(REMOVE_GRANTS, [scope, threadId])
        changed([key])
      }),
    async beginDeletion({ scope, threadId }, userId) {
      const [begun] = await database.query<{ deletion: string }>(BEGIN_DELETION, [scope, threadId, userId, randomUUID()])
      return begun?.deletion ?? null
    },
    endDeletion: (key, userId, deletion, now, upstream) =>
      invalidations.change(async (queries, changed) => {
        const { scope, threadId } = key
        const idleSince = now - LONGEST_RUN - 2 * HOUR
        const values = [scope, threadId, userId, now, upstream === 'deleted', deletion, self, idleSince]
        const buried = await queries.query(END_DELETION, values)
        if (buried.length === 0) return false
        await queries.query(REMOVE_GRANTS, [scope, threadId])
        changed([key])
        return true
      }),
    isEmpty: async (scope) => (await database.query<{ there: boolean }>(ANY, [scope]))[0]?.there !== true,
    async secret() {
      const [there] = await database.query<{ value: Buffer }>(SECRET)
      if (there !== undefined) return there.value
      await database.query(KEEP_SECRET, [randomBytes(32)])
      const [made] = await database.query<{ value: Buffer }>(SECRET)
      if (made === undefined) throw crossed()
      return made.value
    },
  }
}
