/** Every order in which a few operations can happen, with the store on SQLite; `npm run interleavings` takes all of them. */
import { test } from 'tap'
import { inEveryOrder } from '../../testing/interleavings/explore.ts'
import { sqliteEngine } from '../../testing/interleavings/sqlite-engine.ts'

void test('a few operations at once, in every order, on SQLite', async (t) => {
  await inEveryOrder(t, await sqliteEngine(), 60)
})
