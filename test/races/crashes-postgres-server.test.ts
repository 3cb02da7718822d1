/**
 * kill -9 of the PostgreSQL server, at random moments of the work on it: no claim that was confirmed is lost, none is given
 * twice, nobody is let through meanwhile, and whoever works on it goes on by itself.
 */
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgresServer } from '../../testing/support/postgres.ts'
import { crashGateways } from '../../testing/races/gateway-crashes.ts'
import { damageOn } from '../../testing/races/places.ts'
import { crashStores } from '../../testing/races/store-crashes.ts'
import { killServerUnderGateways, killServerUnderWorkers } from '../../testing/races/strikes.ts'

const { random } = Math
const SIZE = { seed: 1, threads: 6, random }

void test('under processes that use the store', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const server = await startPostgresServer(t)
  const address = { store: server.url, postgres: { cache: 0 } }
  const strike = killServerUnderWorkers(server, random)
  const damage = () => damageOn(server.admin)
  const tally = await crashStores({ ...SIZE, processes: 3, lanes: 2, address, folder, kills: 4, strike, damage })
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
})

void test('under gateways', async (t) => {
  const server = await startPostgresServer(t)
  const strike = killServerUnderGateways(server)
  const address = { store: server.url }
  const damage = () => damageOn(server.admin)
  const tally = await crashGateways(t, { ...SIZE, processes: 2, lanes: 8, address, kills: 3, strike, damage })
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
})
