/**
 * kill -9, at random moments, of what works on one PostgreSQL database, and of the server itself: no claim that was confirmed is
 * lost, none is given twice, and gateways come back by themselves.
 */
import { test, type Test } from 'tap'
import { makeFolder } from '../support/gateway.ts'
import { startPostgres, startPostgresServer } from '../support/postgres.ts'
import { crashGateways } from './gateway-crashes.ts'
import { crashStores } from './store-crashes.ts'
import { killGateways, killServerUnderGateways, killServerUnderWorkers, killWorkers } from './strikes.ts'
import type { Tally } from './tally.ts'

const { random } = Math
const WORKERS = { seed: 1, processes: 3, lanes: 2, threads: 6, random, damage: async () => null }
const GATEWAYS = { seed: 1, processes: 2, lanes: 8, threads: 6, random, damage: async () => null }

function isRight(t: Test, tally: Tally): void {
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
}

function folderOf(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  return folder
}

void test('of processes that use the store', async (t) => {
  const { url } = await startPostgres(t)
  const address = { store: url, postgres: { cache: 0 } }
  const strike = killWorkers(random)
  isRight(t, await crashStores({ ...WORKERS, address, folder: folderOf(t), kills: 6, strike }))
})

void test('of the server under processes that use the store', async (t) => {
  const server = await startPostgresServer(t)
  const address = { store: server.url, postgres: { cache: 0 } }
  const strike = killServerUnderWorkers(server, random)
  isRight(t, await crashStores({ ...WORKERS, address, folder: folderOf(t), kills: 4, strike }))
})

void test('of gateways', async (t) => {
  const { url } = await startPostgres(t)
  isRight(t, await crashGateways(t, { ...GATEWAYS, address: { store: url }, kills: 2, strike: killGateways(random) }))
})

void test('of the server under gateways', async (t) => {
  const server = await startPostgresServer(t)
  const strike = killServerUnderGateways(server)
  isRight(t, await crashGateways(t, { ...GATEWAYS, address: { store: server.url }, kills: 3, strike }))
})
