/** All workers drain together, within the time that the first process has. */
import { test } from 'tap'
import { startScene } from './scene.ts'

void test('streams of every worker end with an event at the deadline', async (t) => {
  const scene = await startScene(t, { environment: { TERMINATION_GRACE_PERIOD_SECONDS: '5' } })
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  const streams = await Promise.all(workers.map((worker) => worker.connect(alice, 't1')))
  t.same(await scene.end('SIGTERM'), { code: 0, signal: null })
  for (const stream of streams) {
    await stream.over
    t.match(stream.text(), /"type":"RUN_ERROR".*"code":"shutting-down"/)
  }
  t.match(
    scene.lines.filter(({ msg }) => msg === 'draining' || msg === 'stopped'),
    [{ msg: 'draining' }, { msg: 'stopped' }],
  )
  t.notOk(scene.lines.some(({ msg }) => String(msg).startsWith('a worker ended')))
})

void test('a second signal ends everything at once', async (t) => {
  const scene = await startScene(t, {
    config: { shutdown: { delay: '10m' } },
    environment: { TERMINATION_GRACE_PERIOD_SECONDS: '3600' },
  })
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  const streams = await Promise.all(workers.map((worker) => worker.connect(alice, 't1')))
  scene.signal('SIGTERM')
  await scene.line(({ msg }) => msg === 'draining')
  t.match((await scene.ready()).json, { pending: { 'shutting-down': /./ } })
  // Until everybody has heard of it, all workers serve on, and let go of the connections.
  for (const worker of workers) {
    const { status, headers } = await worker.ask(alice, '/info')
    t.same([status, headers.get('connection')], [200, 'close'])
  }
  t.same(await scene.end('SIGTERM'), { code: 1, signal: null })
  for (const stream of streams) await stream.over
})
