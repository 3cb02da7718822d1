/** The gateway in front of a runtime of 1.54, which reads paths more generously than 1.75 and has fewer of them. */
import { test, type Test } from 'tap'
import { startOldRuntime } from '../../examples/runtime-1.54/runtime.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { head, sendRaw } from '../../testing/support/raw.ts'
import { ofCallers } from '../../testing/support/stack.ts'
import { until } from '../../testing/support/until.ts'
import type { Mode } from './runtimes.ts'

type Adapter = 'express' | 'hono'

/** Starts both; the gateway finds out by itself which transport the runtime has. */
async function start(t: Test, adapter: Adapter, mode: Mode) {
  t.capture(console, 'error')
  t.capture(console, 'warn')
  const runtime = await startOldRuntime({ adapter, mode })
  t.teardown(() => runtime.close())
  const gated = await gateBefore(t, runtime.url, { config: { upstream: { transport: 'auto' } } })
  await gated.gateway.ready()
  return { runtime, ...gated }
}

const ADAPTERS: readonly Adapter[] = ['express', 'hono']
const MODES: readonly Mode[] = ['multi-route', 'single-route']

for (const adapter of ADAPTERS) {
  for (const mode of MODES) {
    void test(`1.54 ${adapter}, ${mode}: a conversation is one user’s, and nobody else’s`, async (t) => {
      const { base, runtime, alice, bob } = await start(t, adapter, mode)
      const thread = crypto.randomUUID()
      const agent = `${base}/agent/default`

      const info = await call(`${base}/info`, { token: alice })
      t.match([info.status, info.json], [200, { version: '1.54.1', agents: { default: {} } }])
      const run = await call(`${agent}/run`, { token: alice, body: runInput(thread, 'hello') })
      t.match([run.status, run.text], [200, /Echo: hello[^]*RUN_FINISHED/])
      const connect = await call(`${agent}/connect`, { token: alice, body: runInput(thread) })
      t.match([connect.status, connect.text], [200, /Echo: hello/], 'a connect replays it')
      const unknown = await call(`${agent}/connect`, { token: alice, body: runInput(crypto.randomUUID()) })
      t.same([unknown.status, unknown.text], [200, ''], 'or is empty')
      const stop = await call(`${agent}/stop/${thread}`, { method: 'POST', token: alice })
      t.match([stop.status, stop.json], [200, { stopped: false }])
      t.not(ofCallers(runtime.requests).length, 0, 'the runtime was asked')

      runtime.requests.length = 0
      for (const [path, body] of [
        ['/run', runInput(thread)],
        ['/connect', runInput(thread)],
        [`/stop/${thread}`, undefined],
      ] as const) {
        const refused = await call(`${agent}${path}`, { method: 'POST', token: bob, ...(body !== undefined && { body }) })
        t.same([refused.status, codeOf(refused)], [403, 'not-owner'], path)
      }
      t.same(ofCallers(runtime.requests), [], 'nothing of which reached it')
    })
  }

  void test(`1.54 ${adapter}, multi-route: what it lacks is answered as it answers`, async (t) => {
    const { base, alice } = await start(t, adapter, 'multi-route')
    const thread = crypto.randomUUID()
    await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread) })
    const ask = async (method: string, path: string, body?: unknown) => {
      const { status, json } = await call(`${base}${path}`, { method, token: alice, ...(body !== undefined && { body }) })
      return [status, json]
    }
    const missing = [422, { error: /^Missing CopilotKitIntelligence/ }]
    t.match(await ask('GET', '/threads?agentId=default'), missing, 'the list')
    t.match(await ask('PATCH', `/threads/${thread}`, { agentId: 'default', name: 'x' }), missing, 'a new name')
    t.match(await ask('POST', `/threads/${thread}/archive`, { agentId: 'default' }), missing, 'an archive')
    t.match(await ask('DELETE', `/threads/${thread}`, { agentId: 'default' }), missing, 'an end')
    t.match(await ask('GET', `/threads/${thread}/messages`), [404, { error: 'Not found' }], 'messages')
    t.match(await ask('POST', '/agent/default/suggest', runInput(thread)), [404, { error: 'Not found' }], 'suggestions')
    const again = await call(`${base}/agent/default/connect`, { token: alice, body: runInput(thread) })
    t.match(again.text, /RUN_FINISHED/, 'and the thread is alice’s as before')
  })

  void test(`1.54 ${adapter}, single-route: it has no tunnel, so its threads are not asked for`, async (t) => {
    const { base, runtime, alice } = await start(t, adapter, 'single-route')
    const thread = crypto.randomUUID()
    await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread) })
    runtime.requests.length = 0
    for (const [method, path, body] of [
      ['GET', '/threads?agentId=default', undefined],
      ['GET', `/threads/${thread}/messages`, undefined],
      ['PATCH', `/threads/${thread}`, { agentId: 'default', name: 'x' }],
      ['DELETE', `/threads/${thread}`, { agentId: 'default' }],
    ] as const) {
      const answer = await call(`${base}${path}`, { method, token: alice, ...(body !== undefined && { body }) })
      t.equal(answer.status, 404, `${method} ${path}`)
    }
    t.same(ofCallers(runtime.requests), [])
  })

  void test(`1.54 ${adapter}, multi-route: other spellings of its paths end at the gateway`, async (t) => {
    const { gateway, runtime, alice } = await start(t, adapter, 'multi-route')
    const body = JSON.stringify(runInput(crypto.randomUUID()))
    const lines = [`Authorization: Bearer ${alice}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
    const post = (path: string) =>
      sendRaw(gateway.url, head(`POST ${path} HTTP/1.1`, 'Host: a', ...lines, 'Connection: close') + body)
    for (const path of [
      '/api/copilotkit/AGENT/default/RUN',
      '/api/copilotkit/AGENT/default/RUN/',
      '/api/copilotkit/agent/default/run/',
      '/API/copilotkit/agent/default/run',
      '/api/copilotkit/agent/default/%72un',
      '/api/copilotkit/agent/default%2Frun',
      '/api/copilotkit/agent/x/../default/run',
      '/api/copilotkit//agent/default/run',
      '/api/copilotkit/THREADS/subscribe',
    ]) {
      t.match(await post(path), /^HTTP\/1\.1 40[04] /, path)
    }
    t.same(ofCallers(runtime.requests), [])
    t.match(await post('/api/copilotkit/agent/default/run'), /^HTTP\/1\.1 200 /, 'the one spelling does not')
    t.same(
      ofCallers(runtime.requests).map(({ method, url }) => `${method} ${url}`),
      ['POST /api/copilotkit/agent/default/run'],
    )
  })
}

for (const adapter of ADAPTERS) {
  for (const mode of MODES) {
    void test(`1.54 ${adapter}, ${mode}: verify cannot tell, says so, and nobody gets at a thread from before`, async (t) => {
      t.capture(console, 'error')
      t.capture(console, 'warn')
      const runtime = await startOldRuntime({ adapter, mode })
      t.teardown(() => runtime.close())
      const run = runInput('old-1', 'a secret')
      const ask =
        mode === 'multi-route'
          ? await call(`${runtime.url}${runtime.basePath}/agent/default/run`, { body: run })
          : await call(`${runtime.url}${runtime.basePath}`, {
              body: { method: 'agent/run', params: { agentId: 'default' }, body: run },
            })
      t.equal(ask.status, 200)
      const config = { upstream: { transport: 'auto' }, ownership: { unknownThread: 'verify' } }
      const { base, bob, gateway } = await gateBefore(t, runtime.url, { config })
      await until(() => gateway.readiness.pending().has('unknownThread'))
      const refused = await call(`${base}/agent/default/run`, { token: bob, body: runInput('old-1') })
      t.same([refused.status, codeOf(refused)], [403, 'not-owner'])
    })
  }
}
