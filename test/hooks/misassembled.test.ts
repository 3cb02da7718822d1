/** Hooks that were put together wrongly: nothing comes to the runtime that the gateway did not decide. */
import { test } from 'tap'
import { createCopilotRuntimeHandler } from '../../examples/mounting.ts'
import { startRuntime } from '../../examples/runtime.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { startScene } from './scene.ts'

const thread = (): string => crypto.randomUUID()

void test('without onRequest nothing is served, to nobody', async (t) => {
  const { hooks, serve, runtime, alice, olga, lines } = await startScene(t)
  const { onBeforeHandler, onResponse } = hooks
  for (const some of [{ onBeforeHandler, onResponse }, { onBeforeHandler }]) {
    const base = await serve({ hooks: some })
    const id = thread()
    const run = await call(`${base}/agent/default/run`, { token: alice, body: runInput(id) })
    t.same([run.status, codeOf(run)], [500, 'internal'])
    t.equal((await call(`${base}/threads/clear`, { method: 'POST', token: olga })).status, 500)
    const own = await call(`${runtime.url}/api/copilotkit/threads`)
    t.notOk(own.text.includes(id), 'no run has begun')
  }
  t.ok(lines.some(({ msg }) => /without passing the gateway: check that all three hooks are installed/.test(String(msg))))
})

void test('with onResponse alone a run is not answered: it is hidden, though the runtime has begun it', async (t) => {
  const { hooks, serve, alice } = await startScene(t)
  const base = await serve({ hooks: { onResponse: hooks.onResponse } })
  const run = await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread()) })
  t.same([run.status, codeOf(run)], [500, 'internal'])
})

void test('onRequest alone is the whole gateway, as long as nothing else changes requests', async (t) => {
  const { hooks, serve, alice, bob } = await startScene(t)
  const base = await serve({ hooks: { onRequest: hooks.onRequest } })
  const id = thread()
  t.match((await call(`${base}/agent/default/run`, { token: alice, body: runInput(id) })).text, /RUN_FINISHED/)
  t.equal((await call(`${base}/threads/${id}/messages`, { token: bob })).status, 403)
  t.equal((await call(`${base}/threads`)).status, 401)
})

void test('a body that something has read before the hooks begins no run', async (t) => {
  const { hooks, runtime, alice } = await startScene(t)
  const handle = createCopilotRuntimeHandler({ runtime: runtime.runtime, basePath: '/api/copilotkit', hooks })
  for (const read of [(request: Request) => request.text(), (request: Request) => Promise.resolve(request.body?.getReader())]) {
    const request = new Request('http://app.example/api/copilotkit/agent/default/run', {
      method: 'POST',
      headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
      body: JSON.stringify(runInput(thread())),
    })
    await read(request)
    const answer = await handle(request)
    t.equal(answer.status, 500)
    t.notMatch(await answer.text(), /locked|reader/i)
    t.equal(runtime.requests.length, 0)
  }
})

void test('the handler of another runtime with these hooks serves nothing', async (t) => {
  const { serve, alice, runtime } = await startScene(t)
  const other = await startRuntime()
  t.teardown(() => other.close())
  const base = await serve({ runtime: other.runtime })
  const run = await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread()) })
  t.same([run.status, codeOf(run)], [500, 'internal'])
  t.equal(runtime.requests.length, 0)
})

void test('a handler that fails is an upstream that fails: nobody hears why, and nothing is left unhandled', async (t) => {
  for (const fail of [
    () => Promise.reject(new Error('not today')),
    () => {
      throw new Error('not even a promise')
    },
    // From plain JavaScript.
    () => Promise.resolve(undefined as unknown as Response),
    () => Promise.resolve(Response.error()),
  ]) {
    const { serve, alice } = await startScene(t, {
      createHandler: (options) => {
        const handle = createCopilotRuntimeHandler(options)
        return (request) => (request.url.endsWith('/info') ? handle(request) : fail())
      },
    })
    const base = await serve()
    const run = await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread()) })
    t.equal(run.status, 502)
    t.notMatch(run.text, /today|promise/)
  }
})

void test('a middleware of the runtime that gives another target leads no route elsewhere', async (t) => {
  const { serve, runtime, alice, bob } = await startScene(t)
  const base = await serve()
  const alices = thread()
  await call(`${base}/agent/default/run`, { token: alice, body: runInput(alices, 'a secret') })
  const bobs = thread()
  await call(`${base}/agent/default/run`, { token: bob, body: runInput(bobs) })
  const replace = ({ request }: { readonly request: Request }): Request =>
    new Request(request.url.replace(bobs, alices), { method: request.method, headers: request.headers })
  Object.defineProperty(runtime.runtime, 'beforeRequestMiddleware', { value: replace, configurable: true })
  const answer = await call(`${base}/threads/${bobs}/messages`, { token: bob })
  t.notMatch(answer.text, /secret/, 'the runtime has found its route before')
})

void test('what an agent asks of its own runtime while it runs is a caller’s request like any other', async (t) => {
  const asked: number[] = []
  const { serve, runtime, hooks, alice, bob } = await startScene(t)
  const handler = createCopilotRuntimeHandler({ runtime: runtime.runtime, basePath: '/api/copilotkit', hooks })
  const base = await serve()
  const alices = thread()
  await call(`${base}/agent/default/run`, { token: alice, body: runInput(alices, 'a secret') })
  // Called within a permitted request, as an agent or a middleware of the same process could be.
  const withinRequest = async ({ request }: { readonly request: Request }): Promise<void> => {
    if (!request.url.endsWith('/run') || asked.length > 0) return
    asked.push(0)
    const { url, headers } = new Request(`http://runtime.invalid/api/copilotkit/threads/${alices}/messages`)
    asked.push((await handler(new Request(url, { headers }))).status)
    asked.push((await handler(new Request(url, { headers: { authorization: request.headers.get('authorization')! } }))).status)
  }
  Object.defineProperty(runtime.runtime, 'beforeRequestMiddleware', { value: withinRequest, configurable: true })
  const run = await call(`${base}/agent/default/run`, { token: bob, body: runInput(thread()) })
  t.equal(run.status, 200)
  t.same(asked, [0, 401, 403])
})
