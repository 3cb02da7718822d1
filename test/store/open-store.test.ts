/** The store that a configuration names is opened, whichever it is. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { configSchema } from '../../src/config/schema.ts'
import { openStore, openStoreWithPool } from '../../src/store/open.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'

const run = promisify(execFile)
const LOADED = fileURLToPath(new URL('loaded-modules.ts', import.meta.url))

const ownership = (store: string) => configSchema.shape.ownership.parse({ store, unknownThread: 'claim' })

void test('a gateway on SQLite never loads the driver of PostgreSQL', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { stdout } = await run(process.execPath, [LOADED, `sqlite:${join(folder, 'a.db')}`])
  t.equal(stdout, 'false')
})

void test('one on PostgreSQL does', async (t) => {
  const { url } = await startPostgres(t)
  const { stdout } = await run(process.execPath, [LOADED, url])
  t.equal(stdout, 'true')
})

void test('PostgreSQL comes with its connections, SQLite with none', async (t) => {
  const { url } = await startPostgres(t)
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const server = await openStoreWithPool(ownership(url))
  t.same(await server.pool?.query({ text: 'SELECT 1 AS one' }), [{ one: 1 }])
  await server.store.close()
  const file = await openStoreWithPool(ownership(`sqlite:${join(folder, 'a.db')}`))
  t.equal(file.pool, null)
  await file.store.close()
})

void test('a store that is not there is not made where that is not wanted', async (t) => {
  const { url, admin } = await startPostgres(t)
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'a.db')
  const message = /does not exist: check ownership\.store, or create it with threadwarden store migrate/
  await t.rejects(openStore(ownership(`sqlite:${file}`), { make: false }), { name: 'StoreUnavailable', message })
  t.notOk(existsSync(file))
  await t.rejects(openStore(ownership(url), { make: false }), { name: 'StoreUnavailable', message })
  t.same(await admin("SELECT 1 FROM pg_namespace WHERE nspname = 'threadwarden'"), [])
  await (await openStore(ownership(url))).close()
  await (await openStore(ownership(url), { make: false })).close()
})
