/** Counters of token budgets in PostgreSQL that replicas share. While it fails, each replica counts alone. */
import { randomUUID } from 'node:crypto'
import type { BudgetUse } from '../core/decide/limits.ts'
import type { PostgresPool, Statement } from '../postgres/pool.ts'
import { quoted } from '../postgres/settings.ts'
import { digestOf } from './digest.ts'
import type { RunEnd, Spending, TokenCounter, TokenCounters } from './port.ts'
import { roomFor } from './room.ts'
import { makeTokenMemory } from './token-memory.ts'

export interface TokenPostgresParts {
  readonly pool: PostgresPool
  readonly schema: string
  /** Reports failures of the database, and passes them on. */
  readonly noted: <T>(work: Promise<T>) => Promise<T>
}

export interface TokenPostgres extends TokenCounters {
  /** Renews what this process has set aside, charges what others left behind, and repeats what failed. */
  renew(): Promise<void>
}

/** Seconds that a reservation of a killed process stays set aside, before it is charged: three renewals. */
const LEASE_S = 30
/** While the database fails, so many runs are kept to be charged later. */
const MOST_UNSETTLED = 10_000

export function makeTokenPostgres({ pool, schema, noted }: TokenPostgresParts): TokenPostgres {
  const table = makeTable(pool, schema)
  /** Counts what begins while the database fails. */
  const local = makeTokenMemory()
  const held = new Map<string, { readonly uses: readonly BudgetUse[]; readonly isLocal: boolean }>()
  const unsettled = new Map<string, () => Promise<void>>()

  const carryOut = async (id: string, work: () => Promise<void>): Promise<boolean> => {
    try {
      await noted(work())
      unsettled.delete(id)
      return true
    } catch {
      // The failure was reported.
      if (unsettled.size < MOST_UNSETTLED) unsettled.set(id, work)
      return false
    }
  }

  return {
    async reserve(uses) {
      const id = randomUUID()
      const reserved = await noted(table.reserve(id, uses)).catch(() => null)
      if (reserved !== null) {
        if ('name' in reserved) return reserved
        held.set(id, { uses, isLocal: false })
        return { id, left: reserved }
      }
      const locally = await local.reserve(uses)
      if ('name' in locally) return locally
      held.set(locally.id, { uses, isLocal: true })
      return locally
    },
    async settle(id, tokens, end) {
      const known = held.get(id)
      if (known === undefined) return
      held.delete(id)
      if (known.isLocal) {
        await local.settle(id, tokens, end)
        await carryOut(id, () => table.charge(known.uses, tokens, end))
      } else await carryOut(id, () => table.settle(id, known.uses, tokens, end))
    },
    async spending(counters) {
      return noted(table.spending(counters)).catch(() => local.spending(counters))
    },
    async renew() {
      // Before the reservations of these runs are taken for those of a killed process.
      for (const [id, work] of [...unsettled]) if (!(await carryOut(id, work))) break
      const ids = [...held].flatMap(([id, { isLocal }]) => (isLocal ? [] : [id]))
      await noted(table.renew(ids)).catch(() => {})
    },
  }
}

interface SpendingRow {
  readonly spent: string
  readonly reserved: string
  readonly open: number
  readonly resets_in: number
}

/** Uses the database's clock: the clocks of replicas may differ. */
function makeTable(pool: PostgresPool, schema: string) {
  const spending = `${quoted(schema)}.token_spending`
  const reserves = `${quoted(schema)}.token_reserves`
  const until = `clock_timestamp() + interval '${LEASE_S} seconds'`

  /** Rows are locked in the order of their keys, so that no two statements wait for each other. */
  const charging = (name: string, charges: string, ended?: string): Statement => ({
    name,
    text: `WITH ${ended === undefined ? '' : `gone AS (DELETE FROM ${reserves} WHERE ${ended} RETURNING key, reserve, milliseconds),`}
        charges AS (${charges})
      INSERT INTO ${spending} AS known (key, spent, ends_at)
      SELECT key, least(tokens, ${Number.MAX_SAFE_INTEGER}), clock_timestamp() + milliseconds * interval '1 millisecond'
      FROM charges WHERE tokens > 0 ORDER BY key
      ON CONFLICT (key) DO UPDATE SET
        spent = CASE WHEN known.ends_at <= clock_timestamp() THEN excluded.spent
          ELSE least(known.spent + excluded.spent, ${Number.MAX_SAFE_INTEGER}) END,
        ends_at = CASE WHEN known.ends_at <= clock_timestamp() THEN excluded.ends_at ELSE known.ends_at END`,
  })
  const atLeast = "CASE WHEN $3 = 'unseen' THEN greatest($2::bigint, reserve) ELSE $2::bigint END AS tokens"
  /** A reservation that lapsed meanwhile was charged: only what the run used beyond it is left. */
  const settle = charging(
    'tokens-settle',
    `SELECT key, ${atLeast}, milliseconds FROM gone UNION ALL
      SELECT key, $2::bigint - reserve, milliseconds FROM unnest($4::text[], $5::bigint[], $6::bigint[]) AS uses (key, reserve, milliseconds)
      WHERE NOT EXISTS (SELECT FROM gone)`,
    'id = $1',
  )
  const charge = charging(
    'tokens-charge',
    `SELECT key, ${atLeast}, milliseconds FROM unnest($1::text[], $4::bigint[], $5::bigint[]) AS uses (key, reserve, milliseconds)`,
  )
  /** Of processes that ended without settling. */
  const lapse = charging(
    'tokens-lapse',
    `SELECT key, sum(reserve) AS tokens, max(milliseconds) AS milliseconds FROM gone GROUP BY key`,
    'until <= clock_timestamp()',
  )
  const lock = {
    name: 'tokens-lock',
    text: 'SELECT pg_advisory_xact_lock(hashtextextended(counter, 0)) FROM unnest($1::text[]) AS counter',
  }
  const read = {
    name: 'tokens-read',
    text: `SELECT coalesce(spent, 0) AS spent, reserved, open,
        coalesce(extract(epoch FROM ends_at - clock_timestamp()) * 1000, 0)::float8 AS resets_in
      FROM unnest($1::text[]) WITH ORDINALITY AS asked (counter, at)
      LEFT JOIN ${spending} ON key = counter AND ends_at > clock_timestamp()
      CROSS JOIN LATERAL (
        SELECT coalesce(sum(reserve), 0) AS reserved, count(*)::int AS open FROM ${reserves} AS others WHERE others.key = counter
      ) AS others ORDER BY at`,
  }
  const insert = {
    name: 'tokens-reserve',
    text: `INSERT INTO ${reserves} (id, key, reserve, milliseconds, until)
      SELECT $1, key, reserve, milliseconds, ${until}
      FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS uses (key, reserve, milliseconds)`,
  }
  const renew = { name: 'tokens-renew', text: `UPDATE ${reserves} SET until = ${until} WHERE id = ANY($1::uuid[])` }
  const clear = { name: 'tokens-clear', text: `DELETE FROM ${spending} WHERE ends_at < clock_timestamp()` }

  const keyOf = ({ who, window }: TokenCounter): string => digestOf(`${window} ${who}`)
  /** 64 at most, by the first letter of the digest: all connections share the memory for locks, and a user may have many groups. */
  const locksOf = (keys: readonly string[]): readonly string[] =>
    [...new Set(keys.map(([letter = '']) => `${schema} tokens ${letter}`))].sort()
  const columns = (uses: readonly BudgetUse[]) =>
    [uses.map(keyOf), uses.map(({ reserve }) => reserve), uses.map(({ window }) => window)] as const
  const spendingOf = ({ spent, reserved, open, resets_in }: SpendingRow): Spending => ({
    spent: Number(spent),
    reserved: Number(reserved),
    open,
    resetsIn: Math.max(0, Math.ceil(resets_in)),
  })

  return {
    /** The locks come first, so that the counts are exact. */
    reserve: (id: string, uses: readonly BudgetUse[]) =>
      pool.transaction(async (queries) => {
        const [keys, amounts, windows] = columns(uses)
        await queries.query(lock, [locksOf(keys)])
        const rows = await queries.query<SpendingRow>(read, [keys])
        const left = roomFor(uses, rows.map(spendingOf))
        if (!('name' in left)) await queries.query(insert, [id, keys, amounts, windows])
        return left
      }),
    async settle(id: string, uses: readonly BudgetUse[], tokens: number, end: RunEnd): Promise<void> {
      await pool.query(settle, [id, tokens, end, ...columns(uses)])
    },
    async charge(uses: readonly BudgetUse[], tokens: number, end: RunEnd): Promise<void> {
      const [keys, amounts, windows] = columns(uses)
      await pool.query(charge, [keys, tokens, end, amounts, windows])
    },
    async spending(counters: readonly TokenCounter[]): Promise<readonly Spending[]> {
      return (await pool.query<SpendingRow>(read, [counters.map(keyOf)])).map(spendingOf)
    },
    async renew(ids: readonly string[]): Promise<void> {
      if (ids.length > 0) await pool.query(renew, [ids])
      await pool.query(lapse)
      await pool.query(clear)
    },
  }
}
