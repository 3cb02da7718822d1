/** Changes that one gateway is not notified of are in force there all the same. The report says how long each took. */
import { test, type Test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { ENDED, within } from './callers.ts'
import { hinderedWay, type HinderedWay } from './hindered-way.ts'
import { KEY, replicas } from './scene.ts'

/** The session that listens for b, which has a way of its own: the only one of all whose last statement asks for the number. */
const LISTENING = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%versions WHERE name = $1%'
  AND pid <> pg_backend_pid()`

/** Two gateways of which b remembers t1, and has a stream of alice's on it. */
async function scene(t: Test) {
  let way: HinderedWay | undefined
  const all = await replicas(t, {
    way: async (url) => {
      way = await hinderedWay(t, url)
      return way.url
    },
  })
  const { a, b, alice } = all
  await a.run(alice)
  const stream = await b.connect(alice)
  await all.warm()
  return {
    ...all,
    way: way!,
    /** Takes t1 from alice by another process, and waits until that is in force on b. */
    taken: () =>
      within(t, () => all.store.assign(KEY, 'corp:carol', Date.now()), {
        'requests are refused': () => until(async () => (await b.reads(alice)) !== 200),
        'the stream ends': () => stream.until(ENDED),
      }),
  }
}

void test('when the sessions that listen are thrown out right before', async (t) => {
  const { database, taken } = await scene(t)
  const thrown = await database.admin(`SELECT pg_terminate_backend(pid) FROM (${LISTENING}) AS sessions`)
  t.ok(thrown.length >= 2, 'of both gateways')
  await taken()
})

void test('when notifications don’t get through, though everything else does', async (t) => {
  const { way, taken, a, b, alice, bob, warm } = await scene(t)
  way.loseNotifications()
  await taken()
  t.ok(way.lost() > 0)
  await a.run(bob, 't2')
  t.equal(await b.reads(bob, 't2'), 200)
  t.equal(await b.reads(alice, 't2'), 403)
  await warm()
  t.pass('and what is remembered is used again')
})

void test('when the connection that listens says nothing any more, though it stands', async (t) => {
  const { way, taken } = await scene(t)
  way.stallListening()
  await taken()
})
