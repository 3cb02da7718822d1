/** A store on a PostgreSQL server: asked, and never changed. */
import { test } from 'tap'
import { openStoreOn, settingsOf } from '../store/postgres-stores.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { examined } from './examination.ts'

const SLOW = { wishes: { timeout: 30_000 } }

void test('a database without tables is a beginning, and stays as it is', async (t) => {
  const { url, admin } = await startPostgres(t)
  const { of, each } = await examined(t, { 'ownership.store': url }, SLOW)
  t.match(of('store.server'), { level: 'ok', message: /without TLS and has no tables yet: the gateway creates them/ })
  t.same([...each('store.file'), ...each('store.durable')], [])
  t.same(await admin("SELECT 1 FROM pg_namespace WHERE nspname = 'threadwarden'"), [])
})

void test('a store that a gateway has open is looked at', async (t) => {
  const { url } = await startPostgres(t)
  const store = await openStoreOn(t, settingsOf(url))
  const empty = await examined(t, { 'ownership.store': url }, SLOW)
  t.match(empty.of('store.server'), { level: 'ok', message: /can be read and written without TLS; no thread has an owner yet$/ })
  await store.assign({ scope: '', threadId: 't' }, 'corp:alice', 1)
  const full = await examined(t, { 'ownership.store': url }, SLOW)
  t.match(full.of('store.server'), { level: 'ok', message: /it has owners of threads$/ })
})

void test('one that is behind is brought up to date by the next start, and not by the doctor', async (t) => {
  const { url, admin } = await startPostgres(t)
  await (await openStoreOn(t, settingsOf(url))).close()
  await admin('DELETE FROM threadwarden.migrations WHERE number > 1')
  const { of } = await examined(t, { 'ownership.store': url }, SLOW)
  t.match(of('store.server'), { level: 'ok', message: /the next start migrates its schema/ })
  t.equal((await admin('SELECT number FROM threadwarden.migrations')).length, 1)
})

void test('a newer one, or one of another build, is a problem', async (t) => {
  const { url, admin } = await startPostgres(t)
  await (await openStoreOn(t, settingsOf(url))).close()
  await admin("INSERT INTO threadwarden.migrations VALUES (1000, 'later', 'c', 0)")
  const newer = await examined(t, { 'ownership.store': url }, SLOW)
  t.match(newer.of('store.server'), { level: 'problem', message: /is 1000, which is newer than this program knows/ })
})

void test('a server that is not there is a problem, and its password is not printed', async (t) => {
  const store = 'postgres://gateway:correct-horse@127.0.0.1:1/chat'
  const { all, of } = await examined(t, { 'ownership.store': store })
  t.match(of('store.server'), {
    level: 'problem',
    message: /database chat at 127\.0\.0\.1:1: nothing listens there/,
    remedy: /./,
  })
  t.notMatch(JSON.stringify(all), /correct-horse/)
})

void test('a server that takes no writes is a problem', async (t) => {
  const { url, admin } = await startPostgres(t)
  await admin(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`)
  const { of } = await examined(t, { 'ownership.store': url }, SLOW)
  t.match(of('store.server'), { level: 'problem', message: /accepts no writes: it is a standby or read-only/ })
})

void test('so is a user who may not create the tables, or not use them', async (t) => {
  const { url, admin } = await startPostgres(t)
  await admin("CREATE ROLE doctors_user LOGIN PASSWORD 'hunter2'")
  t.teardown(async () => {
    await admin('DROP OWNED BY doctors_user')
    await admin('DROP ROLE doctors_user')
  })
  const theirs = { 'ownership.store': Object.assign(new URL(url), { username: 'doctors_user', password: 'hunter2' }).href }
  const before = await examined(t, theirs, SLOW)
  t.match(before.of('store.server'), {
    level: 'problem',
    message: /the user doctors_user may not create the tables/,
    remedy: /CREATE SCHEMA threadwarden AUTHORIZATION doctors_user/,
  })
  await (await openStoreOn(t, settingsOf(url))).close()
  await admin('GRANT USAGE ON SCHEMA threadwarden TO doctors_user')
  await admin('GRANT SELECT ON ALL TABLES IN SCHEMA threadwarden TO doctors_user')
  const after = await examined(t, theirs, SLOW)
  t.match(after.of('store.server'), {
    level: 'problem',
    message: /may not read and write all tables/,
    remedy: /grant SELECT, INSERT/,
  })
})
