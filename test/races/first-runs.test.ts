/** Of a hundred users whose first run is on one new thread, over four gateways, one is the owner, and only that one is served. */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { manyFirstRuns } from '../../testing/races/first-runs.ts'
import type { StoreAddress } from '../../testing/races/places.ts'
import { sampleOf } from '../../testing/support/sample.ts'

const SIZE = { users: 100, gateways: 4, rounds: 4, seed: 1, random: Math.random } as const

async function isRight(t: Test, address: StoreAddress): Promise<void> {
  const tally = await manyFirstRuns(t, { ...SIZE, address })
  t.same(tally.wrong, [])
  t.match(tally, { attempted: SIZE.users * SIZE.rounds, confirmed: SIZE.rounds, lost: 0, doubled: 0 })
}

/** A name, and how a test finds its store. */
const STORES: readonly (readonly [string, (t: Test) => string | Promise<string>])[] = [
  ['on one PostgreSQL database', async (t) => (await startPostgres(t)).url],
  [
    'on one SQLite file',
    (t) => {
      const { folder, remove } = makeFolder()
      t.teardown(remove)
      return `sqlite:${join(folder, 'ownership.db')}`
    },
  ],
]

for (const [name, place] of sampleOf(STORES, 2)) void test(name, async (t) => isRight(t, { store: await place(t) }))
