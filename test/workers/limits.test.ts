/** Limits hold over all workers, and a worker that dies takes none of them along. */
import { test } from 'tap'
import { until } from '../support/until.ts'
import { startScene } from './scene.ts'

void test('the 121st new thread is one too many, whichever workers the others were begun at', async (t) => {
  const scene = await startScene(t, { config: { limits: {} } })
  const workers = [...(await scene.workers()).values()]
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  for (let at = 0; at < 120; at += 1) {
    const { status } = await workers[at % workers.length]!.run(alice, `t${at}`)
    if (status !== 200) t.fail(`${at}: ${status}`)
  }
  for (const worker of workers) {
    const { status, headers, json } = await worker.run(alice, 'one-more')
    t.equal(status, 429)
    t.match(json, { code: 'rate-limited' })
    t.match(headers.get('ratelimit-policy'), '"newThreads";q=120;w=120')
    t.equal((await worker.run(bob, `of-bob-${workers.indexOf(worker)}`)).status, 200)
  }
})

void test('streams are counted over all workers, and given back by those that end and by a worker that dies', async (t) => {
  const scene = await startScene(t, { config: { limits: { newThreads: 'off', streams: 2 } } })
  const [one, two] = [...(await scene.workers()).values()] as const
  const alice = scene.sign('alice')
  t.equal((await one!.run(alice, 't1')).status, 200)
  // The place of a run is free when its answer is over, a moment after the caller has all of it.
  const connected = async (worker: typeof one) => {
    let stream = await worker!.connect(alice, 't1')
    while (stream.status === 429) stream = await worker!.connect(alice, 't1')
    return stream
  }
  const streams = [await connected(one), await connected(two)]
  t.equal((await one!.connect(alice, 't1')).status, 429)
  t.equal((await two!.connect(alice, 't1')).status, 429)
  const dying = scene.processOf(1)
  process.kill(dying, 'SIGKILL')
  await streams[0]!.over
  await scene.line(({ msg, worker }) => String(msg).startsWith('a worker ended') && worker === 1)
  await until(
    async () => (await scene.ready()).text.includes('"status":"ready"') && !(await scene.ready()).text.includes('workers'),
  )
  const again = [...(await scene.workers()).values()]
  t.equal((await again[1]!.connect(alice, 't1')).status, 200)
  t.equal((await again[0]!.connect(alice, 't1')).status, 429)
})
