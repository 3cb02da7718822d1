/**
 * kill -9, at random moments, of what works on one PostgreSQL database: no claim that was confirmed is lost, and none is given
 * twice.
 */
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { crashGateways } from '../../testing/races/gateway-crashes.ts'
import { crashStores } from '../../testing/races/store-crashes.ts'
import { killGateways, killWorkers } from '../../testing/races/strikes.ts'

const { random } = Math
const SIZE = { seed: 1, threads: 6, random, damage: async () => null }

void test('of processes that use the store', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { url } = await startPostgres(t)
  const address = { store: url, postgres: { cache: 0 } }
  const strike = killWorkers(random)
  const tally = await crashStores({ ...SIZE, processes: 3, lanes: 2, address, folder, kills: 6, strike })
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
})

void test('of gateways', async (t) => {
  const address = { store: (await startPostgres(t)).url }
  const tally = await crashGateways(t, { ...SIZE, processes: 2, lanes: 8, address, kills: 2, strike: killGateways(random) })
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
})
