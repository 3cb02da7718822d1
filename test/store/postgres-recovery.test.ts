/** A server that fails makes the store unavailable, and nothing worse: it is there again when the server is. */
import { createServer, type AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import type { Credential } from '../../src/core/decide/credential.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import type { Store } from '../../src/store/port/store.ts'
import { makeRevocationList } from '../../src/store/revocations.ts'
import { startPostgres, startPostgresServer } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { ALICE, BOB, claim, grantOf, KEY, NOW, own, readerOf, user } from './contract/under-test.ts'
import { openStoreOn, settingsOf } from './postgres-stores.ts'

const isUp = (store: Store) => async () => (await store.fault()) === null

async function storeOnOwnServer(t: Test) {
  const server = await startPostgresServer(t)
  const settings = settingsOf(server.url, { connectTimeout: 3000, statementTimeout: 3000 })
  return { server, settings, store: await openStoreOn(t, settings, { cache: 10 }) }
}

void test('a server that is killed is unavailable, and comes back with all that was confirmed', async (t) => {
  const { server, store } = await storeOnOwnServer(t)
  const told: unknown[] = []
  store.onInvalidation((key) => told.push(key))
  await own(store, ALICE)
  await store.grant(KEY, ALICE, grantOf(user(BOB)))
  for (let times = 0; times < 2; times += 1) {
    await server.kill()
    await t.rejects(async () => store.accessTo(KEY, readerOf(BOB)), StoreUnavailable)
    await t.rejects(claim(store, BOB), StoreUnavailable)
    t.match(await store.fault(), /127\.0\.0\.1:\d+: (?:nothing listens|the connection broke|it crashed)/)
    told.length = 0
    await server.restart()
    await until(isUp(store))
    t.match(await store.accessTo(KEY, readerOf(BOB)), { row: { owner: ALICE, granted: 'read' } })
    t.equal(await claim(store, BOB), 'foreign')
    // Whatever happened meanwhile was not heard.
    await until(() => told.includes(null))
  }
})

void test('a server that hangs is unavailable within the time-outs, and comes back', async (t) => {
  const { server, store } = await storeOnOwnServer(t)
  await own(store, ALICE)
  server.pause()
  await t.rejects(claim(store, BOB), StoreUnavailable)
  t.match(await store.fault(), /does not answer|broke/)
  // What is remembered is not used for longer than its second.
  await until(() =>
    Promise.resolve(store.accessTo(KEY, readerOf(ALICE))).then(
      () => false,
      (error: unknown) => error instanceof StoreUnavailable,
    ),
  )
  server.resume()
  await until(isUp(store))
  t.equal(await claim(store, BOB), 'foreign')
  t.equal(await claim(store, ALICE), 'own')
})

void test('a store that is opened while the server is away says where it should be', async (t) => {
  const { server, settings } = await storeOnOwnServer(t)
  await server.stop()
  await t.rejects(openStoreOn(t, settings), {
    name: 'StoreUnavailable',
    message: new RegExp(`cannot be opened: database postgres at 127\\.0\\.0\\.1:${settings.port}: nothing listens there`),
  })
})

void test('a host that takes connections and says nothing is given up', async (t) => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  t.teardown(() => silent.close())
  const { url } = await startPostgres(t)
  const settings = settingsOf(url, { port: (silent.address() as AddressInfo).port, connectTimeout: 300 })
  await t.rejects(openStoreOn(t, settings), { name: 'StoreUnavailable', message: /the host does not answer/ })
})

void test('a server that takes no writes is a fault, and is not begun with', async (t) => {
  const { url, admin, disconnect } = await startPostgres(t)
  const store = await openStoreOn(t, settingsOf(url))
  await own(store, ALICE)
  await admin(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`)
  await disconnect()
  await until(async () => /read-only/.test((await store.fault()) ?? ''))
  await t.rejects(claim(store, BOB, { scope: '', threadId: 'other' }), StoreUnavailable)
  t.match(await store.accessTo(KEY, readerOf(ALICE)), { row: { owner: ALICE } }, 'what only reads goes on')
  await t.rejects(openStoreOn(t, settingsOf(url)), { name: 'StoreUnavailable', message: /read-only and accepts no writes/ })
})

void test('tables that are gone are a failure, and nobody owns a thread by it', async (t) => {
  const { url, admin } = await startPostgres(t)
  const store = await openStoreOn(t, settingsOf(url))
  await own(store, ALICE)
  await admin('DROP SCHEMA threadwarden CASCADE')
  await t.rejects(claim(store, BOB), {
    name: 'StoreUnavailable',
    message: /a table is missing.*\(42P01\)|the schema is missing.*\(3F000\)/,
  })
  await t.rejects(store.bury(KEY, ALICE, NOW, 'deleted'), StoreUnavailable)
})

void test('a store is closed although its server hangs', async (t) => {
  const { server, store } = await storeOnOwnServer(t)
  store.onInvalidation(() => {})
  await own(store, ALICE)
  server.pause()
  await store.close()
  server.resume()
  t.pass()
})

void test('a table that is gone, or may not be read or written any more, is a fault, though the server answers', async (t) => {
  const { url, admin } = await startPostgres(t)
  const role = `tw_${new URL(url).pathname.slice(-16)}`
  await admin(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
  t.teardown(() => admin(`DROP OWNED BY ${role}; DROP ROLE ${role}`))
  await openStoreOn(t, settingsOf(url))
  await admin(`GRANT USAGE ON SCHEMA threadwarden TO ${role}`)
  await admin(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA threadwarden TO ${role}`)
  const store = await openStoreOn(t, settingsOf(url, { user: role, password: 'x' }))
  t.equal(await store.fault(), null)
  for (const right of ['SELECT', 'UPDATE']) {
    await admin(`REVOKE ${right} ON threadwarden.threads FROM ${role}`)
    t.match(await store.fault(), /may not read and write all tables/, right)
    await admin(`GRANT ${right} ON threadwarden.threads TO ${role}`)
    t.equal(await store.fault(), null)
  }
  await admin('ALTER TABLE threadwarden.grants RENAME TO away')
  t.match(await store.fault(), /a table is missing/)
  await admin('ALTER TABLE threadwarden.away RENAME TO grants')
  t.equal(await store.fault(), null)
})

for (const [what, notice] of [
  ['is asked how it is', (store: Store) => store.fault()],
  ['only listens', (store: Store) => claim(store, BOB, { scope: '', threadId: 'new' }).catch(String)],
] as const) {
  void test(`a schema that was lost, and made anew by another process, is not used by a store that ${what}`, async (t) => {
    const { url, admin } = await startPostgres(t)
    const store = await openStoreOn(t, settingsOf(url), { cache: 10 })
    store.onInvalidation(() => {})
    await own(store, ALICE)
    await admin('ALTER SCHEMA threadwarden RENAME TO away')
    await t.rejects(claim(store, BOB), StoreUnavailable)
    const other = await openStoreOn(t, settingsOf(url))
    t.equal((await other.accessTo(KEY, readerOf(BOB))).row, null, 'nobody’s there')
    await until(async () => /was lost and recreated/.test(String(await notice(store))))
    await t.rejects(claim(store, BOB), { name: 'StoreUnavailable', message: /restore a backup, or restart all gateways/ })
    await t.rejects(async () => store.accessTo(KEY, readerOf(ALICE)), StoreUnavailable, 'not from memory, either')
    await admin('DROP SCHEMA threadwarden CASCADE')
    await admin('ALTER SCHEMA away RENAME TO threadwarden')
    await until(async () => (await notice(store)) === null || (await store.fault()) === null)
    t.equal(await claim(store, BOB), 'foreign', 'what was put back has the same past')
  })
}

void test('what was revoked stays revoked while a schema that was made anew says that nothing is', async (t) => {
  const { url, admin } = await startPostgres(t)
  const store = await openStoreOn(t, settingsOf(url))
  await store.revoke({ kind: 'token', tokenId: 'j', revokedAt: NOW })
  const failures: unknown[] = []
  const list = await makeRevocationList(store, { interval: 1, onFailure: (error) => failures.push(error) })
  t.teardown(() => list.stop())
  const isRevoked = () => list.isRevoked(ALICE, { tokenId: 'j' } as Credential)
  t.ok(isRevoked())
  await admin('ALTER SCHEMA threadwarden RENAME TO away')
  await openStoreOn(t, settingsOf(url))
  await until(async () => /was lost and recreated/.test(String(await store.fault())))
  await t.rejects(list.reload(), StoreUnavailable)
  t.ok(isRevoked())
  await admin('DROP SCHEMA threadwarden CASCADE')
  await admin('ALTER SCHEMA away RENAME TO threadwarden')
  await until(isUp(store))
  await list.reload()
  t.ok(isRevoked())
  t.ok(failures.length > 0)
})

void test('a schema that does not say when it was made is being restored, and is not used', async (t) => {
  const { url, admin } = await startPostgres(t)
  const store = await openStoreOn(t, settingsOf(url))
  store.onInvalidation(() => {})
  await own(store, ALICE)
  await admin('ALTER TABLE threadwarden.migrations RENAME TO kept')
  await admin('CREATE TABLE threadwarden.migrations (LIKE threadwarden.kept)')
  const refused = () =>
    claim(store, BOB, { scope: '', threadId: 'new' }).then(
      () => false,
      (error: unknown) => /is empty, or is being restored/.test(String(error)),
    )
  await until(refused)
  t.match(await store.fault(), /is empty, or is being restored/)
  await admin('INSERT INTO threadwarden.migrations SELECT * FROM threadwarden.kept')
  await until(isUp(store))
  t.equal(await claim(store, BOB), 'foreign')
})
