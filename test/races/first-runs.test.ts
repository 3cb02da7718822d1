/** Of a hundred users whose first run is on one new thread, over four gateways, one is the owner, and only that one is served. */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { manyFirstRuns } from '../../testing/races/first-runs.ts'
import type { StoreAddress } from '../../testing/races/places.ts'

const SIZE = { users: 100, gateways: 4, rounds: 4, seed: 1, random: Math.random } as const

async function isRight(t: Test, address: StoreAddress): Promise<void> {
  const tally = await manyFirstRuns(t, { ...SIZE, address })
  t.same(tally.wrong, [])
  t.match(tally, { attempted: SIZE.users * SIZE.rounds, confirmed: SIZE.rounds, lost: 0, doubled: 0 })
}

void test('on one SQLite file', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  await isRight(t, { store: `sqlite:${join(folder, 'ownership.db')}` })
})

void test('on one PostgreSQL database', async (t) => {
  const { url } = await startPostgres(t)
  await isRight(t, { store: url })
})
