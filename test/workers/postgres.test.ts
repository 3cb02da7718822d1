/** Workers before one PostgreSQL database: limits are counted there, and orders of operators are in force when they are answered. */
import t from 'tap'
import { startPostgres } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

void t.test('limits, revocations and ownership are one', async (test) => {
  const database = await startPostgres(test)
  const scene = await startScene(test, {
    config: { ownership: { store: database.url, unknownThread: 'claim' }, limits: { newThreads: '10/m' } },
  })
  const workers = [...(await scene.workers()).values()]
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  for (let at = 0; at < 20; at += 1) test.equal((await workers[at % 2]!.run(alice, `t${at}`)).status, 200)
  for (const worker of workers) test.equal((await worker.run(alice, 'one-more')).status, 429)
  for (const worker of workers) test.same([await worker.reads(alice, 't1'), await worker.reads(bob, 't1')], [200, 403])
  await scene.operate('/threads/t1/grants', { user: 'corp:bob', right: 'read' })
  for (const worker of workers) await until(async () => (await worker.reads(bob, 't1')) === 200)
  await scene.operate('/threads/t1/grants', { user: 'corp:bob' }, 'DELETE')
  // What a worker remembers is never older than a second, as between replicas.
  for (const worker of workers) await until(async () => (await worker.reads(bob, 't1')) === 403)
  test.equal((await scene.operate('/revocations', { user: 'corp:alice' })).status, 201)
  for (const worker of workers) test.equal(await worker.reads(alice, 't1'), 401)
  test.same(await scene.end('SIGTERM'), { code: 0, signal: null })
})
