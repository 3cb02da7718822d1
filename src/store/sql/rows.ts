/** Rows for operators: read whole, counted, assigned, imported and pruned. An import never replaces an owner. */
import { MOST_UNCONFIRMED, type UnconfirmedClaims } from '../port/administration.ts'
import type {
  RowFilter,
  RowStore,
  StoreStats,
  ThreadRow,
  UserData,
  UserStore,
  AssignmentStore,
  AssignOutcome,
  PruneRule,
  PruneStore,
  ImportedThread,
  ImportOptions,
  ImportOutcome,
  ImportStore,
} from '../port/administration.ts'
import type { StoredGrant } from '../port/grants.ts'
import { type ThreadKey, NOBODY } from '../port/thread.ts'
import {
  all,
  type Engine,
  type Work,
  BY_KEY,
  KEY,
  ONE,
  sql,
  type Dialect,
  type Flag,
  type Sql,
  keyStatements,
  among,
  inScope,
  scopesText,
} from './statement.ts'
import { GRANT_COLUMNS, grantsOfThread } from './grants.ts'
import { observationStatements, type Run } from './observations.ts'
import { revocationOf, revocationsOfUser } from './revocations.ts'
import { nameOf } from '../access-cache.ts'

interface Row extends Omit<ThreadRow, 'archived' | 'provisional'> {
  readonly archived: Flag
  readonly provisional: Flag
}

type Counts = Omit<StoreStats, 'observed' | 'conflicts'>

function rowStatements({ threads, grants, observations, revocations, isUnconfirmed }: Dialect) {
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
    // The second condition is always true. With it SQLite reads a range of the index, and no table.
    unconfirmed: sql<UnconfirmedClaims>(`SELECT count(*) AS count, min(at) AS oldest FROM (SELECT last_used_at AS at
        FROM ${threads} WHERE ${isUnconfirmed} AND last_used_at >= 0 ORDER BY last_used_at LIMIT ${MOST_UNCONFIRMED}) AS claims`),
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
    unconfirmed: () =>
      read('statement', function* () {
        const [claims = { count: 0, oldest: null }] = yield* all(rows.unconfirmed)
        return claims
      }),
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

interface Assigned {
  readonly owner: string
  /** True for a live row without an unconfirmed run. */
  readonly settled: Flag
}

export function assignmentIn({ dialect, change, crossed }: Engine): AssignmentStore {
  const { threads, forUpdate, keysOf } = dialect
  const { removeGrants, forget } = keyStatements(dialect)
  const lock = sql<Assigned>(
    `SELECT user_id AS owner, deleted_at IS NULL AND NOT provisional AS settled FROM ${threads} WHERE ${ONE} ${forUpdate}`,
  )
  // A new incarnation: a run that registered earlier settles nothing after it.
  const give =
    sql(`UPDATE ${threads} SET user_id = :to, deleted_at = NULL, upstream_deleted = false, deletion = NULL, provisional = false, open_runs = 0,
        incarnation = incarnation + 1 WHERE ${ONE}`)
  const insert = sql<{ done: 1 }>(`INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, created_at, last_used_at)
      VALUES (:scope, :threadId, :to, '', :now, :now) ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`)
  // The run of a revival may have created the thread again at the upstream.
  const take =
    sql(`UPDATE ${threads} SET user_id = '', upstream_deleted = upstream_deleted AND NOT provisional, deletion = NULL, provisional = false, open_runs = 0,
        incarnation = incarnation + 1 WHERE ${ONE}`)
  return {
    assign: (key, to, now, expected) =>
      change(function* (changed) {
        const [row] = yield* all(lock, { ...key })
        const outcome = assignOutcome(row, to, expected)
        if (outcome.outcome !== 'assigned') return outcome
        if (row !== undefined) yield* all(give, { ...key, to })
        else if ((yield* all(insert, { ...key, to, now })).length === 0) throw crossed()
        yield* all(removeGrants, keysOf([key]))
        yield* all(forget, keysOf([key]))
        changed(key)
        return outcome
      }),
    withhold: (key) =>
      change(function* (changed) {
        const [row] = yield* all(lock, { ...key })
        if (row === undefined || row.owner === NOBODY) return row !== undefined
        yield* all(take, { ...key })
        yield* all(removeGrants, keysOf([key]))
        changed(key)
        return true
      }),
  }
}

/** For `assigned`, the caller must assign the thread. */
function assignOutcome(row: Assigned | undefined, to: string, expected: string | null | undefined): AssignOutcome {
  const owner = row?.owner ?? null
  if (expected !== undefined && expected !== owner) return { outcome: 'changed', owner }
  if (owner === to && Boolean(row?.settled)) return { outcome: 'same' }
  return { outcome: 'assigned', before: owner }
}

interface Owned extends ThreadKey {
  readonly owner: string
  readonly deleted: Flag
}

export function importIn({ dialect, read, change, crossed }: Engine): ImportStore {
  const { runs } = observationStatements(dialect)
  const { forget } = keyStatements(dialect)
  const owned = sql<Owned>(
    `SELECT ${KEY}, user_id AS owner, deleted_at IS NOT NULL AS deleted FROM ${dialect.threads} WHERE ${among(dialect)}`,
  )
  function* outcomesOf(rows: readonly ImportedThread[], options: ImportOptions): Work<readonly ImportOutcome[]> {
    const keys = dialect.keysOf(rows)
    return importOutcomes(rows, yield* all(owned, keys), yield* all(runs, keys), options)
  }
  return {
    import: (rows, options) => {
      if (options.dryRun) return read('snapshot', () => outcomesOf(rows, options))
      return change(function* (changed) {
        const outcomes = yield* outcomesOf(rows, options)
        const added = rows.filter((_row, at) => outcomes[at]?.outcome === 'added')
        if (added.length === 0) return outcomes
        let inserted = 0
        for (const { sql: insert, values } of dialect.insertionOf(added)) inserted += (yield* all(insert, values)).length
        if (inserted < added.length) throw crossed()
        if ((yield* all(forget, dialect.keysOf(added))).length > 0) changed(null)
        return outcomes
      })
    },
  }
}

/** The outcome of each row, in order: later rows find what an earlier row adds. */
function importOutcomes(
  rows: readonly ImportedThread[],
  owned: readonly Owned[],
  runs: readonly Run[],
  { settleConflicts }: ImportOptions,
): readonly ImportOutcome[] {
  const known = new Map<string, Omit<Owned, keyof ThreadKey>>(owned.map((row) => [nameOf(row), row]))
  const runners = Map.groupBy(runs, nameOf)
  return rows.map((row): ImportOutcome => {
    const name = nameOf(row)
    const there = known.get(name)
    if (there !== undefined) {
      const users = there.owner === NOBODY ? [] : [there.owner]
      if (there.deleted) return { outcome: 'conflict', with: 'deleted', users }
      return there.owner === row.owner ? { outcome: 'same' } : { outcome: 'conflict', with: 'owner', users }
    }
    const others = (runners.get(name) ?? []).map(({ userId }) => userId).filter((user) => user !== row.owner)
    if (others.length > 0 && !settleConflicts) return { outcome: 'conflict', with: 'observed', users: others }
    known.set(name, { owner: row.owner, deleted: false })
    return { outcome: 'added' }
  })
}

interface Prunable {
  readonly rows: 'unused' | 'deleted'
  readonly before: number
}

/** No row is both deleted and live. A rule without a condition prunes nothing. */
function prunableBy({ deletedBefore, unusedSince }: PruneRule): Prunable | null {
  if (deletedBefore === undefined) return unusedSince === undefined ? null : { rows: 'unused', before: unusedSince }
  return unusedSince === undefined ? { rows: 'deleted', before: deletedBefore } : null
}

export function pruningIn({ dialect, read, change }: Engine): PruneStore {
  const { threads, isUpstreamDeleted, forUpdate, keysOf } = dialect
  const { removeThreads, removeGrants, forget } = keyStatements(dialect)
  const scopes = sql<{ scope: string }>(scopesText(threads))
  const found = (rows: Prunable['rows'], scope: string | undefined): string =>
    rows === 'unused'
      ? `FROM ${threads} WHERE deleted_at IS NULL AND archived IN (false, true) AND last_used_at < :before ${inScope(scope)}`
      : // Others must not claim what the upstream still holds, or a run may be restoring, however long ago it was deleted.
        `FROM ${threads} WHERE ${isUpstreamDeleted} AND NOT provisional AND deleted_at < :before ${inScope(scope)}`
  const page = (rows: Prunable['rows'], scope?: string): Sql<ThreadKey> =>
    sql(`SELECT ${KEY} ${found(rows, scope)} LIMIT :limit ${forUpdate}`)
  const count = (rows: Prunable['rows'], scope?: string): Sql<{ count: number }> =>
    sql(`SELECT count(*) AS count ${found(rows, scope)}`)
  /** The index of unused rows begins with the scope: a query per scope does not read all rows for a few. */
  function* scopesOf({ unusedSince, scope: only }: PruneRule): Work<readonly (string | undefined)[]> {
    return unusedSince !== undefined && only === undefined ? (yield* all(scopes)).map(({ scope }) => scope) : [only]
  }
  return {
    prune: async (rule, limit) => {
      const prunable = prunableBy(rule)
      if (prunable === null) return 0
      const { rows, before } = prunable
      return change(function* (changed) {
        const keys: ThreadKey[] = []
        for (const scope of yield* scopesOf(rule)) {
          const values = { before, scope: scope ?? null, limit: limit - keys.length }
          for (const key of yield* all(page(rows, scope), values)) keys.push(key)
        }
        if (keys.length === 0) return 0
        for (const statement of [removeThreads, removeGrants, forget]) yield* all<object>(statement, keysOf(keys))
        if (rows === 'unused') changed(null)
        return keys.length
      })
    },
    prunable: async (rule) => {
      const prunable = prunableBy(rule)
      if (prunable === null) return 0
      const { rows, before } = prunable
      return read('survey', function* () {
        let sum = 0
        for (const scope of yield* scopesOf(rule)) {
          sum += (yield* all(count(rows, scope), { before, scope: scope ?? null }))[0]?.count ?? 0
        }
        return sum
      })
    },
  }
}
