/** Hooks over time: callers that leave or read slowly, large bodies, a reload, the end, and every adapter. */
import { test } from 'tap'
import { createCopilotRuntimeHandler } from '../../examples/mounting.ts'
import { ConfigurationInvalid, makeHooks } from '../../src/sdk/hooks/index.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

const thread = (): string => crypto.randomUUID()
const CONFIG = { url: 'http://nowhere.invalid', basePath: '/api/copilotkit', transport: 'multi-route' }

for (const adapter of ['node', 'express', 'express with a JSON parser', 'hono'] as const) {
  for (const mode of ['multi-route', 'single-route'] as const) {
    void test(`${adapter}, mounted ${mode}: both transports are served, and guarded`, async (t) => {
      const { serve, alice, bob } = await startScene(t)
      const base = await serve({ adapter, mode })
      // In these adapters a single-route mount takes the base path alone.
      const transports = mode === 'single-route' ? (['single-route'] as const) : (['multi-route', 'single-route'] as const)
      for (const transport of transports) {
        const id = thread()
        const run = await call(`${base}/agent/default/run`, { token: alice, body: runInput(id), transport })
        t.match(run.text, /RUN_FINISHED/)
        t.equal((await call(`${base}/threads/${id}/messages`, { token: alice, transport })).status, 200)
        t.equal((await call(`${base}/threads/${id}/messages`, { token: bob, transport })).status, 403)
        t.equal((await call(`${base}/agent/default/run`, { token: bob, body: runInput(id), transport })).status, 403)
        t.equal((await call(`${base}/agent/default/stop/${id}`, { method: 'POST', token: alice, transport })).status, 200)
        t.equal((await call(`${base}/threads`, { transport })).status, 401)
      }
    })
  }
}

void test('a refusal before the end of a large body leaves the process as it was', async (t) => {
  const { serve, alice } = await startScene(t)
  const base = await serve()
  const large = runInput(thread(), 'x'.repeat(20_000_000))
  for (let count = 0; count < 3; count += 1) {
    t.equal((await call(`${base}/agent/default/run`, { token: 'nonsense', body: large })).status, 401)
    t.equal((await call(`${base}/agent/default/run`, { body: large })).status, 401)
  }
  const { status, json } = await call(`${base}/threads`, { token: alice })
  t.same([status, json], [200, { threads: [], nextCursor: null }])
})

void test('a run of 20 MB goes through, and one beyond the bound is 413', async (t) => {
  const { serve, alice } = await startScene(t, {
    config: { limits: { newThreads: 'off', runBody: '21MiB', bodiesInFlight: '64MiB' } },
  })
  const base = await serve()
  const run = await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread(), 'x'.repeat(20_000_000)) })
  t.match(run.text.slice(-2000), /RUN_FINISHED/)
  const more = await call(`${base}/agent/default/run`, { token: alice, body: runInput(thread(), 'x'.repeat(23_000_000)) })
  t.same([more.status, codeOf(more)], [413, 'body-too-large'])
})

/**
 * A runtime whose runs are streams of the test's own; the rest is the real one's.
 * @param most how many pieces come until nothing comes any more
 */
function streaming(most: number) {
  const signals: AbortSignal[] = []
  const pulled = { bytes: 0 }
  const piece = Buffer.from(`data: {"type":"RAW","event":"${'x'.repeat(60_000)}"}\n\n`)
  const createHandler: NonNullable<Parameters<typeof startScene>[1]>['createHandler'] = (options) => {
    const handle = createCopilotRuntimeHandler(options)
    return async (request) => {
      if (!request.url.endsWith('/run')) return handle(request)
      await request.text()
      signals.push(request.signal)
      const body = new ReadableStream({
        pull(controller) {
          if (pulled.bytes >= most * piece.length) return new Promise(() => {})
          pulled.bytes += piece.length
          controller.enqueue(piece)
          return undefined
        },
      })
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    }
  }
  return { createHandler, signals, pulled }
}

void test('a caller who leaves a stream ends what the runtime still does for it', async (t) => {
  const { createHandler, signals } = streaming(1)
  const { serve, alice } = await startScene(t, { createHandler, config: { upstream: CONFIG } })
  const base = await serve()
  const leaving = new AbortController()
  const answer = await fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput(thread())),
    signal: leaving.signal,
  })
  await answer.body!.getReader().read()
  t.notOk(signals[0]!.aborted)
  leaving.abort()
  await until(() => signals[0]!.aborted)
})

void test('who reads slowly makes the runtime wait, and holds little', async (t) => {
  const { createHandler, pulled } = streaming(10_000)
  const { serve, alice } = await startScene(t, { createHandler, config: { upstream: CONFIG } })
  const base = await serve()
  const leaving = new AbortController()
  await fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput(thread())),
    signal: leaving.signal,
  })
  // Nobody reads: what is asked for comes to an end, and stays there.
  let before = -1
  await until(async () => {
    const same = before === pulled.bytes
    before = pulled.bytes
    await new Promise((resolve) => setTimeout(resolve, 100))
    return same
  })
  t.ok(pulled.bytes < 32 * 1024 * 1024, `${pulled.bytes} bytes`)
  leaving.abort()
})

void test('the end of the hooks ends open streams so that a client sees it, and serves nobody any more', async (t) => {
  const { createHandler, signals, pulled } = streaming(1)
  const { serve, alice, hooks } = await startScene(t, { createHandler, config: { upstream: CONFIG } })
  const base = await serve()
  const running = call(`${base}/agent/default/run`, { token: alice, body: runInput(thread()) })
  await until(() => pulled.bytes > 0)
  await hooks.close(0)
  t.match((await running).text, /RUN_ERROR.*"code":"shutting-down"/)
  await until(() => signals[0]!.aborted)
  const late = await call(`${base}/threads`, { token: alice })
  t.same([late.status, codeOf(late)], [503, 'not-ready'])
})

void test('a runtime that does not answer is 504', async (t) => {
  const { serve, alice } = await startScene(t, {
    createHandler: (options) => {
      const handle = createCopilotRuntimeHandler(options)
      return (request) => (request.url.endsWith('/run') ? new Promise(() => {}) : handle(request))
    },
    config: { upstream: { ...CONFIG, timeouts: { headers: '1s' } } },
  })
  const run = await call(`${await serve()}/agent/default/run`, { token: alice, body: runInput(thread()) })
  t.same([run.status, codeOf(run)], [504, 'upstream-timeout'])
})

void test('a stream ends with the revocation of its caller, and with their token, and says why', async (t) => {
  const { createHandler, signals } = streaming(1)
  const credential = 'c'.repeat(40)
  const { serve, hooks, alice, signer } = await startScene(t, {
    createHandler,
    config: { admin: { port: 0, credential }, streams: { tokenExpiry: 'close' } },
  })
  const base = await serve()
  const open = call(`${base}/agent/default/run`, { token: alice, body: runInput(thread()) })
  await until(() => signals.length === 1)
  const revoked = await call(`${hooks.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } })
  t.equal(revoked.status, 201)
  t.match((await open).text, /"type":"RUN_ERROR".*"code":"credential-invalid"/)
  t.equal((await call(`${base}/threads`, { token: alice })).status, 401)
  // Good for 30 s more by the default tolerance.
  const now = Math.floor(Date.now() / 1000)
  const late = signer.sign('bob', { iat: now, exp: now - 26 })
  const ended = await call(`${base}/agent/default/run`, { token: late, body: runInput(thread()) })
  t.match(ended.text, /"type":"RUN_ERROR".*"code":"credential-expired"/)
})

void test('a preflight is answered as the configuration says', async (t) => {
  const { serve } = await startScene(t, { config: { cors: { origins: ['https://chat.example'] } } })
  const base = await serve()
  const ask = (origin: string) =>
    fetch(`${base}/agent/default/run`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
    })
  t.equal((await ask('https://chat.example')).headers.get('access-control-allow-origin'), 'https://chat.example')
  t.equal((await ask('https://other.example')).headers.get('access-control-allow-origin'), null)
})

void test('the address of the upstream, which hooks ignore, draws no warning; other keys do', async (t) => {
  const { tree, write, hooks, lines } = await startScene(t, { config: { enforcement: 'observe' } })
  write({ ...tree, log: { level: 'debug' } })
  await hooks.reload()
  const warned = lines.filter(({ msg }) => msg === 'configuration').map(({ path }) => path)
  t.same([...new Set(warned)], ['enforcement'])
})

void test('a reload puts a policy in force; what hooks can not serve is refused by name, and all stays as it is', async (t) => {
  const { serve, hooks, tree, write, alice } = await startScene(t)
  const base = await serve()
  write({ ...tree, limits: { newThreads: 'off', body: '1KiB' } })
  t.match(await hooks.reload(), { outcome: 'reloaded' })
  const large = await call(`${base}/annotate`, { token: alice, body: { threadId: thread(), type: 'x'.repeat(2000) } })
  t.equal(large.status, 413, 'the new one is in force')
  for (const [other, fault] of [
    [{ upstream: { url: 'http://a.invalid', basePath: '/other' } }, /changes with a restart alone/],
    [{ upstream: undefined, agents: { one: { url: 'http://a.invalid', path: '/' } } }, /hooks serve one runtime/],
    [
      { upstream: undefined, upstreams: { graphs: { kind: 'langgraph', url: 'http://a.invalid' } } },
      /upstreams\.graphs: is a LangGraph server: hooks serve one runtime in their own process \(use threadwarden serve/,
    ],
    [{ upstream: { ...CONFIG, transport: 'single-route' } }, /hooks call the runtime by its routes/],
    [{ version: 7 }, /version/],
  ] as const) {
    write({ ...tree, ...other })
    t.match(await hooks.reload(), { outcome: 'refused', faults: [fault] })
    t.equal((await call(`${base}/threads`, { token: alice })).status, 200)
  }
  await t.rejects(
    makeHooks({ config: '/nowhere.yaml', runtime: {}, createHandler: () => () => Promise.reject(new Error('unused')) }),
    ConfigurationInvalid,
  )
})
