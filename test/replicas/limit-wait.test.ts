/** A grant that ends while a request waits for a limit: the request was decided before, and nothing has been begun for it yet. */
import pg from 'pg'
import { test, type Test } from 'tap'
import type { TestDatabase } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { replicas } from './scene.ts'

/** Makes whoever counts wait until the function returned is called. */
async function holdCounters(t: Test, { url, admin }: TestDatabase) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query('BEGIN')
  await client.query('LOCK TABLE threadwarden.rate_limits IN ACCESS EXCLUSIVE MODE')
  const waiting = `SELECT FROM pg_locks JOIN pg_class ON pg_class.oid = relation WHERE relname = 'rate_limits' AND NOT granted`
  return {
    somebodyWaits: () => until(async () => (await admin(waiting)).length > 0),
    release: () => client.query('COMMIT'),
  }
}

void test('a run that waits for a limit is refused if its grant ends meanwhile', async (t) => {
  const { a, b, alice, bob, upstream, database } = await replicas(t, { limits: { requests: 'off', runs: '100/h' } })
  await a.run(alice)
  t.equal((await a.operate('/threads/t1/grants', { user: 'corp:bob', right: 'write' })).status, 201)
  t.equal((await b.run(bob)).status, 200)
  const before = upstream.beginnings()
  const counters = await holdCounters(t, database)
  const run = b.run(bob)
  await counters.somebodyWaits()
  t.equal((await a.operate('/threads/t1/grants', { user: 'corp:bob' }, 'DELETE')).status, 204)
  // It is known there by then.
  await until(async () => (await b.reads(bob)) === 403)
  await counters.release()
  t.equal((await run).status, 403)
  t.equal(upstream.beginnings(), before)
})
