/** A worker that dies takes its own streams along and nothing else; another one takes its place. */
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'tap'
import { INFO, json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

void test('the others serve on, and it is started again', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  const streams = await Promise.all(workers.map((worker) => worker.connect(alice, 't1')))
  const [dying, other] = [scene.processOf(1), scene.processOf(2)]
  process.kill(dying, 'SIGKILL')
  await streams[0]!.over
  t.match(await scene.line(({ msg }) => String(msg).startsWith('a worker exited')), {
    worker: 1,
    signal: 'SIGKILL',
    level: 'error',
  })
  t.equal(await workers[1]!.reads(alice, 't1'), 200)
  // Whoever is there is ready, and says that somebody is missing until nobody is.
  t.equal((await scene.ready()).status, 200)
  await scene.line(({ msg, worker }) => msg === 'the worker is serving again' && worker === 1)
  t.same((await scene.ready()).json, { status: 'ready', pending: {} })
  t.not(scene.processOf(1), dying)
  t.equal(scene.processOf(2), other)
  for (const worker of (await scene.workers()).values()) t.equal(await worker.reads(alice, 't1'), 200)
  t.notMatch(streams[1]!.text(), /RUN_ERROR/)
  await scene.operate('/revocations', { user: 'corp:alice' })
  await streams[1]!.over
})

void test('where all of them die the port stays the same, and /readyz says so meanwhile', async (t) => {
  const scene = await startScene(t)
  const before = scene.processes()
  t.equal(before.length, 2)
  // As long as the key is another than the one in force, none can begin.
  const good = readFileSync(scene.keyFile, 'utf8')
  scene.write({ version: 7 })
  writeFileSync(scene.keyFile, `${good}\n`)
  for (const id of before) process.kill(id, 'SIGKILL')
  await until(async () => (await scene.ready()).status === 503)
  t.match((await scene.ready()).json, { pending: { workers: /no worker is ready/ } })
  await t.rejects(fetch(scene.url))
  writeFileSync(scene.keyFile, good)
  await until(async () => (await scene.ready()).text.includes('"pending":{},"notes":{"reload"'))
  const alice = scene.sign('alice')
  for (const worker of (await scene.workers()).values()) t.equal((await worker.run(alice, 't1')).status, 200)
})

void test('what a worker waits for, all wait for', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answerQuestions((_request, response) => void response.writeHead(500).end())
  scene.write({ upstream: { url: scene.upstream.url, basePath: '/api/copilotkit', transport: 'auto' } })
  t.equal((await scene.operate('/reload', undefined, 'POST')).status, 200)
  t.match((await scene.ready()).json, { status: 'pending', pending: { upstream: /./ } })
  scene.upstream.answerQuestions(json(INFO))
  await until(async () => (await scene.ready()).status === 200)
})

void test('workers end with the process that keeps them, however that ends', async (t) => {
  const scene = await startScene(t)
  const ids = scene.processes()
  t.equal(ids.length, 2)
  await scene.end('SIGKILL')
  for (const id of ids) await until(() => !isAlive(id))
})

void test('signals to a worker change nothing: whoever ends a whole group tells everybody', async (t) => {
  const scene = await startScene(t)
  const before = scene.processes()
  for (const id of before) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.kill(id, signal)
  const alice = scene.sign('alice')
  for (const worker of (await scene.workers()).values()) t.equal((await worker.run(alice, 't1')).status, 200)
  t.same(scene.processes(), before)
})

function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0)
  } catch {
    return false
  }
}
