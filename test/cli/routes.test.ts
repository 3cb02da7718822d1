/** `threadwarden routes`: every route with its public path, who may use it, and the rule; what is closed is said to be. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { RUNTIME_ROUTES } from '../../testing/support/runtime-routes.ts'
import { run } from './in-process.ts'
import { configFile } from '../../testing/support/program.ts'

interface Listed {
  readonly routes: readonly {
    readonly route: string
    readonly method: string
    readonly path: string
    readonly right: string | null
    readonly closed: boolean
    readonly hidden: boolean
    readonly access: readonly {
      readonly effect: string
      readonly who: readonly string[]
      readonly threads: readonly string[] | null
      readonly rule: { readonly name: string; readonly line: number }
    }[]
  }[]
}

const CLOSED = [
  'cpk-debug-events',
  'inspector/learning',
  'inspector/metadata',
  'memories/list',
  'memories/mutate',
  'memories/recall',
  'memories/subscribe',
  'threads/grants',
  'threads/subscribe',
]

void test('every route of the shipped policy is listed', async (t) => {
  const { file } = configFile(t, { 'upstream.publicPath': '/chat' })
  const { code, stdout, stderr } = await run(t, ['routes', '--config', file, '--json'])
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const { routes } = JSON.parse(stdout) as Listed
  t.same(
    routes.map(({ method, path }) => `${method} ${path}`),
    RUNTIME_ROUTES.map(({ method, path }) => `${method} /chat/${path.join('/')}`),
  )
  t.same([...new Set(routes.filter(({ closed }) => closed).map(({ route }) => route))].sort(), CLOSED)
  t.match(routes.find(({ route }) => route === 'agent/run')?.access, [
    { effect: 'allow', who: ['signed-in'], threads: ['own', 'shared', 'unknown'], rule: { name: 'chat', line: Number } },
  ])
  t.match(
    routes.find(({ route }) => route === 'threads/state'),
    { hidden: true },
  )
  t.match(
    routes
      .filter(({ route }) => route === 'threads/update')
      .map(({ method, right, access }) => [method, right, access[0]?.threads]),
    [
      ['PATCH', 'write', ['own', 'shared']],
      ['DELETE', 'owner', ['own']],
    ],
  )
  const plain = await run(t, ['routes', '--config', file])
  t.match(plain.stdout, /^threads +unknownThread claim, userScoped false, sharing true$/m)
  t.match(
    plain.stdout,
    /^GET +\/chat\/threads\/:threadId\/messages .*\n +allow signed-in; on own, shared \(for reading\) threads; by/m,
  )
  t.match(plain.stdout, /^PATCH +\/chat\/threads\/:threadId .*\n +allow signed-in; on own, shared \(for writing\) threads; by/m)
  t.match(plain.stdout, /^DELETE +\/chat\/threads\/:threadId .*\n +allow signed-in; on own threads; by/m)
  t.match(plain.stdout, /^POST +\/chat\/threads\/clear +threads\/clear\n +allow operator; by "clear" \(line \d+\)$/m)
  t.match(plain.stdout, /^GET +\/chat\/cpk-debug-events +cpk-debug-events {2}closed$/m)
  t.notMatch(plain.stdout, /\u001b/, 'no colours where there is no terminal')
})

void test('a rule that can speak of nobody opens nothing', async (t) => {
  const about = async (changes: Readonly<Record<string, unknown>>, rules: string) => {
    const { file, folder } = configFile(t, { policy: './policy.yaml', ...changes })
    writeFileSync(join(folder, 'policy.yaml'), `version: 1\noperators: [{ role: operator }]\nrules:\n${rules}`)
    const { routes } = JSON.parse((await run(t, ['routes', '--config', file, '--json'])).stdout) as Listed
    return routes.filter(({ closed }) => !closed).map(({ route }) => route)
  }
  const anonymous = '- { routes: [info], allow: [anonymous] }'
  t.same(await about({}, anonymous), [])
  t.same(await about({ 'authentication.mode': 'optional' }, anonymous), ['info'])
  const operator = '- { routes: [threads/clear], allow: [operator] }'
  t.same(await about({}, operator), ['threads/clear'])
  t.same(await about({ 'authentication.mode': 'off' }, operator), [], 'nobody is an operator there')
  const denied = '- { routes: [info, transcribe], allow: [signed-in] }\n- { routes: [info], deny: [signed-in] }'
  t.same(await about({}, denied), ['transcribe'])
  const scoped = '- { routes: [threads/subscribe], allow: [signed-in], only: user-scoped }'
  t.same(await about({}, scoped), [])
  t.same(await about({ 'upstream.userScoped': true }, scoped), ['threads/subscribe'])
  const shared = '- { routes: [threads/messages, threads/update], allow: [signed-in], threads: [shared] }'
  t.same(await about({}, shared), [], 'no grant counts')
  t.same(await about({}, `${shared}\nsharing: true`), ['threads/update', 'threads/messages'], 'renamed, and not deleted')
  const desk =
    '- { routes: [threads/messages], allow: [operator], threads: [foreign] }\n- { routes: [threads/messages], deny: [operator], threads: [foreign] }'
  t.same(await about({}, desk), [])
  t.same(await about({}, `${desk}\nsharing: true`), ['threads/messages'], 'what was granted is not denied')
  const feed = '- { routes: [cpk-debug-events], allow: [operator] }'
  t.same(await about({}, feed), ['cpk-debug-events'])
  t.same(await about({ 'upstream.transport': 'single-route' }, feed), [], 'such an upstream does not have it')
})

void test('with several upstreams the routes of each stand under its name; an agent takes runs on its root path', async (t) => {
  const { file } = configFile(t, {
    'upstreams.legal': { url: 'http://127.0.0.1:2', basePath: '/api/copilotkit', publicPath: '/legal', userScoped: true },
    'agents.research': { url: 'http://127.0.0.1:3', path: '/awp/', unknownThread: 'deny' },
  })
  const plain = (await run(t, ['routes', '--config', file])).stdout
  t.match(plain, /^threads +upstream: unknownThread claim, userScoped false, sharing true$/m)
  t.match(plain, /^ +upstreams\.legal: unknownThread claim, userScoped true$/m)
  t.match(plain, /^ +agents\.research: unknownThread deny, userScoped false$/m)
  t.match(plain, /\n\n# upstream\nGET +\/api\/copilotkit\/info /)
  t.match(plain, /\n\n# upstreams\.legal\nGET +\/legal\/info /)
  t.match(plain, /\n\n# agents\.research\nPOST +\/agents\/research +agent\/run\n +allow signed-in/)
  t.equal(plain.match(/^# /gm)?.length, 3)
  t.match(plain, /^POST +\/legal\/threads\/subscribe +threads\/subscribe\n/m, 'open where that upstream is user-scoped')
  t.match(plain, /^POST +\/api\/copilotkit\/threads\/subscribe +threads\/subscribe {2}closed\n/m)
  const data = JSON.parse((await run(t, ['routes', '--config', file, '--json'])).stdout) as {
    routes: object[]
    upstreams: object[]
  }
  t.match(data.upstreams, [{ scope: '' }, { scope: 'legal', publicPath: '/legal' }, { scope: 'research', unknownThread: 'deny' }])
  t.match(
    data.routes.find((one) => (one as { scope?: string }).scope === 'research'),
    { route: 'agent/run', path: '/agents/research' },
  )
  const alone = await run(t, ['routes', '--config', configFile(t).file])
  t.notMatch(alone.stdout, /^#/m, 'nothing of it where there is one')
})

void test('a fault of the configuration ends it', async (t) => {
  const { file } = configFile(t, { 'listen.prot': 1 })
  t.match(await run(t, ['routes', '--config', file]), { code: 1, stdout: '', stderr: /listen\.prot/ })
})
