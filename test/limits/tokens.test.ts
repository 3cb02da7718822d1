/** Counters of token budgets, in memory and on a real PostgreSQL: both decide alike. */
import { test, type Test } from 'tap'
import type { BudgetUse } from '../../src/core/decide/limits.ts'
import type { Limiter, Reservation } from '../../src/limits/port.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { makePostgresLimiter } from '../../src/limits/postgres.ts'
import { makeTokenPostgres } from '../../src/limits/token-postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { startPostgres, startPostgresServer, type TestDatabase } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { settingsOf } from '../store/postgres-stores.ts'

const DAY = 86_400_000

function use(who: string, limit: number, reserve: number, more: Partial<BudgetUse> = {}): BudgetUse {
  return { who, limit, reserve, window: DAY, onExceeded: 'finish', ...more }
}

/** Its counters, and a way to let their windows end. */
interface Counters {
  readonly limiter: Limiter
  readonly pass: (milliseconds: number) => Promise<unknown>
}

function inMemory(): Counters {
  let now = 1_000_000
  return {
    limiter: makeMemoryLimiter(() => now),
    pass: async (milliseconds) => {
      now += milliseconds
    },
  }
}

function replica(t: Test, database: TestDatabase, renewal?: number): Limiter {
  const settings = settingsOf(database.url)
  const pool = openPool(settings)
  const limiter = makePostgresLimiter({
    pool,
    schema: settings.schema,
    onOutage: () => {},
    ...(renewal === undefined ? {} : { renewal }),
  })
  t.teardown(async () => {
    limiter.stop()
    await pool.close()
  })
  return limiter
}

async function migrated(t: Test, database: TestDatabase) {
  const settings = settingsOf(database.url)
  await migrate(settings)
  const pool = openPool(settings)
  t.teardown(() => pool.close())
  return { settings, pool }
}

async function onPostgres(t: Test): Promise<Counters & { readonly database: TestDatabase }> {
  const database = await startPostgres(t)
  await migrate(settingsOf(database.url))
  return {
    database,
    limiter: replica(t, database),
    pass: (milliseconds) =>
      database.admin("UPDATE threadwarden.token_spending SET ends_at = ends_at - $1::bigint * interval '1 millisecond'", [
        milliseconds,
      ]),
  }
}

const ENGINES = { memory: async () => inMemory(), postgres: onPostgres } as const

async function reserved(limiter: Limiter, ...uses: readonly BudgetUse[]): Promise<Reservation> {
  const reservation = await limiter.reserve(uses)
  if ('name' in reservation) throw new Error(`refused: ${JSON.stringify(reservation)}`)
  return reservation
}

for (const [engine, start] of Object.entries(ENGINES)) {
  void test(`${engine}: a run starts while something is left, and is charged what it used`, async (t) => {
    const { limiter, pass } = await start(t)
    const alice = use('corp:alice', 1000, 100)
    const first = await reserved(limiter, alice)
    t.same(first.left, [1000])
    const second = await reserved(limiter, alice)
    t.same(second.left, [900])
    t.match(await limiter.spending([alice]), [{ spent: 0, reserved: 200, open: 2 }])
    await limiter.settle(first.id, 950, 'seen')
    await limiter.settle(first.id, 950, 'seen')
    t.match(await limiter.spending([alice]), [{ spent: 950, reserved: 100, open: 1 }])
    t.match(
      await limiter.reserve([alice]),
      { name: 'tokens', most: 1000, window: DAY, retryAfter: 1000 },
      'another run has the rest',
    )
    await limiter.settle(second.id, 0, 'seen')
    const last = await reserved(limiter, alice)
    t.same(last.left, [50], 'alone, a run may use more than is left')
    await limiter.settle(last.id, 500, 'seen')
    const refusal = await limiter.reserve([alice])
    t.match(refusal, { name: 'tokens', most: 1000 })
    const retryAfter = 'retryAfter' in refusal ? refusal.retryAfter : 0
    t.ok(retryAfter > DAY - 60_000 && retryAfter <= DAY, `${retryAfter}`)
    t.type(await reserved(limiter, use('corp:bob', 1000, 100)), 'object', 'others have their own')
    t.type(await reserved(limiter, { ...alice, window: 2 * DAY }), 'object', 'and other windows, too')
    await pass(DAY)
    t.same((await reserved(limiter, alice)).left, [1000], 'a new window')
  })

  void test(`${engine}: all budgets of a run are charged, or none`, async (t) => {
    const { limiter } = await start(t)
    const [user, tenant] = [use('corp:alice', 1000, 100), use('["claim"]', 150, 100)]
    const run = await reserved(limiter, user, tenant)
    t.match(await limiter.reserve([use('corp:bob', 1000, 100), tenant]), { most: 150, retryAfter: 1000 })
    t.match(await limiter.spending([use('corp:bob', 1000, 100)]), [{ open: 0 }], 'nothing stays set aside')
    await limiter.settle(run.id, 200, 'seen')
    t.match(await limiter.spending([user, tenant]), [{ spent: 200 }, { spent: 200 }])
    t.match(await limiter.reserve([user, tenant]), { most: 150, window: DAY })
  })

  void test(`${engine}: a run whose end was not seen is charged what was set aside, at least`, async (t) => {
    const { limiter } = await start(t)
    const alice = use('corp:alice', 1000, 100)
    for (const [used, charged] of [
      [7, 100],
      [130, 230],
    ] as const) {
      const run = await reserved(limiter, alice)
      await limiter.settle(run.id, used, 'unseen')
      t.match(await limiter.spending([alice]), [{ spent: charged, open: 0 }])
    }
  })

  void test(`${engine}: a run that did not start begins no window and costs nothing`, async (t) => {
    const { limiter } = await start(t)
    const alice = use('corp:alice', 1000, 100)
    await limiter.settle((await reserved(limiter, alice)).id, 0, 'seen')
    t.same(await limiter.spending([alice]), [{ spent: 0, reserved: 0, open: 0, resetsIn: 0 }])
  })

  void test(`${engine}: the largest number of tokens stays exact`, async (t) => {
    const { limiter } = await start(t)
    const alice = use('corp:alice', Number.MAX_SAFE_INTEGER, 1)
    const runs = [await reserved(limiter, alice), await reserved(limiter, alice)]
    for (const { id } of runs) await limiter.settle(id, Number.MAX_SAFE_INTEGER, 'seen')
    t.match(await limiter.spending([alice]), [{ spent: Number.MAX_SAFE_INTEGER }])
  })

  void test(`${engine}: of many at once, as many start as have room`, async (t) => {
    const { limiter } = await start(t)
    const alice = use('corp:alice', 1000, 300)
    const runs = await Promise.all(Array.from({ length: 20 }, () => limiter.reserve([alice])))
    t.equal(runs.filter((run) => 'id' in run).length, 3)
    const small = use('corp:bob', 100, 100)
    const alone = await Promise.all(Array.from({ length: 20 }, () => limiter.reserve([small])))
    t.equal(alone.filter((run) => 'id' in run).length, 1)
  })
}

void test('replicas count together, and the database names no caller', async (t) => {
  const { database, limiter } = await onPostgres(t)
  const other = replica(t, database)
  const alice = use('corp:alice', 1000, 400)
  const all = await Promise.all([limiter, other, limiter, other, other].map((one) => one.reserve([alice])))
  t.equal(all.filter((run) => 'id' in run).length, 2)
  t.match(await other.spending([alice]), [{ reserved: 800, open: 2 }])
  const rows = [
    ...(await database.admin('SELECT * FROM threadwarden.token_reserves')),
    ...(await database.admin('SELECT * FROM threadwarden.token_spending')),
  ]
  t.notMatch(JSON.stringify(rows), 'alice')
})

void test('runs with the budgets of each other, in any order, do not wait for each other for ever', async (t) => {
  const { database, limiter } = await onPostgres(t)
  const other = replica(t, database)
  const uses = ['a', 'b', 'c'].map((who) => use(who, 1_000_000, 10))
  await Promise.all(
    Array.from({ length: 60 }, async (_, at) => {
      const one = at % 2 === 0 ? limiter : other
      const run = await reserved(one, ...(at % 2 === 0 ? uses : uses.toReversed()))
      await one.settle(run.id, 5, 'seen')
    }),
  )
  t.match(
    await limiter.spending(uses),
    Array.from({ length: 3 }, () => ({ spent: 300, open: 0 })),
  )
})

void test('callers with thousands of groups do not take the memory for the locks of the database', async (t) => {
  const database = await startPostgres(t)
  const { settings, pool } = await migrated(t, database)
  const failures: unknown[] = []
  const noted = async <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      failures.push(error)
      throw error
    })
  const counters = makeTokenPostgres({ pool, schema: settings.schema, noted })
  const runs = Array.from({ length: 20 }, (_, user) =>
    counters.reserve(Array.from({ length: 3000 }, (_group, at) => use(`group ${user}-${at}`, 1000, 1))),
  )
  await Promise.all(runs)
  t.same(failures, [])
})

void test('what a killed process has set aside is charged by another one, and what lives is renewed', async (t) => {
  const { database, limiter: killed } = await onPostgres(t)
  const alice = use('corp:alice', 1000, 100)
  await reserved(killed, alice)
  const living = replica(t, database, 20)
  const run = await reserved(living, alice)
  await database.admin("UPDATE threadwarden.token_reserves SET until = clock_timestamp() - interval '1 second' WHERE id <> $1", [
    run.id,
  ])
  await until(async () => (await living.spending([alice]))[0]?.spent === 100)
  t.match(await living.spending([alice]), [{ reserved: 100, open: 1 }])
  await living.settle(run.id, 30, 'seen')
  t.match(await living.spending([alice]), [{ spent: 130, open: 0 }])
})

void test('while the database is gone each replica counts for itself, and charges it later', async (t) => {
  const server = await startPostgresServer(t)
  await migrate(settingsOf(server.url))
  const limiter = replica(t, server, 20)
  const alice = use('corp:alice', 1000, 400)
  const before = await reserved(limiter, alice)
  await server.kill()
  await limiter.settle(before.id, 50, 'seen')
  const run = await reserved(limiter, alice)
  await reserved(limiter, alice)
  t.match(await limiter.reserve([alice]), { name: 'tokens' }, 'bounded')
  await limiter.settle(run.id, 70, 'seen')
  await server.restart()
  await until(async () => (await limiter.spending([alice]))[0]?.spent === 120)
  t.match(await limiter.spending([alice]), [{ spent: 120, open: 0 }])
})

const LAPSED = "UPDATE threadwarden.token_reserves SET until = clock_timestamp() - interval '1 second'"

void test('a run that outlives its reservation is charged what it used beyond it', async (t) => {
  const { database, limiter: slow } = await onPostgres(t)
  const alice = use('corp:alice', 1000, 100)
  const [large, small] = [await reserved(slow, alice), await reserved(slow, alice)]
  await database.admin(LAPSED)
  const other = replica(t, database, 20)
  await until(async () => (await other.spending([alice]))[0]?.spent === 200)
  await slow.settle(large.id, 700, 'seen')
  await slow.settle(small.id, 30, 'unseen')
  t.match(await slow.spending([alice]), [{ spent: 800, open: 0 }])
})

void test('a run that ended while the database was gone is charged what it used, however long that lasted', async (t) => {
  const server = await startPostgresServer(t)
  const { settings, pool } = await migrated(t, server)
  const counters = makeTokenPostgres({ pool, schema: settings.schema, noted: (work) => work })
  const alice = use('corp:alice', 1000, 400)
  const run = await counters.reserve([alice])
  await server.kill()
  await counters.settle('id' in run ? run.id : '', 50, 'seen')
  await server.restart()
  await server.admin(LAPSED)
  await counters.renew()
  t.match(await counters.spending([alice]), [{ spent: 50, open: 0 }])
})
