/** Counters in PostgreSQL that replicas share. While it fails, each replica counts alone: no caller is unlimited or refused. */
import { randomUUID } from 'node:crypto'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { Rate } from '../core/decide/limits.ts'
import type { PostgresPool } from '../postgres/pool.ts'
import { digestOf } from './digest.ts'
import { quoted } from '../postgres/settings.ts'
import { makeMemoryLimiter, stateOf, STREAM_RETRY_MS, WINDOW } from './memory.ts'
import type { Limiter, RateName } from './port.ts'
import { makeTokenPostgres } from './token-postgres.ts'

export interface PostgresLimiterParts {
  readonly pool: PostgresPool
  readonly schema: string
  /** Called when the database begins to fail, and with null when it answers again. */
  readonly onOutage: (error: unknown) => void
  /** Milliseconds between two renewals of the leases of open streams and runs. */
  readonly renewal?: number
}

export interface PostgresLimiter extends Limiter {
  /** The database stays open: its opener closes it. */
  stop(): void
}

const RENEWAL_MS = 10_000
/** Seconds that a killed replica's stream still counts: three renewals. */
const LEASE_S = 30

export function makePostgresLimiter({ pool, schema, onOutage, renewal = RENEWAL_MS }: PostgresLimiterParts): PostgresLimiter {
  let failing = false
  const noted = async <T>(work: Promise<T>): Promise<T> => {
    try {
      const result = await work
      if (failing) onOutage(null)
      failing = false
      return result
    } catch (error) {
      if (!failing) onOutage(error)
      failing = true
      throw error
    }
  }

  const counters = new Map<string, RateLimiterPostgres>()
  const client = {
    query: async ({ name, text, values }: { name: string; text: string; values: readonly unknown[] }) => {
      const rows = await noted(pool.query({ name, text }, values))
      return { rows, rowCount: rows.length }
    },
  }
  const counterOf = (name: RateName, { amount, per }: Rate): RateLimiterPostgres => {
    const keyPrefix = `${name} ${amount}/${per}`
    let counter = counters.get(keyPrefix)
    if (counter === undefined) {
      const window = { keyPrefix, points: amount * WINDOW, duration: (per * WINDOW) / 1000 }
      counter = new RateLimiterPostgres({
        ...window,
        storeClient: client,
        storeType: 'client',
        schemaName: schema,
        tableName: 'rate_limits',
        tableCreated: true,
        clearExpiredByTimeout: counters.size === 0,
        // A refused caller causes no more queries until the window ends.
        inMemoryBlockOnConsumed: window.points + 1,
        insuranceLimiter: new RateLimiterMemory(window),
      })
      counters.set(keyPrefix, counter)
    }
    return counter
  }

  // Streams of this process also count here: this limits them while other replicas' streams are unknown.
  const local = makeMemoryLimiter()
  const leases = makeLeases(pool, schema)
  const tokens = makeTokenPostgres({ pool, schema, noted })
  const held = new Map<string, string>()
  const renew = async (): Promise<void> => {
    const renewed = new Map(held)
    // The failure was reported; the next renewal takes the leases again.
    if (renewed.size > 0) await noted(leases.renew(renewed)).catch(() => {})
    // A lease that was given back meanwhile may have been taken again by this renewal.
    for (const id of renewed.keys()) if (!held.has(id)) await noted(leases.giveBack(id)).catch(() => {})
    await tokens.renew()
    if (!stopped) timer = setTimeout(() => void renew(), renewal).unref()
  }
  let stopped = false
  let timer = setTimeout(() => void renew(), renewal).unref()

  return {
    async take(name, who, rate) {
      try {
        await counterOf(name, rate).consume(digestOf(who))
        return null
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error
        return stateOf(name, rate.amount * WINDOW, rate.per * WINDOW, error.msBeforeNext)
      }
    },
    async open(who, most) {
      const close = await local.open(who, most)
      if (typeof close !== 'function') return close
      const [id, caller] = [randomUUID(), digestOf(who)]
      const isTaken = await noted(leases.take(id, caller, most)).catch(() => true)
      if (!isTaken) {
        close()
        return stateOf('streams', most, 0, STREAM_RETRY_MS)
      }
      held.set(id, caller)
      return () => {
        close()
        // A lease that can't be given back expires.
        if (held.delete(id)) void noted(leases.giveBack(id)).catch(() => {})
      }
    },
    reserve: (uses) => tokens.reserve(uses),
    settle: (id, used, end) => tokens.settle(id, used, end),
    spending: (counters) => tokens.spending(counters),
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** Uses the database's clock: the clocks of replicas may differ. */
function makeLeases(pool: PostgresPool, schema: string) {
  const table = `${quoted(schema)}.open_streams`
  const until = `clock_timestamp() + interval '${LEASE_S} seconds'`
  const lock = { name: 'streams-lock', text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))' }
  const insert = {
    name: 'streams-take',
    text: `INSERT INTO ${table} (id, caller, until) SELECT $1, $2, ${until}
      WHERE (SELECT count(*) FROM ${table} WHERE caller = $2 AND until > clock_timestamp()) < $3 RETURNING id`,
  }
  const upsert = {
    name: 'streams-renew',
    text: `INSERT INTO ${table} (id, caller, until) SELECT id, caller, ${until} FROM unnest($1::uuid[], $2::text[]) AS held (id, caller)
      ON CONFLICT (id) DO UPDATE SET until = excluded.until`,
  }
  const remove = { name: 'streams-give-back', text: `DELETE FROM ${table} WHERE id = $1` }
  const clear = { name: 'streams-clear', text: `DELETE FROM ${table} WHERE until < clock_timestamp()` }
  return {
    /** The lock comes first, so that the count is exact. */
    take: (id: string, caller: string, most: number): Promise<boolean> =>
      pool.transaction(async (queries) => {
        await queries.query(lock, [`${schema} streams ${caller}`])
        return (await queries.query(insert, [id, caller, most])).length > 0
      }),
    /** Also takes leases that expired meanwhile: their streams are open. */
    async renew(held: ReadonlyMap<string, string>): Promise<void> {
      await pool.query(upsert, [[...held.keys()], [...held.values()]])
      await pool.query(clear)
    },
    async giveBack(id: string): Promise<void> {
      await pool.query(remove, [id])
    },
  }
}
