/** The connections: what every session is set to, what fails and how it is said. */
import { test } from 'tap'
import { Crossed, openPool, type PostgresPool } from '../../src/postgres/pool.ts'
import type { PostgresSettings } from '../../src/postgres/settings.ts'
import { settingsOf } from '../store/postgres-stores.ts'
import { startPostgres, startPostgresServer } from '../../testing/support/postgres.ts'
import { deferred, until } from '../../testing/support/until.ts'
import type { Test } from 'tap'

function opened(t: Test, settings: PostgresSettings): PostgresPool {
  const pool = openPool(settings)
  t.teardown(() => pool.close())
  return pool
}

void test('a session is set up, whatever the defaults of the server and the database are', async (t) => {
  const { url, admin } = await startPostgres(t)
  const name = new URL(url).pathname.slice(1)
  for (const setting of [
    'synchronous_commit = off',
    "default_transaction_isolation = 'serializable'",
    'search_path = public',
    'statement_timeout = 0',
  ]) {
    await admin(`ALTER DATABASE ${name} SET ${setting}`)
  }
  const pool = opened(t, settingsOf(url, { statementTimeout: 4321 }))
  const [row] = await pool.query({
    text: `SELECT current_setting('synchronous_commit') AS commit, current_setting('transaction_isolation') AS isolation,
      current_setting('search_path') AS path, current_setting('statement_timeout') AS patience,
      current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('application_name') AS name`,
  })
  t.same(row, {
    commit: 'on',
    isolation: 'read committed',
    path: 'pg_catalog',
    patience: '4321ms',
    idle: '30s',
    name: 'threadwarden',
  })
})

void test('a commit that waits for standbys to apply goes on doing so', async (t) => {
  const { url, admin } = await startPostgres(t)
  await admin(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = remote_apply`)
  const [row] = await opened(t, settingsOf(url)).query({ text: "SELECT current_setting('synchronous_commit') AS commit" })
  t.same(row, { commit: 'remote_apply' })
})

void test('numbers come as numbers, and those that are no longer exact not at all', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url))
  t.same(await pool.query({ text: 'SELECT 9007199254740991::bigint AS n' }), [{ n: Number.MAX_SAFE_INTEGER }])
  await t.rejects(pool.query({ text: 'SELECT 9007199254740992::bigint AS n' }), { name: 'PostgresFailure', message: /too large/ })
})

void test('a name stands for a text: another schema’s statement of that name is another one', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url, { pool: 1 }))
  for (const n of [1, 2, 1]) t.same(await pool.query({ name: 'standing', text: `SELECT ${n} AS n` }), [{ n }])
  const prepared = await pool.query<{ name: string; statement: string }>({
    text: 'SELECT name, statement FROM pg_prepared_statements',
  })
  t.same(prepared.map(({ statement }) => statement).sort(), ['SELECT 1 AS n', 'SELECT 2 AS n'])
  // A pooler that shares connections puts one session’s statement in the place of another’s of the same name.
  t.equal(new Set(prepared.map(({ name }) => name)).size, 2)
})

void test('a statement that takes too long ends, and the next one is fine', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url, { statementTimeout: 100 }))
  await t.rejects(pool.query({ text: 'SELECT pg_sleep(60)' }), { code: '57014', message: /statementTimeout \(57014\)$/ })
  t.same(await pool.query({ text: 'SELECT 1 AS one' }), [{ one: 1 }])
})

void test('with every connection in use a query waits as long as for a connection', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url, { pool: 1, connectTimeout: 200 }))
  const { promise, resolve } = deferred()
  const begun = deferred()
  const holding = pool.transaction(async () => {
    begun.resolve()
    await promise
  })
  await begun.promise
  await t.rejects(pool.query({ text: 'SELECT 1' }), { message: /no connection became free in time/ })
  resolve()
  await holding
  t.same(await pool.query({ text: 'SELECT 1 AS one' }), [{ one: 1 }])
})

void test('a transaction is there as a whole or not at all', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url, { pool: 1 }))
  await pool.query({ text: 'CREATE TABLE public.t (x int PRIMARY KEY)' })
  const insert = { text: 'INSERT INTO public.t VALUES ($1)' }
  await t.rejects(
    pool.transaction(async (queries) => {
      await queries.query(insert, [1])
      await queries.query(insert, [1])
    }),
    { code: '23505' },
  )
  await t.rejects(
    pool.transaction(async (queries) => {
      await queries.query(insert, [2])
      throw new TypeError('a mistake')
    }),
    TypeError,
  )
  await pool.transaction((queries) => queries.query(insert, [3]))
  t.same(await pool.query({ text: 'SELECT x FROM public.t' }), [{ x: 3 }])
})

void test('a snapshot sees one moment, and writes nothing', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url))
  await pool.query({ text: 'CREATE TABLE public.t (x int)' })
  const count = { text: 'SELECT count(*) AS n FROM public.t' }
  const seen = await pool.transaction(async (queries) => {
    const before = await queries.query(count)
    await pool.query({ text: 'INSERT INTO public.t VALUES (1)' })
    return [before, await queries.query(count)]
  }, 'snapshot')
  t.same(seen, [[{ n: 0 }], [{ n: 0 }]])
  const write = pool.transaction((queries) => queries.query({ text: 'INSERT INTO public.t VALUES (2)' }), 'snapshot')
  await t.rejects(write, { code: '25006' })
})

void test('a survey may take longer than a statement of a request', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url, { statementTimeout: 100 }))
  await pool.transaction((queries) => queries.query({ text: 'SELECT pg_sleep(1)' }), 'survey')
  await t.rejects(pool.query({ text: 'SELECT pg_sleep(60)' }), { code: '57014' }, 'the session is as it was')
})

void test('two transactions that wait for each other both come about', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url))
  await pool.query({ text: 'CREATE TABLE public.t (id int PRIMARY KEY, x int)' })
  await pool.query({ text: 'INSERT INTO public.t VALUES (1, 0), (2, 0)' })
  const met = [deferred(), deferred()] as const
  const runs = [0, 0]
  const both = ([first, second]: readonly [number, number], which: 0 | 1) =>
    pool.transaction(async (queries) => {
      runs[which]! += 1
      const add = (id: number) => queries.query({ text: 'UPDATE public.t SET x = x + 1 WHERE id = $1' }, [id])
      await add(first)
      met[which].resolve()
      await met[which === 0 ? 1 : 0].promise
      await add(second)
    })
  await Promise.all([both([1, 2], 0), both([2, 1], 1)])
  t.same(await pool.query({ text: 'SELECT x FROM public.t ORDER BY id' }), [{ x: 2 }, { x: 2 }])
  t.ok(runs[0]! + runs[1]! > 2, 'one of them was begun anew')
})

void test('work that others have crossed is begun anew, a few times', async (t) => {
  const { url } = await startPostgres(t)
  const pool = opened(t, settingsOf(url, { pool: 1 }))
  let runs = 0
  const result = await pool.transaction(async () => {
    runs += 1
    if (runs < 3) throw new Crossed()
    return runs
  })
  t.equal(result, 3)
  let times = 0
  const often = pool.transaction(async () => {
    times += 1
    if (times < 15) throw new Crossed()
  })
  await t.resolves(often, 'also where many others change the same at the same time')
  await t.rejects(
    pool.transaction(() => Promise.reject(new Crossed())),
    Crossed,
  )
  await t.rejects(
    pool.transaction(() => Promise.reject(new Crossed())),
    { message: 'what it read kept changing' },
  )
})

void test('a connection that breaks in a transaction is a failure, and no end of the process', async (t) => {
  const { url, disconnect } = await startPostgres(t)
  const pool = opened(t, settingsOf(url))
  let runs = 0
  const broken = pool.transaction(async (queries) => {
    runs += 1
    await queries.query({ text: 'SELECT 1' })
    await disconnect()
    await queries.query({ text: 'SELECT 1' })
  })
  await t.rejects(broken, { name: 'PostgresFailure' })
  t.equal(runs, 1, 'nobody knows what became of it: it is not done again')
  t.same(await pool.query({ text: 'SELECT 1 AS one' }), [{ one: 1 }])
})

void test('connections that break while nobody uses them are told of', async (t) => {
  const { url, disconnect } = await startPostgres(t)
  const told: string[] = []
  const pool = openPool(settingsOf(url), ({ message }) => told.push(message))
  t.teardown(() => pool.close())
  await pool.query({ text: 'SELECT 1' })
  await disconnect()
  await until(() => told.length > 0)
  t.match(told, [/it is being shut down \(57P01\)|the connection broke/])
})

void test('the password is asked for, comes from the configuration alone, and is in no failure', async (t) => {
  const { url } = await startPostgresServer(t, { password: 'correct horse' })
  const settings = settingsOf(url)
  t.equal(settings.password, 'correct horse')
  t.same(await opened(t, settings).query({ text: 'SELECT 1 AS one' }), [{ one: 1 }])
  const wrong = await opened(t, { ...settings, password: 'battery staple' })
    .query({ text: 'SELECT 1' })
    .catch((error: unknown) => error)
  t.match(wrong, { code: '28P01', message: /check ownership\.postgres\.password/ })
  t.notMatch(String(wrong), /battery/)
  process.env['PGPASSWORD'] = 'correct horse'
  t.teardown(() => delete process.env['PGPASSWORD'])
  await t.rejects(opened(t, { ...settings, password: null }).query({ text: 'SELECT 1' }), {
    message: /it asks for a password: set ownership\.postgres\.password/,
  })
})

for (const [name, changes, message] of [
  [
    'a port that nothing listens on',
    { port: 1 },
    /^database threadwarden_test_\w+ at 127\.0\.0\.1:1: nothing listens there.*ECONNREFUSED/,
  ],
  ['a host that there is not', { host: 'nowhere.invalid' }, /at nowhere\.invalid:\d+: .*host/],
  ['a database that there is not', { database: 'none' }, /^database none at .*there is no such database: create it \(3D000\)$/],
  ['a socket that there is not', { host: '/nowhere' }, /^database .* at \/nowhere:\d+: there is no such socket/],
] as const) {
  void test(`${name} is named, with what to look at`, async (t) => {
    const { url } = await startPostgres(t)
    await t.rejects(opened(t, settingsOf(url, changes)).query({ text: 'SELECT 1' }), { name: 'PostgresFailure', message })
  })
}
