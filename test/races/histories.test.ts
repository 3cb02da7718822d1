/**
 * What several processes do to a few threads at once could have been done one after the other: claims, releases, deletions,
 * revivals, grants and what operators do don't cross.
 */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { runHistories } from '../../testing/races/histories.ts'
import type { StoreAddress } from '../../testing/races/places.ts'

const ROUNDS = 20

async function areInOrder(t: Test, address: StoreAddress, folder: string): Promise<void> {
  const tally = await runHistories({ address, folder, seed: 1, rounds: ROUNDS })
  t.same(tally.wrong, [])
  t.ok(tally.confirmed > 0)
}

function folderOf(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  return folder
}

void test('on one SQLite file', async (t) => {
  const folder = folderOf(t)
  await areInOrder(t, { store: `sqlite:${join(folder, 'ownership.db')}` }, folder)
})

void test('on one PostgreSQL database', async (t) => {
  const { url } = await startPostgres(t)
  // Without the cache, which may say for a second what was so: src/store/access-cache.ts.
  await areInOrder(t, { store: url, postgres: { cache: 0 } }, folderOf(t))
})
