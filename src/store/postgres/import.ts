/** Imports rows into PostgreSQL. An existing owner is never replaced. */
import { Crossed, type Queries } from '../../postgres/pool.ts'
import { NOBODY, type ImportedThread, type ImportOutcome, type ThreadAdministration, type ThreadKey } from '../port.ts'
import { listsOf, storable, type Database, type Tables } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

interface Owned {
  readonly owner: string
  readonly deleted: boolean
}

interface Known {
  readonly rows: Map<string, Owned>
  readonly runners: ReadonlyMap<string, readonly string[]>
}

const ASKED = 'unnest($1::text[], $2::text[]) AS asked (scope, thread_id)'

export function importOn(
  database: Database,
  tables: Tables,
  invalidations: PostgresInvalidations,
): Pick<ThreadAdministration, 'import'> {
  const { threads, observations } = tables
  const ROWS = {
    text: `SELECT scope, thread_id AS "threadId", user_id AS owner, deleted_at IS NOT NULL AS deleted
      FROM ${ASKED} JOIN ${threads} USING (scope, thread_id)`,
  }
  const RUNNERS = {
    text: `SELECT scope, thread_id AS "threadId", array_agg(user_id ORDER BY first_used_at, user_id) AS runners
      FROM (SELECT DISTINCT scope, thread_id FROM ${ASKED}) AS each JOIN ${observations} USING (scope, thread_id)
      WHERE ran GROUP BY scope, thread_id`,
  }
  // In key order: two imports of the same threads wait for each other, but not in a circle.
  const INSERT = {
    text: `INSERT INTO ${threads} (scope, thread_id, user_id, agent_id, name, archived, created_at, last_used_at)
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::bigint[], $8::bigint[])
        AS row (scope, thread_id) ORDER BY scope COLLATE "C", thread_id COLLATE "C"
      ON CONFLICT (scope, thread_id) DO NOTHING RETURNING 1 AS done`,
  }
  const FORGET = {
    text: `DELETE FROM ${observations} AS seen USING ${ASKED}
      WHERE seen.scope = asked.scope AND seen.thread_id = asked.thread_id RETURNING 1 AS done`,
  }

  const knownOf = async (queries: Queries, rows: readonly ImportedThread[]): Promise<Known> => {
    const keys = listsOf(rows)
    const owned = await queries.query<ThreadKey & Owned>(ROWS, keys)
    const seen = await queries.query<ThreadKey & { runners: readonly string[] }>(RUNNERS, keys)
    return {
      rows: new Map(owned.map((row) => [nameOf(row), row])),
      runners: new Map(seen.map((row) => [nameOf(row), row.runners])),
    }
  }
  return {
    import: (rows, { dryRun, settleConflicts }) => {
      if (dryRun) {
        return database.transaction(
          async (queries) => outcomesOf(rows, await knownOf(queries, rows), settleConflicts),
          'snapshot',
        )
      }
      return invalidations.change(async (queries, changed) => {
        const outcomes = outcomesOf(rows, await knownOf(queries, rows), settleConflicts)
        const added = rows.filter((_row, at) => outcomes[at]?.outcome === 'added')
        if (added.length === 0) return outcomes
        const inserted = await queries.query(INSERT, [
          ...listsOf(added),
          added.map(({ owner }) => owner),
          added.map(({ agentId }) => agentId),
          added.map(({ name }) => storable(name)),
          added.map(({ archived }) => archived),
          added.map(({ createdAt }) => createdAt),
          added.map(({ lastUsedAt }) => lastUsedAt),
        ])
        // Another request has claimed one of them since the look-up.
        if (inserted.length < added.length) throw new Crossed()
        // The operator has decided: observations of the threads no longer count.
        if ((await queries.query(FORGET, listsOf(added))).length > 0) changed(null)
        return outcomes
      })
    },
  }
}

/** The outcome of each row, in order: later rows find what an earlier row adds. */
function outcomesOf(rows: readonly ImportedThread[], known: Known, settleConflicts: boolean): readonly ImportOutcome[] {
  return rows.map((row) => {
    const name = nameOf(row)
    const there = known.rows.get(name)
    if (there !== undefined) {
      const users = there.owner === NOBODY ? [] : [there.owner]
      if (there.deleted) return { outcome: 'conflict', with: 'deleted', users }
      return there.owner === row.owner ? { outcome: 'same' } : { outcome: 'conflict', with: 'owner', users }
    }
    const others = (known.runners.get(name) ?? []).filter((user) => user !== row.owner)
    if (others.length > 0 && !settleConflicts) return { outcome: 'conflict', with: 'observed', users: others }
    known.rows.set(name, { owner: row.owner, deleted: false })
    return { outcome: 'added' }
  })
}

function nameOf({ scope, threadId }: ThreadKey): string {
  return JSON.stringify([scope, threadId])
}
