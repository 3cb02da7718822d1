/**
 * Attack: access that changes between the decision about a request and its execution in the runtime of the same process. The
 * request is decided again, and executed once.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { createCopilotRuntimeHandler } from '../../examples/mounting.ts'
import type { CreateHandler } from '../../src/sdk/hooks/index.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { startScene, type RuntimeObject } from './scene.ts'

void test('runs beside changes of grants on their thread are executed once each', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, OWNERS_SHARE)
  const executed: string[] = []
  const createHandler: CreateHandler<RuntimeObject> = (options) => {
    const handle = createCopilotRuntimeHandler(options)
    return async (request) => {
      if (!request.url.endsWith('/run')) return handle(request)
      executed.push(((await request.json()) as { runId: string }).runId)
      return new Response('data: {}\n\n', { headers: { 'content-type': 'text/event-stream' } })
    }
  }
  const off = { newThreads: 'off', requests: 'off', grants: 'off' }
  const upstream = { url: 'http://nowhere.invalid', basePath: '/api/copilotkit', transport: 'multi-route' }
  const scene = await startScene(t, { createHandler, config: { policy, limits: off, upstream } })
  const base = await scene.serve()
  const as = { token: scene.alice, transport: 'multi-route' } as const
  const run = () => call(`${base}/agent/default/run`, { ...as, body: runInput('t1') })
  const grants = (method: string, body: object) => call(`${base}/threadwarden/threads/t1/grants`, { ...as, method, body })
  t.equal((await run()).status, 200)
  for (let round = 0; round < 50; round += 1) {
    const user = 'corp:carol'
    const [one, , other] = await Promise.all([run(), grants('POST', { user, right: 'read' }), run(), grants('DELETE', { user })])
    t.same([one.status, other.status], [200, 200])
  }
  t.equal(executed.length, 101)
  t.equal(new Set(executed).size, 101)
})
