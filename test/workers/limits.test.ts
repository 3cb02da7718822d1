/** Limits hold over all workers, and a worker that dies takes none of them along. */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { firstAnswer, head, openRaw } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import type { Answering } from '../../testing/support/upstream.ts'
import { startScene, type ToWorker } from './scene.ts'

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
  await scene.line(({ msg, worker }) => String(msg).startsWith('a worker exited') && worker === 1)
  await until(
    async () => (await scene.ready()).text.includes('"status":"ready"') && !(await scene.ready()).text.includes('workers'),
  )
  const again = [...(await scene.workers()).values()]
  t.equal((await again[1]!.connect(alice, 't1')).status, 200)
  t.equal((await again[0]!.connect(alice, 't1')).status, 429)
})

void test('what all bodies may take of the memory is divided', async (t) => {
  const limits = { newThreads: 'off', body: '64KiB', runBody: '1MiB', bodiesInFlight: '2MiB' }
  const scene = await startScene(t, { config: { limits } })
  const workers = await scene.workers()
  const alice = scene.sign('alice')
  const large = runInput('t1', 'x'.repeat(900_000))
  // One that is never sent to its end is held as far as it came.
  const connection = await openRaw(scene.url)
  t.teardown(() => connection.destroy())
  connection.write(head('GET /api/copilotkit/nobody HTTP/1.1', 'Host: a'))
  const id = firstAnswer(await connection.until('"code"')).headers.get('x-request-id')
  const { worker } = await scene.line(({ msg, requestId }) => msg === 'request' && requestId === id)
  const body = JSON.stringify(large)
  const lines = [`Authorization: Bearer ${alice}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  connection.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', 'Host: a', ...lines) + body.slice(0, 800_000))
  const statusAt = async (way: ToWorker): Promise<number> => (await way.ask(alice, '/agent/default/run', large)).status
  await until(async () => (await statusAt(workers.get(Number(worker))!)) === 503)
  for (const [number, way] of workers) if (number !== worker) t.equal(await statusAt(way), 200)
})

void test('token budgets count over all workers, and a worker that dies pays for its open runs', async (t) => {
  const usage = [{ totalTokens: 600 }]
  const answering: Answering = (request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
    if (!request.target.includes('/endless/')) response.end(`data: ${JSON.stringify({ type: 'RUN_FINISHED', usage })}\n\n`)
  }
  const tokens = [{ limit: 1000, window: '1d', reserve: 300 }]
  const scene = await startScene(t, { config: { limits: { newThreads: 'off', tokens } }, answering })
  const [one, two] = [...(await scene.workers()).values()] as const
  const [alice, bob] = [scene.sign('alice'), scene.sign('bob')]
  t.equal((await one!.run(alice, 't1')).status, 200)
  t.equal((await two!.run(alice, 't1')).status, 200)
  for (const worker of [one, two]) t.match((await worker!.run(alice, 't1')).json, { code: 'budget-exceeded' })
  const spent = async (user: string): Promise<unknown> => (await scene.operate(`/budgets?user=${user}`)).json
  t.match(await spent('corp:alice'), { budgets: [{ spent: 1200, openRuns: 0 }] })
  const body = JSON.stringify(runInput('t2'))
  const stream = await openRaw(scene.url)
  t.teardown(() => stream.destroy())
  const lines = [`Authorization: Bearer ${bob}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  stream.write(head('POST /api/copilotkit/agent/endless/run HTTP/1.1', 'Host: a', ...lines) + body)
  await stream.until(/RUN_STARTED/)
  t.match(await spent('corp:bob'), { budgets: [{ spent: 0, reserved: 300, openRuns: 1 }] })
  for (const worker of [1, 2]) process.kill(scene.processOf(worker), 'SIGKILL')
  await until(async () => JSON.stringify(await spent('corp:bob')).includes('"spent":300'))
  t.match(await spent('corp:bob'), { budgets: [{ reserved: 0, openRuns: 0 }] })
})
