/** The limiter that replicas share, on a real PostgreSQL: what one counts the other knows, and a failing database stops nobody. */
import { test, type Test } from 'tap'
import { configSchema } from '../../src/config/schema.ts'
import { openLimiter } from '../../src/limits/open.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makePostgresLimiter } from '../../src/limits/postgres.ts'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Limiter } from '../../src/limits/port.ts'
import type { PostgresSettings } from '../../src/postgres/settings.ts'
import { startPostgres, startPostgresServer, type TestDatabase } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'

/** The defaults of a configuration. */
const OWNERSHIP = configSchema.shape.ownership.parse({ unknownThread: 'claim' })

const PER_HOUR = { amount: 3, per: 3_600_000 }
const SCHEMA = 'threadwarden'

function settingsOf({ url }: TestDatabase): PostgresSettings {
  const { hostname: host, port, pathname, username: user, password } = new URL(url)
  return {
    host,
    port: Number(port),
    database: pathname.slice(1),
    user,
    password: password === '' ? null : password,
    schema: SCHEMA,
    tls: 'off',
    ca: null,
    pool: 10,
    connectTimeout: 5000,
    statementTimeout: 5000,
  }
}

/** A replica on a database that was migrated; what it was told of outages. */
function replica(t: Test, settings: PostgresSettings, renewal?: number) {
  const outages: unknown[] = []
  const pool = openPool(settings)
  const limiter = makePostgresLimiter({
    pool,
    schema: SCHEMA,
    onOutage: (error) => outages.push(error === null ? 'over' : 'began'),
    ...(renewal === undefined ? {} : { renewal }),
  })
  t.teardown(async () => {
    limiter.stop()
    await pool.close()
  })
  return { limiter, outages }
}

async function migrated(database: TestDatabase): Promise<PostgresSettings> {
  const settings = settingsOf(database)
  await migrate(settings)
  return settings
}

/** Takes in turns until there is nothing left; how many there were. */
async function exhaust(limiters: readonly Limiter[], who: string, rate = PER_HOUR): Promise<number> {
  for (let taken = 0; ; taken += 1) {
    if ((await limiters[taken % limiters.length]?.take('runs', who, rate)) !== null) return taken
  }
}

void test('twice the amount in a window of twice the time, over all replicas', async (t) => {
  const settings = await migrated(await startPostgres(t))
  const replicas = [replica(t, settings).limiter, replica(t, settings).limiter]
  t.equal(await exhaust(replicas, 'corp:alice'), 6)
  const state = await replicas[1]?.take('runs', 'corp:alice', PER_HOUR)
  t.match(state, { name: 'runs', most: 6, window: 7_200_000 })
  t.ok((state?.retryAfter ?? 0) > 0 && (state?.retryAfter ?? Infinity) <= 7_200_000)
})

void test('the gateway counts in the database of its store, and in memory without one', async (t) => {
  const settings = await migrated(await startPostgres(t))
  const { host, port, database, user, password } = settings
  const store = `postgres://${user}${password === null ? '' : `:${password}`}@${host}:${port}/${database}`
  const opened = (ownership: { readonly store: string }, isShared: boolean) => {
    const pool = isShared ? openPool(settings) : null
    const limiter = openLimiter({ ...OWNERSHIP, ...ownership }, pool, makeLog('silent'))
    t.teardown(async () => {
      limiter.stop()
      await pool?.close()
    })
    return limiter
  }
  t.equal(await exhaust([opened({ store }, true), opened({ store }, true)], 'corp:alice'), 6)
  t.equal(await exhaust([opened({ store: 'sqlite:a.db' }, false), opened({ store: 'sqlite:a.db' }, false)], 'corp:alice'), 12)
})

void test('callers, names and rates are counted apart, whatever characters and length they have', async (t) => {
  const settings = await migrated(await startPostgres(t))
  const { limiter } = replica(t, settings)
  const names = ['corp:alice', 'corp:alice ', 'corp:Alice', `corp:"';\\ $1`, `corp:${'x'.repeat(20_000)}`, '@2001:db8::/64']
  for (const who of names) t.equal(await exhaust([limiter], who), 6)
  t.equal(await limiter.take('newThreads', 'corp:alice', PER_HOUR), null)
  t.equal(await exhaust([limiter], 'corp:alice', { amount: 1, per: 3_600_000 }), 2)
})

void test("no user's id is in the database", async (t) => {
  const database = await startPostgres(t)
  const { limiter } = replica(t, await migrated(database))
  await limiter.take('runs', 'corp:alice', PER_HOUR)
  await limiter.open('corp:alice', 1)
  const rows = [
    await database.admin('SELECT * FROM threadwarden.rate_limits'),
    await database.admin('SELECT * FROM threadwarden.open_streams'),
  ]
  t.notMatch(JSON.stringify(rows), 'alice')
  t.equal(rows.flat().length, 2)
})

void test('so many takers at once get what there is, and no more', async (t) => {
  const settings = await migrated(await startPostgres(t))
  const [one, other] = [replica(t, settings).limiter, replica(t, settings).limiter]
  const turns = Array.from({ length: 30 }, () => [one, other]).flat()
  const all = await Promise.all(turns.map((limiter) => limiter.take('runs', 'corp:alice', PER_HOUR)))
  t.equal(all.filter((limit) => limit === null).length, 6)
  const streams = await Promise.all(turns.map((limiter) => limiter.open('corp:alice', 5)))
  t.equal(streams.filter((one) => typeof one === 'function').length, 5)
})

void test('a stream that closes makes room on the other replica', async (t) => {
  const settings = await migrated(await startPostgres(t))
  const [one, other] = [replica(t, settings).limiter, replica(t, settings).limiter]
  const close = await one.open('corp:alice', 1)
  t.match(await other.open('corp:alice', 1), { name: 'streams', most: 1, window: 0 })
  if (typeof close !== 'function') throw new Error('the first stream did not open')
  close()
  close()
  await until(async () => typeof (await other.open('corp:alice', 1)) === 'function')
})

void test('leases are renewed while a stream is open, and end with a replica that was killed', async (t) => {
  const database = await startPostgres(t)
  const settings = await migrated(database)
  const lapse = () => database.admin("UPDATE threadwarden.open_streams SET until = now() - interval '1 second'")
  const living = replica(t, settings, 20).limiter
  const other = replica(t, settings, 3_600_000).limiter
  await living.open('corp:alice', 1)
  await lapse()
  const isLeased = async () => (await database.admin('SELECT 1 FROM threadwarden.open_streams WHERE until > now()')).length === 1
  await until(isLeased)
  t.match(await other.open('corp:alice', 1), { name: 'streams' })
  living.stop()
  await lapse()
  t.type(await other.open('corp:alice', 1), 'function')
})

void test('while the database is gone each replica counts for itself, and says so once', async (t) => {
  const server = await startPostgresServer(t)
  const { limiter, outages } = replica(t, await migrated(server), 20)
  const before = await limiter.open('corp:bob', 2)
  t.type(before, 'function')
  await server.kill()
  t.equal(await exhaust([limiter], 'corp:alice'), 6, 'bounded, and not refused')
  t.type(await limiter.open('corp:bob', 2), 'function')
  t.match(await limiter.open('corp:bob', 2), { name: 'streams' })
  t.strictSame(outages, ['began'])
  await server.restart()
  await until(() => outages.length === 2)
  t.strictSame(outages, ['began', 'over'])
  const leased = async () => (await server.admin('SELECT 1 FROM threadwarden.open_streams WHERE until > now()')).length
  // What opened meanwhile counts everywhere now.
  await until(async () => (await leased()) === 2)
})
