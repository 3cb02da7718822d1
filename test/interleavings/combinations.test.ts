/** Every pair of operations at two gateways on one SQLite file; `npm run interleavings -- --operations 4` goes further. */
import { test } from 'tap'
import { inEveryOrder } from '../../testing/interleavings/explore.ts'
import { combinations } from '../../testing/interleavings/histories.ts'
import { sqliteEngine } from '../../testing/interleavings/sqlite-engine.ts'

void test('every two operations, in the orders nearest to one after the other', async (t) => {
  await inEveryOrder(t, await sqliteEngine(), 10, combinations(2))
})
