/**
 * A PostgreSQL server that fails under a gateway that serves: what needs the store is 503, what does not goes on, /readyz says
 * so, nobody is let through who should not be, and it is right again by itself.
 */
import { test } from 'tap'
import { startPostgresServer } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { askAs } from '../../testing/races/crowd.ts'
import { faultyScene } from './faulty-scene.ts'

/** So that a server that says nothing is not waited for as long as in production. */
const QUICK = { connectTimeout: '500ms', statementTimeout: '500ms' }

void test('shut down', async (t) => {
  const server = await startPostgresServer(t)
  const scene = await faultyScene(t, { store: server.url })
  await server.stop()
  t.same(await scene.failing('nothing'), [])
  await server.restart()
  t.same(await scene.recovered(), [])
})

void test('standing still', async (t) => {
  const server = await startPostgresServer(t)
  const scene = await faultyScene(t, { store: server.url, postgres: QUICK })
  server.pause()
  t.same(await scene.failing('nothing'), [])
  server.resume()
  t.same(await scene.recovered(), [])
})

void test('with all connections lost', async (t) => {
  const server = await startPostgresServer(t)
  const scene = await faultyScene(t, { store: server.url })
  const { base } = scene.gateway
  for (let time = 0; time < 3; time += 1) {
    await server.disconnect()
    const told = await Promise.all([
      askAs(scene, base, scene.thread, 'bob', 'started'),
      askAs(scene, base, scene.thread, 'bob', 'read'),
      askAs(scene, base, scene.thread, 'bob', 'delete'),
    ])
    // At once on a new connection, or not at all.
    for (const { status, code } of told) t.ok(code === (status === 503 ? 'store-unavailable' : 'not-owner'), `${status} ${code}`)
    t.same(await scene.recovered(), [])
  }
})

void test('read-only', async (t) => {
  const server = await startPostgresServer(t)
  const scene = await faultyScene(t, { store: server.url })
  const set = async (change: string): Promise<void> => {
    await server.admin(`ALTER SYSTEM ${change}`)
    await server.admin('SELECT pg_reload_conf()')
  }
  await set('SET default_transaction_read_only = on')
  t.same(await scene.failing('reads'), [])
  await set('RESET default_transaction_read_only')
  await until(async () => (await server.admin('SHOW transaction_read_only'))[0]?.['transaction_read_only'] === 'off')
  t.same(await scene.recovered(), [])
})

void test('behind a lock', async (t) => {
  const server = await startPostgresServer(t)
  const scene = await faultyScene(t, { store: server.url, postgres: QUICK })
  const lock = server.admin('DO $$ BEGIN LOCK TABLE threadwarden.threads IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(600); END $$')
  lock.catch(() => {})
  const holder =
    "SELECT pid FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'threadwarden.threads'::regclass"
  await until(async () => (await server.admin(holder)).length === 1)
  t.match(await askAs(scene, scene.gateway.base, scene.thread, 'bob', 'started'), { status: 503, code: 'store-unavailable' })
  t.match(await askAs(scene, scene.gateway.base, 'new', 'bob', 'started'), { status: 503, code: 'store-unavailable' })
  await server.admin(`SELECT pg_terminate_backend(pid) FROM (${holder}) AS held`)
  t.same(await scene.recovered(), [])
})
