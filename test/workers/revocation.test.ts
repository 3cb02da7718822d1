/** The answer to an operator's order comes when every worker goes by it. */
import { test } from 'tap'
import { startScene } from './scene.ts'

void test('a revocation is in force at every worker when the operator has the answer', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  for (let round = 0; round < 8; round += 1) {
    const token = scene.sign(`user-${round}`)
    for (const worker of workers) t.equal((await worker.ask(token, '/info')).status, 200)
    t.equal((await scene.operate('/revocations', { user: `corp:user-${round}` })).status, 201)
    for (const worker of workers) t.equal((await worker.ask(token, '/info')).status, 401)
    t.equal((await scene.operate(`/revocations/user/corp:user-${round}`, undefined, 'DELETE')).status, 204)
    for (const worker of workers) t.equal((await worker.ask(token, '/info')).status, 200)
  }
})

void test('it ends the streams of every worker', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  const streams = await Promise.all(workers.map((worker) => worker.connect(alice, 't1')))
  await scene.operate('/revocations', { user: 'corp:alice' })
  for (const stream of streams) {
    await stream.over
    t.match(stream.text(), /"type":"RUN_ERROR".*"code":"credential-invalid"/)
  }
})

void test('a worker that begins meanwhile knows of it, too', async (t) => {
  const scene = await startScene(t)
  const alice = scene.sign('alice')
  for (let round = 0; round < 3; round += 1) {
    const ids = scene.processes()
    process.kill(ids[0]!, 'SIGKILL')
    await scene.line(({ msg }) => String(msg).startsWith('a worker exited'))
    t.equal((await scene.operate('/revocations', { user: 'corp:alice' })).status, 201)
    // Whichever of them it is, from the first request that it takes.
    for (const worker of (await scene.workers()).values()) t.equal((await worker.ask(alice, '/info')).status, 401)
  }
})
