/** Which routes the real runtimes have, found out without an effect on them. */
import { test } from 'tap'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { RUNTIMES, start } from '../contract/runtimes.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { INFO, json, startUpstream, type Recorded } from '../../testing/support/upstream.ts'
import { examined, hush } from './examination.ts'

for (const name of RUNTIMES) {
  for (const mode of ['multi-route', 'single-route'] as const) {
    void test(`the routes of ${name} as ${mode} are told without an effect on it`, async (t) => {
      hush(t)
      clearThreads()
      const runtime = await start(t, name, mode)
      const base = `${runtime.url}${runtime.basePath}`
      if (name.startsWith('1.75')) {
        const body = runInput('kept')
        const run = mode === 'multi-route' ? `${base}/agent/default/run` : base
        await call(run, { body: mode === 'multi-route' ? body : { method: 'agent/run', params: { agentId: 'default' }, body } })
      }
      runtime.requests.length = 0
      const { of, each } = await examined(t, { 'upstream.url': runtime.url })

      const routes = of('upstream.routes')
      if (name.startsWith('1.75'))
        t.match(routes, { level: 'ok', message: /^as the gateway expects, but without memories\/list/ })
      else if (mode === 'single-route') t.match(routes, { level: 'ok', message: /without agent\/suggest, .*threads\/list/ })
      else {
        t.match(routes, {
          level: 'unknown',
          message: /to a wrong method and a wrong path.* has threads\/list; it has no threads\/messages/,
        })
        t.match(routes.message, /not known: agent\/run/)
      }
      t.equal(each('upstream.paths').length, name === '1.54 express' && mode === 'multi-route' ? 1 : 0)

      const acting = runtime.requests.filter(({ method, url }) => !/^(?:GET|PUT)$/.test(method) && !/\/connect$/.test(url))
      t.same(
        acting.map(({ url }) => url),
        acting.map(() => runtime.basePath),
        'but for envelopes nothing was posted, patched or deleted',
      )
      if (name.startsWith('1.75')) {
        const list = await call(
          mode === 'multi-route' ? `${base}/threads` : base,
          mode === 'multi-route' ? {} : { body: { method: 'resource/request', params: { path: '/threads', httpMethod: 'GET' } } },
        )
        t.match(list.json, { threads: [{ id: 'kept' }] })
        t.equal((list.json as { threads: unknown[] }).threads.length, 1, 'the same threads as before')
      }
    })
  }
}

void test('memory routes that the runtime exposes are seen, with their methods', async (t) => {
  hush(t)
  const runtime = await startRuntime({ exposeMemoryRoutes: true })
  t.teardown(() => runtime.close())
  const { of } = await examined(t, { 'upstream.url': runtime.url })
  t.match(of('upstream.routes'), { level: 'ok', message: 'the upstream has all routes and methods that the gateway expects' })
})

/** The paths below the base that a runtime says to have, with their methods. */
function having(allow: (path: string) => string | null, version = INFO.version) {
  return async ({ method, target }: Recorded, response: Parameters<ReturnType<typeof json>>[1]): Promise<void> => {
    const path = target.replace('/api/copilotkit/', '').replace(/[0-9a-f-]{36}/g, ':id')
    if (method === 'GET' && path === 'info') return json({ ...INFO, version })({} as Recorded, response)
    const methods = allow(path)
    if (methods === '') return json({}, 401)({} as Recorded, response)
    await json({}, methods === null ? 404 : 405, methods === null ? {} : { allow: methods })({} as Recorded, response)
  }
}

const USUAL: Readonly<Record<string, string>> = {
  info: 'GET',
  'agent/:id/run': 'POST',
  'agent/:id/connect': 'POST',
  'agent/:id/suggest': 'POST',
  'agent/:id/stop/:id': 'POST',
  transcribe: 'POST',
  threads: 'GET',
  'threads/subscribe': 'POST',
  'threads/clear': 'POST',
  'threads/:id': 'DELETE, PATCH',
  'threads/:id/archive': 'POST',
  'threads/:id/messages': 'GET',
  'threads/:id/events': 'GET',
  'threads/:id/state': 'GET',
  annotate: 'POST',
  'inspector-metadata': 'GET',
  'inspector-learning': 'GET',
  'cpk-debug-events': 'GET',
}

for (const { title, allow, version, expected } of [
  {
    title: 'an upstream whose routes are as expected',
    allow: (path: string) => USUAL[path] ?? null,
    expected: { level: 'ok', message: /without memories/ },
  },
  {
    title: 'a route that takes another method',
    allow: (path: string) => (path === 'threads/:id' ? 'PATCH' : (USUAL[path] ?? null)),
    expected: { level: 'warning', message: 'threads/update accepts PATCH, but the gateway expects DELETE, PATCH' },
  },
  {
    title: 'a route that takes what is no method at all',
    allow: (path: string) => (path === 'annotate' ? 'POST, <script>' : (USUAL[path] ?? null)),
    expected: { level: 'warning', message: 'annotate accepts POST, another method, but the gateway expects POST' },
  },
  {
    title: 'a route that something on the way keeps back',
    allow: (path: string) => (path.endsWith('/state') ? null : (USUAL[path] ?? null)),
    expected: { level: 'warning', message: /^the upstream has no threads\/state, which a runtime of its version has/ },
  },
  {
    title: 'the same of a version that nobody knows',
    allow: (path: string) => (path.endsWith('/state') ? null : (USUAL[path] ?? null)),
    version: '9.0.0',
    expected: { level: 'ok', message: /without threads\/state, memories/ },
  },
  {
    title: 'an upstream without runs',
    allow: (path: string) => (path.endsWith('/run') ? null : (USUAL[path] ?? null)),
    expected: { level: 'problem', message: 'the upstream has no agent/run' },
  },
  {
    title: 'an upstream that shows its routes to nobody',
    allow: () => '',
    expected: { level: 'unknown', message: /are known: not known: agent\/run, .*threads\/list/ },
  },
  {
    title: 'an upstream that answers 405 to everything',
    allow: () => 'GET',
    expected: { level: 'unknown', message: /so only GET routes are known/ },
  },
]) {
  void test(`${title} is ${expected.level}`, async (t) => {
    const upstream = await startUpstream(having(allow, version))
    t.teardown(() => upstream.close())
    upstream.answerQuestions(having(allow, version))
    const { of } = await examined(t, { 'upstream.url': upstream.url })
    t.match(of('upstream.routes'), expected)
  })
}
