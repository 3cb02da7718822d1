/** Changes are told to every process, and one that misses some knows it. */
import { test, type Test } from 'tap'
import { makeChangeFeed, type ChangeFeed } from '../../src/store/postgres/change-feed.ts'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { openPool, type PostgresPool } from '../../src/postgres/pool.ts'
import type { PostgresSettings } from '../../src/postgres/settings.ts'
import { settingsOf } from '../store/postgres-stores.ts'
import { startPostgres, startPostgresServer } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'

/** A feed, with what it told: `lost` where it gave everything up. */
interface Heard {
  readonly feed: ChangeFeed
  readonly told: unknown[]
  /** Announces a change as a process would. */
  readonly announce: (about: unknown) => Promise<void>
}

function feedOn(
  t: Test,
  settings: PostgresSettings,
  pool: PostgresPool = openPool(settings),
  now: () => number = () => performance.now(),
): Heard {
  const told: unknown[] = []
  const feed = makeChangeFeed({
    settings,
    pool,
    name: 'standing',
    onChange: (about) => told.push(about),
    onLost: () => told.push('lost'),
    onAnswer: () => {},
    now,
  })
  t.teardown(async () => {
    feed.stop()
    await pool.close()
  })
  return { feed, told, announce: (about) => pool.transaction((queries) => feed.announce(queries, about)) }
}

/** A feed that has heard of everything until now. */
async function listening(t: Test, settings: PostgresSettings): Promise<Heard> {
  const heard = feedOn(t, settings)
  heard.feed.start()
  await until(() => heard.feed.isFresh())
  heard.told.length = 0
  return heard
}

async function migrated(t: Test) {
  const database = await startPostgres(t)
  const settings = settingsOf(database.url)
  await migrate(settings)
  return { ...database, settings }
}

const COUNT = "UPDATE threadwarden.versions SET value = value + 1 WHERE name = 'standing'"

void test('what one announces, all hear, in the order of the commits', async (t) => {
  const { settings } = await migrated(t)
  const [one, other] = [await listening(t, settings), await listening(t, settings)]
  const all = Array.from({ length: 50 }, (_, at) => [['', `thread-${at}`]])
  for (const about of all) await one.announce(about)
  await until(() => one.told.length >= 50 && other.told.length >= 50)
  t.same(one.told, all)
  t.same(other.told, all)
})

void test('changes of many at once are counted one after the other, and none is missed', async (t) => {
  const { settings } = await migrated(t)
  const [one, two, listener] = await Promise.all([listening(t, settings), listening(t, settings), listening(t, settings)])
  await Promise.all(Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : two).announce(at)))
  await until(() => listener.told.length >= 40)
  t.same(new Set(listener.told), new Set(Array.from({ length: 40 }, (_, at) => at)))
})

void test('what is rolled back is not told, and leaves no gap', async (t) => {
  const { settings } = await migrated(t)
  const { feed, told, announce } = await listening(t, settings)
  const pool = openPool(settings)
  t.teardown(() => pool.close())
  const failing = pool.transaction(async (queries) => {
    await feed.announce(queries, 'never')
    throw new TypeError('a mistake')
  })
  await t.rejects(failing, TypeError)
  await announce('then')
  await until(() => told.length > 0)
  t.same(told, ['then'])
})

void test('what is too long to tell is told as whatever may have changed', async (t) => {
  const { settings } = await migrated(t)
  const { told, announce } = await listening(t, settings)
  await announce('x'.repeat(7000))
  await announce('\u00e9'.repeat(7000))
  await until(() => told.length >= 2)
  t.same(told, ['x'.repeat(7000), null])
})

void test('it is not fresh before it listens', async (t) => {
  const { settings } = await migrated(t)
  const { feed } = feedOn(t, settings)
  t.equal(feed.isFresh(), false)
})

void test('a change that was counted and not told is found out', async (t) => {
  const { settings, admin } = await migrated(t)
  const { feed, told } = await listening(t, settings)
  await admin(COUNT)
  await until(() => told.includes('lost'))
  await until(() => feed.isFresh())
  t.same(told, ['lost'])
})

void test('so is one of which only a later one is told', async (t) => {
  const { settings, admin } = await migrated(t)
  const { told, announce } = await listening(t, settings)
  await admin(COUNT)
  await announce('later')
  await until(() => told.includes('lost'))
  t.pass()
})

void test('while a change may be on its way it is not proven to have been heard', async (t) => {
  const { settings, admin } = await migrated(t)
  const { feed, told } = await listening(t, settings)
  // Counted every moment, told never: it has no second in which nothing is missing.
  const counting = { on: true }
  const loop = (async () => {
    while (counting.on) await admin(COUNT)
  })()
  await until(() => told.filter((one) => one === 'lost').length >= 3)
  counting.on = false
  await loop
  await until(() => feed.isFresh())
  t.pass()
})

void test('what somebody else says on the channel stands for lost changes, and cannot hide any', async (t) => {
  const { settings, admin } = await migrated(t)
  const { told, announce } = await listening(t, settings)
  const [row] = await admin("SELECT 'threadwarden_standing_' || left(encode(sha256('threadwarden'), 'hex'), 16) AS channel")
  for (const payload of ['', 'nonsense', '{}', '[]', '["1"]', '[9007199254740991,[]]']) {
    told.length = 0
    await admin('SELECT pg_notify($1, $2)', [row?.['channel'], payload])
    await until(() => told.length > 0)
    t.equal(told[0], 'lost', payload)
  }
  told.length = 0
  await announce('real')
  await until(() => told.includes('real'))
  await admin(COUNT)
  await until(() => told.includes('lost'))
})

void test('a count that went back is another past', async (t) => {
  const { settings, admin } = await migrated(t)
  const { told, announce } = await listening(t, settings)
  await announce('one')
  await announce('two')
  await until(() => told.length >= 2)
  await admin("UPDATE threadwarden.versions SET value = 1 WHERE name = 'standing'")
  await until(() => told.includes('lost'))
  t.pass()
})

void test('a connection that breaks loses everything, and another takes its place', async (t) => {
  const { settings, disconnect } = await migrated(t)
  const { feed, told, announce } = await listening(t, settings)
  await disconnect()
  await until(() => told.includes('lost'))
  await until(() => feed.isFresh())
  told.length = 0
  await announce('again')
  await until(() => told.includes('again'))
  t.pass()
})

void test('a server that hangs is not fresh, and one that comes back is', async (t) => {
  const server = await startPostgresServer(t)
  const settings = settingsOf(server.url, { connectTimeout: 3000, statementTimeout: 3000 })
  await migrate(settings)
  const { feed } = await listening(t, settings)
  server.pause()
  await until(() => !feed.isFresh())
  server.resume()
  await until(() => feed.isFresh())
  await server.kill()
  await until(() => !feed.isFresh())
  await server.restart()
  await until(() => feed.isFresh())
  t.pass()
})

void test('what is not proven again within a second is not fresh', async (t) => {
  const server = await startPostgresServer(t)
  const settings = settingsOf(server.url)
  await migrate(settings)
  const clock = { time: 0 }
  const { feed } = feedOn(t, settings, openPool(settings), () => clock.time)
  feed.start()
  await until(() => feed.isFresh())
  server.pause()
  clock.time += 999
  t.equal(feed.isFresh(), true)
  clock.time += 1
  t.equal(feed.isFresh(), false)
  server.resume()
  await until(() => feed.isFresh())
})

void test('without a connection of its own it asks through the pool, and says that something has changed', async (t) => {
  const database = await migrated(t)
  const { admin } = database
  await admin("CREATE ROLE one_connection LOGIN PASSWORD 'hunter2' CONNECTION LIMIT 1")
  t.teardown(() => admin('DROP ROLE one_connection'))
  await admin('GRANT USAGE ON SCHEMA threadwarden TO one_connection')
  await admin('GRANT SELECT ON ALL TABLES IN SCHEMA threadwarden TO one_connection')
  t.teardown(() => admin('DROP OWNED BY one_connection'))
  const settings = { ...database.settings, user: 'one_connection', password: 'hunter2' }
  const pool = openPool({ ...settings, pool: 1 })
  await pool.query({ text: 'SELECT 1' })
  const { feed, told } = feedOn(t, settings, pool)
  feed.start()
  await admin(COUNT)
  await until(() => told.includes('lost'))
  t.equal(feed.isFresh(), false)
})
