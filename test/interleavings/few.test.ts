/** The orders of a few operations that are nearest to one after the other, with the store on SQLite; sqlite.test.ts takes more. */
import { test } from 'tap'
import { inEveryOrder } from '../../testing/interleavings/explore.ts'
import { sqliteEngine } from '../../testing/interleavings/sqlite-engine.ts'

void test('a few operations at once, in the nearest orders, on SQLite', async (t) => {
  await inEveryOrder(t, await sqliteEngine(), 12)
})
