/** A change of the configuration comes into force at all workers, or at none. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { Line } from '../../testing/support/program.ts'
import { OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { startScene, type Scene } from './scene.ts'

/** A configuration under which a rename of so many bytes is too large, or is not. */
const SMALL = { limits: { newThreads: 'off', requests: 'off', body: '64B' } }
/** Whoever watches the files may have been faster. */
const DONE = /^(reloaded|unchanged)$/

const renamed = async (scene: Scene): Promise<readonly number[]> => {
  const alice = scene.sign('alice')
  const statuses: number[] = []
  for (const worker of (await scene.workers()).values()) {
    statuses.push((await worker.ask(alice, '/threads/t1', { agentId: 'default', name: 'x'.repeat(100) }, 'PATCH')).status)
  }
  return statuses
}

void test('when the operator has the answer, every worker goes by it', async (t) => {
  const scene = await startScene(t)
  await [...(await scene.workers()).values()][0]!.run(scene.sign('alice'), 't1')
  for (let round = 0; round < 4; round += 1) {
    t.same(await renamed(scene), [200, 200])
    scene.write(SMALL)
    t.match((await scene.operate('/reload', undefined, 'POST')).json, { outcome: DONE, generation: 2 * round + 2 })
    t.same(await renamed(scene), [413, 413])
    scene.write({})
    t.match((await scene.operate('/reload', undefined, 'POST')).json, { outcome: DONE, generation: 2 * round + 3 })
  }
  await scene.line(({ msg, generation }) => msg === 'the new configuration is active' && generation === 9)
  t.equal(scene.lines.filter(({ msg }) => msg === 'the new configuration is active').length, 8, 'one line each')
})

void test('SIGHUP and a changed file do the same', async (t) => {
  const scene = await startScene(t)
  scene.write(SMALL)
  scene.signal('SIGHUP')
  await scene.line(({ msg, generation }) => msg === 'the new configuration is active' && generation === 2)
  t.same(await renamed(scene), [413, 413])
  scene.write({ limits: { newThreads: 'off', requests: 'off', body: '1KiB' } })
  await scene.line(({ msg, generation }) => msg === 'the new configuration is active' && generation === 3)
  t.not((await renamed(scene))[0], 413)
})

void test('a broken file leaves all as it is, also a worker that begins meanwhile', async (t) => {
  const scene = await startScene(t, { config: { audit: { to: 'stdout' } } })
  scene.write(SMALL)
  t.equal((await scene.operate('/reload', undefined, 'POST')).status, 200)
  writeFileSync(scene.file, '{ "version": ')
  writeFileSync(join(scene.folder, 'policy.yaml'), 'rules: none')
  t.equal((await scene.operate('/reload', undefined, 'POST')).status, 409)
  t.match((await scene.ready()).json, { status: 'ready', notes: { reload: /rejected/ } })
  t.same(await renamed(scene), [413, 413])
  const refused = ({ audit, code }: Line): boolean => audit === 1 && code === 'body-too-large'
  // Whoever is killed takes along what is not written yet.
  await until(() => scene.lines.filter(refused).length === 2)
  process.kill(scene.processOf(2), 'SIGKILL')
  await scene.line(({ msg, worker }) => msg === 'the worker is serving again' && worker === 2)
  t.same(await renamed(scene), [413, 413])
  await until(() => scene.lines.filter(refused).length === 4)
  t.ok(
    scene.lines.filter(refused).every(({ generation }) => generation === 2),
    'it is the same to all of them',
  )
  scene.write({})
  writeFileSync(join(scene.folder, 'policy.yaml'), OWNERS_SHARE)
  t.match((await scene.operate('/reload', undefined, 'POST')).json, { outcome: DONE, generation: 3 })
  t.notOk((await renamed(scene)).includes(413))
})

void test('where one worker cannot make the change, none of them has it', async (t) => {
  const scene = await startScene(t)
  const other = await startUpstream()
  t.teardown(() => other.close())
  const good = readFileSync(scene.keyFile, 'utf8')
  const slow = scene.processOf(2)
  process.kill(slow, 'SIGSTOP')
  scene.write({ ...SMALL, upstream: { url: other.url, basePath: '/api/copilotkit' } })
  const reloading = scene.operate('/reload', undefined, 'POST')
  // The files were read, and the first worker is as far as it may go alone.
  await until(() => other.questions.length > 0)
  // What is there now may come into force by itself later on; what was asked for may not.
  scene.write({})
  writeFileSync(scene.keyFile, `${good}\n`)
  process.kill(slow, 'SIGCONT')
  const { status, text } = await reloading
  t.equal(status, 409)
  t.match(text, /keys or certificates have changed/)
  const alice = scene.sign('alice')
  // A request beside the change that comes by itself is refused: its key is another one by then.
  for (const worker of (await scene.workers()).values()) await until(async () => (await worker.run(alice, 't1')).status === 200)
  t.notOk((await renamed(scene)).includes(413))
  t.same(other.requests, [])
  // And it goes on from there.
  scene.write(SMALL)
  t.match((await scene.operate('/reload', undefined, 'POST')).json, { outcome: DONE })
  t.same(await renamed(scene), [413, 413])
})

void test('a worker begins with the keys that were checked, whatever is in their files by then', async (t) => {
  const scene = await startScene(t)
  const alice = scene.sign('alice')
  scene.write({ version: 7 })
  rmSync(scene.keyFile)
  process.kill(scene.processOf(1), 'SIGKILL')
  await scene.line(({ msg, worker }) => msg === 'the worker is serving again' && worker === 1)
  for (const worker of (await scene.workers()).values()) t.equal((await worker.run(alice, 't1')).status, 200)
  t.notOk(scene.lines.some(({ msg }) => String(msg).startsWith('a worker did not start')))
})

void test('the number of workers, and what is bound once, change with a restart alone', async (t) => {
  const scene = await startScene(t)
  scene.write({ workers: 3 })
  const { status, text } = await scene.operate('/reload', undefined, 'POST')
  t.equal(status, 409)
  t.match(text, /workers cannot change at runtime/)
})

void test('open streams that the new rules do not allow end at every worker', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  const streams = await Promise.all(workers.map((worker) => worker.connect(alice, 't1')))
  writeFileSync(
    join(scene.folder, 'policy.yaml'),
    OWNERS_SHARE.replaceAll('agent/connect, ', '').replaceAll(', agent/connect', ''),
  )
  t.equal((await scene.operate('/reload', undefined, 'POST')).status, 200)
  for (const stream of streams) {
    await stream.over
    t.match(stream.text(), /"type":"RUN_ERROR".*"code":"not-allowed"/)
  }
})
