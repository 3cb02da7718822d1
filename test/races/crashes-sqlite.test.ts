/** kill -9 at random moments of the work on one SQLite file: no claim that was confirmed is lost, and none is given twice. */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { crashGateways } from '../../testing/races/gateway-crashes.ts'
import { damageIn } from '../../testing/races/places.ts'
import { crashStores } from '../../testing/races/store-crashes.ts'
import { killGateways, killWorkers } from '../../testing/races/strikes.ts'

function place(t: Test) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  return { folder, address: { store: `sqlite:${file}` }, damage: async () => damageIn(file) }
}

void test('of processes that use the store', async (t) => {
  const { random } = Math
  const size = { seed: 1, kills: 7, processes: 4, lanes: 2, threads: 6 }
  const tally = await crashStores({ ...place(t), ...size, random, strike: killWorkers(random) })
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
})

void test('of gateways', async (t) => {
  const { random } = Math
  const size = { seed: 1, kills: 3, processes: 3, lanes: 8, threads: 6 }
  const tally = await crashGateways(t, { ...place(t), ...size, random, strike: killGateways(random) })
  t.same(tally.wrong, [])
  t.match(tally, { lost: 0, doubled: 0 })
  t.ok(tally.confirmed > 0)
})
