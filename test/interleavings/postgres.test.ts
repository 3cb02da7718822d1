/** Every order in which a few operations can happen, with the store on PostgreSQL, statement by statement. */
import { test } from 'tap'
import { startPostgres } from '../../testing/support/postgres.ts'
import { inEveryOrder } from '../../testing/interleavings/explore.ts'
import { postgresEngine } from '../../testing/interleavings/postgres-engine.ts'

void test('a few operations at once, in every order, on PostgreSQL', async (t) => {
  const { url } = await startPostgres(t)
  await inEveryOrder(t, await postgresEngine(url), 6)
})
