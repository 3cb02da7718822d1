/**
 * What is run under `observe` makes nobody an owner, but it is written to its thread: a tombstone must not count as gone
 * upstream for it, once the configuration enforces again.
 */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { startScene, type Scene } from './scene.ts'

const run = ({ base }: Scene, token: string) => call(`${base}/agent/default/run`, { token, body: runInput('t1') })
const remove = ({ base }: Scene, token: string) => call(`${base}/threads/t1`, { method: 'DELETE', token })
const usual: Answering = (request, response) => (request.method === 'DELETE' ? json({}) : events())(request, response)

async function enforcing(scene: Scene, enforcement: 'enforce' | 'observe'): Promise<void> {
  scene.write({ enforcement })
  const { outcome } = await scene.gateway.reload('test')
  if (outcome !== 'reloaded') throw new Error(`not reloaded: ${outcome}`)
}

async function forget({ folder }: Scene): Promise<number> {
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  try {
    return await store.prune({ deletedBefore: Date.now() + 60_000 }, 100)
  } finally {
    await store.close()
  }
}

void test('a run under observe on a deleted thread', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(usual)
  const [alice, bob] = [scene.token('alice'), scene.token('bob')]
  t.equal((await run(scene, alice)).status, 200)
  t.equal((await remove(scene, alice)).status, 200)
  await enforcing(scene, 'observe')
  t.equal((await run(scene, alice)).status, 200)
  await enforcing(scene, 'enforce')
  t.equal(await forget(scene), 0)
  const stolen = await run(scene, bob)
  t.same([stolen.status, codeOf(stolen)], [403, 'not-owner'])
})

void test('a run under observe that is still executing when its thread is deleted', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(usual)
  const [alice, bob] = [scene.token('alice'), scene.token('bob')]
  t.equal((await run(scene, alice)).status, 200)
  await enforcing(scene, 'observe')
  const runs: ServerResponse[] = []
  scene.upstream.answer((request, response) => {
    if (request.method === 'DELETE') return json({})(request, response)
    runs.push(response)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
  })
  const executing = run(scene, alice)
  await until(() => runs.length === 1)
  await enforcing(scene, 'enforce')
  t.equal((await remove(scene, alice)).status, 200)
  runs[0]!.end()
  await executing
  t.equal(await forget(scene), 0)
  t.equal((await run(scene, bob)).status, 403)
})
