/** Limits count over all gateways on one database. */
import { test, type Test } from 'tap'
import { codeOf } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { ENDED } from './callers.ts'
import { replicas } from './scene.ts'

void test('a user begins 120 threads over both within two minutes, and no more', async (t) => {
  const { a, b, alice, bob, upstream } = await replicas(t, { limits: { newThreads: undefined } })
  const statuses: number[] = []
  // Half a dozen at once: nothing is to depend on one coming after the other.
  for (let at = 0; at < 120; at += 6) {
    const asks = Array.from({ length: 6 }, (_, more) => ((at + more) % 2 === 0 ? a : b).run(alice, `t-${at + more}`))
    statuses.push(...(await Promise.all(asks)).map(({ status }) => status))
  }
  t.same(
    statuses.filter((status) => status !== 200),
    [],
  )
  const before = upstream.beginnings()
  for (const replica of [a, b]) t.match(codeOf(await replica.run(alice, 'one-more')), 'rate-limited')
  t.equal(upstream.beginnings(), before, 'nothing of them reached the upstream')
  t.equal((await b.run(alice, 't-0')).status, 200, 'threads that there are go on')
  t.equal((await b.run(bob, 'of-bob')).status, 200, 'and so does everybody else')
})

void test('requests of a user count over both', async (t) => {
  const { a, b, alice, bob } = await replicas(t, { limits: { requests: '2/h' } })
  const statuses = []
  for (const replica of [a, b, a, b, a, b]) statuses.push(await replica.reads(alice, 'nobodys'))
  t.same(statuses, [403, 403, 403, 403, 429, 429])
  t.equal(await b.reads(bob, 'nobodys'), 403)
})

/** Two streams of alice's, one on each, where she may have two. */
async function streaming(t: Test) {
  const all = await replicas(t, { limits: { streams: 2 } })
  const { a, b, alice } = all
  await a.run(alice)
  // The stream of the run is given back a moment after its end.
  await until(async () => (await all.database.admin('SELECT 1 FROM threadwarden.open_streams')).length === 0)
  return { ...all, here: await a.connect(alice), there: await b.connect(alice) }
}

void test('open streams count over both, and one that ends makes room on either', async (t) => {
  const { a, b, alice, here, there } = await streaming(t)
  for (const stream of [here, there]) t.match(stream.text(), / 200 /)
  for (const replica of [a, b]) t.match((await replica.connect(alice)).text(), / 429 /)
  here.destroy()
  await until(async () => / 200 /.test((await b.connect(alice)).text()))
  t.match((await a.connect(alice)).text(), / 429 /)
})

void test('a gateway that stops leaves the other’s streams and requests alone, and gives its own back', async (t) => {
  const { a, b, alice, there } = await streaming(t)
  await a.gateway.stop(0)
  await until(async () => / 200 /.test((await b.connect(alice)).text()))
  t.notMatch(there.text(), ENDED)
  t.notOk(there.isClosed())
  t.equal(await b.reads(alice), 200)
})

void test('a reload of one disturbs nothing on the other', async (t) => {
  const { a, b, alice, here, there } = await streaming(t)
  t.match(await a.gateway.reload('test'), { outcome: /reloaded|unchanged/ })
  for (const stream of [here, there]) {
    t.notMatch(stream.text(), ENDED)
    t.notOk(stream.isClosed())
  }
  t.equal(await b.reads(alice), 200)
})
