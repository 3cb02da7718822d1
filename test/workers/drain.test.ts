/** All workers drain together, within the time that the first process has. */
import { connect } from 'node:net'
import { test } from 'tap'
import { startUpstream } from '../../testing/support/upstream.ts'
import { deferred, until } from '../../testing/support/until.ts'
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
  t.notOk(scene.lines.some(({ msg }) => String(msg).startsWith('a worker exited')))
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
  // New rules come into force as well.
  scene.write({ limits: { newThreads: 'off', requests: 'off', body: '64B' }, shutdown: { delay: '10m' } })
  t.match((await scene.operate('/reload', undefined, 'POST')).json, { outcome: 'reloaded' })
  t.same(await scene.end('SIGTERM'), { code: 1, signal: null })
  for (const stream of streams) await stream.over
})

void test('an end that comes in the middle of a change cuts no stream, and nothing is changed', async (t) => {
  const scene = await startScene(t, { environment: { TERMINATION_GRACE_PERIOD_SECONDS: '7' } })
  const other = await startUpstream()
  t.teardown(() => other.close())
  const told = deferred()
  other.answerQuestions((_request, response) => void told.promise.then(() => response.writeHead(500).end()))
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  const streams = await Promise.all(workers.map((worker) => worker.connect(alice, 't1')))
  scene.write({ upstream: { url: other.url, basePath: '/api/copilotkit', transport: 'auto' } })
  const reloading = scene.operate('/reload', undefined, 'POST')
  // Every worker is in the middle of it.
  await until(() => other.questions.length >= workers.length)
  scene.signal('SIGTERM')
  await until(async () => !(await listens(scene.url)))
  told.resolve()
  t.match(await reloading, { status: 409, text: /shutting down/ })
  t.same(await scene.end('SIGCONT'), { code: 0, signal: null })
  for (const stream of streams) {
    await stream.over
    t.match(stream.text(), /"type":"RUN_ERROR".*"code":"shutting-down"/)
  }
})

void test('a worker that hangs does not keep the others from their end', async (t) => {
  const scene = await startScene(t, { environment: { TERMINATION_GRACE_PERIOD_SECONDS: '5' } })
  const hanging = scene.processOf(1)
  process.kill(hanging, 'SIGSTOP')
  t.same(await scene.end('SIGTERM'), { code: 0, signal: null })
  t.match(
    scene.lines.filter(({ msg }) => msg === 'a worker did not exit in time: the gateway kills it'),
    [{ worker: 1, level: 'error' }],
  )
})

/** Whether anybody takes connections there. */
async function listens(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const taken = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
  })
  socket.destroy()
  return taken
}
