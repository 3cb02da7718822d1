/** How a database comes to have the schema of this program: once, as a whole, and never by guessing. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { MIGRATIONS, type Migration } from '../../src/store/postgres/schema.ts'
import { openStoreOn, settingsOf } from '../store/postgres-stores.ts'
import { startPostgres, type TestDatabase } from '../../testing/support/postgres.ts'

const run = promisify(execFile)
const WORKER = fileURLToPath(new URL('migration-worker.ts', import.meta.url))

const step = (number: number, text: string, checksum = `c${number}`): Migration => ({
  number,
  name: `s${number}`,
  text,
  checksum,
})

/** A role that may sign in, and nothing else; and the URL as which it does. */
async function makeRole({ url, admin }: TestDatabase, name: string): Promise<string> {
  await admin(`CREATE ROLE ${name} LOGIN PASSWORD 'hunter2'`)
  const own = new URL(url)
  own.username = name
  own.password = 'hunter2'
  return own.href
}

void test('of processes that start together one migrates, and all go on', async (t) => {
  const { url, admin } = await startPostgres(t)
  const outputs = await Promise.all(Array.from({ length: 3 }, () => run(process.execPath, [WORKER, url])))
  const latest = String(MIGRATIONS.length)
  t.same(outputs.map(({ stdout }) => stdout).sort(), [latest, latest, 'null'])
  const applied = await admin('SELECT number, name, checksum FROM threadwarden.migrations ORDER BY number')
  t.same(
    applied,
    MIGRATIONS.map(({ number, name, checksum }) => ({ number, name, checksum })),
  )
})

void test('they wait for each other while a step takes its time', async (t) => {
  const { url } = await startPostgres(t)
  const steps = [step(1, 'SELECT pg_sleep(2); CREATE TABLE {schema}.a (x int)')]
  const states = await Promise.all([1, 2, 3].map(() => migrate(settingsOf(url), steps)))
  t.same(states.map(({ applied }) => applied).sort(), [1, 1, null])
})

void test('what is up to date is left alone', async (t) => {
  const { url, admin } = await startPostgres(t)
  await migrate(settingsOf(url))
  const state = () => admin('SELECT * FROM threadwarden.migrations ORDER BY number')
  const before = await state()
  t.same(await migrate(settingsOf(url)), { applied: MIGRATIONS.length, missing: [] })
  t.same(await state(), before)
})

void test('steps that are new are made, in their order', async (t) => {
  const { url, admin } = await startPostgres(t)
  const first = [step(1, 'CREATE TABLE {schema}.a (x int)')]
  const all = [
    ...first,
    step(2, 'CREATE TABLE {schema}.b (x int); INSERT INTO {schema}.b VALUES (7)'),
    step(3, 'DROP TABLE {schema}.a'),
  ]
  await migrate(settingsOf(url), first)
  t.match(await migrate(settingsOf(url), all), { applied: 1 })
  t.same(await admin('SELECT x FROM threadwarden.b'), [{ x: 7 }])
})

void test('a store of the schema before lists had indexes of their own keeps its rows, grants and lists', async (t) => {
  const { url, admin } = await startPostgres(t)
  const settings = settingsOf(url)
  await migrate(settings, MIGRATIONS.slice(0, 2))
  await admin(`INSERT INTO threadwarden.threads (scope, thread_id, user_id, agent_id, created_at, last_used_at, deleted_at, archived)
    VALUES ('', 'live', 'corp:alice', 'a', 1, 5, NULL, false), ('', 'archived', 'corp:alice', 'a', 1, 4, NULL, true),
      ('', 'deleted', 'corp:alice', 'a', 1, 3, 3, false), ('', 'other', 'corp:alice', 'b', 1, 2, NULL, false)`)
  await admin(`INSERT INTO threadwarden.grants VALUES ('', 'archived', 'user', 'corp:bob', 'write', 'corp:alice', 1)`)
  t.match(await migrate(settings), { applied: 2 })
  const store = await openStoreOn(t, settings)
  const ids = async (userId: string, agentId: string | null, includeArchived: boolean): Promise<readonly string[]> => {
    const page = await store.listed('', { userId, groups: [] }, { agentId, includeArchived, after: null, limit: 10 })
    return page.map(({ threadId }) => threadId)
  }
  t.same(await ids('corp:alice', null, false), ['live', 'other'])
  t.same(await ids('corp:alice', 'a', true), ['live', 'archived'])
  t.same(await ids('corp:bob', null, true), ['archived'])
  t.match(await store.thread({ scope: '', threadId: 'deleted' }), { row: { owner: 'corp:alice', deletedAt: 3 } })
})

void test('a step that fails leaves nothing of any', async (t) => {
  const { url, admin } = await startPostgres(t)
  const broken = [step(1, 'CREATE TABLE {schema}.a (x int)'), step(2, 'CREATE TABLE {schema}.a (x int)')]
  await t.rejects(migrate(settingsOf(url), broken), { name: 'PostgresFailure', code: '42P07' })
  t.same(await admin("SELECT 1 FROM pg_namespace WHERE nspname = 'threadwarden'"), [])
})

void test('a schema that is newer than the program is refused', async (t) => {
  const { url, admin } = await startPostgres(t)
  await migrate(settingsOf(url))
  await admin("INSERT INTO threadwarden.migrations VALUES (1000, 'later', 'c', 0)")
  await t.rejects(openStoreOn(t, settingsOf(url)), {
    name: 'StoreUnavailable',
    message: new RegExp(`is 1000, which is newer than this program knows \\(${MIGRATIONS.length}\\)`),
  })
})

void test('a step that was changed since it was applied is refused', async (t) => {
  const { url, admin } = await startPostgres(t)
  await migrate(settingsOf(url))
  await admin("UPDATE threadwarden.migrations SET checksum = 'other' WHERE number = 1")
  await t.rejects(openStoreOn(t, settingsOf(url)), { name: 'StoreUnavailable', message: /migration 1 \(ownership\) differs/ })
})

void test('a step that is missing among those that were applied is refused', async (t) => {
  const { url, admin } = await startPostgres(t)
  const steps = [step(1, 'CREATE TABLE {schema}.a (x int)'), step(2, 'CREATE TABLE {schema}.b (x int)')]
  await migrate(settingsOf(url), steps)
  await admin('DELETE FROM threadwarden.migrations WHERE number = 1')
  await t.rejects(migrate(settingsOf(url), steps), { message: /migration 1 \(s1\) differs/ })
})

void test('a user who may not make a schema is told what is wanted, without the password', async (t) => {
  const database = await startPostgres(t)
  const url = await makeRole(database, 'nobody_may')
  t.teardown(() => database.admin('DROP ROLE nobody_may'))
  const error = await migrate(settingsOf(url)).catch((reason: unknown) => reason)
  t.match(error, { code: '42501', message: /let it create the schema, or own one that is there/ })
  t.notMatch(JSON.stringify(error) + String(error), /hunter2/)
})

void test('a schema that was prepared is enough', async (t) => {
  const database = await startPostgres(t)
  const url = await makeRole(database, 'owner_may')
  t.teardown(async () => {
    await database.admin('DROP OWNED BY owner_may')
    await database.admin('DROP ROLE owner_may')
  })
  await database.admin('CREATE SCHEMA threadwarden AUTHORIZATION owner_may')
  const store = await openStoreOn(t, settingsOf(url))
  t.equal(await store.fault(), null)
  t.equal(await store.isEmpty(''), true)
  await store.close()
})

void test('a schema may be a word of SQL, and several of one database know nothing of each other', async (t) => {
  const { url } = await startPostgres(t)
  const stores = await Promise.all(
    ['user', 'select', `a${'b'.repeat(62)}`].map((schema) => openStoreOn(t, settingsOf(url, { schema }))),
  )
  const [first, second] = stores
  await first?.assign({ scope: '', threadId: 't' }, 'corp:alice', 1)
  t.equal(await first?.isEmpty(''), false)
  t.equal(await second?.isEmpty(''), true)
})

void test('every text of the schema compares byte for byte, whatever collation the database has', async (t) => {
  const { url, admin } = await startPostgres(t)
  await migrate(settingsOf(url))
  const others = await admin(
    `SELECT table_name, column_name, collation_name FROM information_schema.columns
     WHERE table_schema = 'threadwarden' AND data_type IN ('text', 'character varying') AND table_name <> 'migrations'
       AND collation_name IS DISTINCT FROM 'C'`,
  )
  t.same(others, [])
})
