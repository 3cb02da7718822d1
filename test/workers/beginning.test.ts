/** What is asked of a worker before it is there to be asked is answered when it is. */
import { test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { startScene, type Scene } from './scene.ts'

/** Ends a worker, and stops the one in its place before it has read anything. */
async function holdNext(scene: Scene): Promise<number> {
  const before = scene.processes()
  process.kill(scene.processOf(1), 'SIGKILL')
  let next: number | undefined
  await until(() => (next = scene.processes().find((id) => !before.includes(id))) !== undefined)
  process.kill(next!, 'SIGSTOP')
  return next!
}

void test('a revocation that comes while a worker begins', async (t) => {
  const scene = await startScene(t)
  const alice = scene.sign('alice')
  const beginning = await holdNext(scene)
  const asked = scene.operate('/revocations', { user: 'corp:alice' })
  // The admin API is done with its own part.
  await until(
    async () => ((await scene.operate('/revocations')).json as { readonly revocations: unknown[] }).revocations.length > 0,
  )
  process.kill(beginning, 'SIGCONT')
  t.equal((await asked).status, 201)
  await scene.line(({ msg, worker }) => msg === 'the worker is serving again' && worker === 1)
  t.equal(scene.processOf(1), beginning, 'the same one, which nobody had to end')
  for (const worker of (await scene.workers()).values()) t.equal((await worker.ask(alice, '/info')).status, 401)
})

void test('an end that comes while a worker begins', async (t) => {
  const scene = await startScene(t)
  const beginning = await holdNext(scene)
  scene.signal('SIGTERM')
  await scene.line(({ msg }) => msg === 'draining')
  process.kill(beginning, 'SIGCONT')
  t.same(await scene.end('SIGCONT'), { code: 0, signal: null })
  t.notOk(scene.lines.some(({ msg }) => msg === 'a worker did not exit in time: the gateway kills it'))
})
