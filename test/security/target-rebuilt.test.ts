/**
 * A proxy that checks one spelling and forwards another lets the upstream read what nobody checked (oauth2-proxy
 * GHSA-pxq7-h93f-9jrg; @fastify/reply-from resolves the path it is given as a URL once more). Here the raw target is never
 * forwarded: what goes upstream is written from the route and the ids that were checked, below the upstream's own base path.
 */
import type { Test } from 'tap'
import { ROUTES } from '../../src/core/route/routes.ts'
import { runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import type { RawRequest } from '../../testing/support/raw.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { OPEN_POLICY } from './open-policy.ts'

/** The thread of all these requests; `:` is the one character with two spellings in a path. */
const THREAD = 'chat:1'

/** A gateway where an operator owns the thread; its upstream deletes nothing, so that the thread stays. */
async function withThread(t: Test, pair: Pair, paths: Record<string, string>): Promise<GatedUpstream> {
  const gate = await gated(t, events(), { pair, config: { upstream: paths }, policy: OPEN_POLICY })
  await gate.gateway.ask({
    target: `${new URL(gate.base).pathname.replace(/\/$/, '')}/agent/default/run`,
    token: gate.olga,
    body: JSON.stringify(runInput(THREAD)),
  })
  gate.upstream.answer((request, response) => json({}, request.method === 'DELETE' ? 422 : 200)(request, response))
  return gate
}

/** What arrived since, as method and target. */
function arrived({ upstream }: GatedUpstream, since = 0): readonly string[] {
  return upstream.requests.slice(since).map(({ method, target }) => `${method} ${target}`)
}

const BASES = [
  { publicPath: '/api/copilotkit', basePath: '/api/copilotkit' },
  { publicPath: '/chat', basePath: '/internal/ck' },
  { publicPath: '/a/b/c', basePath: '/' },
  { publicPath: '/', basePath: '/deep/er' },
  { publicPath: '/', basePath: '/' },
] as const

for (const paths of BASES) {
  void testEachPair(`every route is written anew: public ${paths.publicPath}, upstream ${paths.basePath}`, async (t, pair) => {
    const { upstream } = pair
    const gate = await withThread(t, pair, paths)
    const [from = '', to] = [paths.publicPath, paths.basePath].map((path) => (path === '/' ? '' : path))
    for (const route of ROUTES) {
      // The list is asked for page by page, in a query of the gateway's own.
      if (route.id === 'threads/list') continue
      for (const spelling of [THREAD, THREAD.replace(':', '%3A')]) {
        const written = (thread: string): string =>
          route.path
            .map((word) =>
              word === ':threadId' ? thread : word === ':agentId' ? 'my.agent' : word === ':memoryId' ? 'm-1' : word,
            )
            .join('/')
        const input = route.thread === 'body' ? { ...runInput(THREAD), type: 'x', payload: {} } : { name: 'n' }
        const request: RawRequest = {
          method: route.method,
          target: `${from}/${written(spelling)}?next=/threads/clear&x`,
          base: from,
          token: gate.olga,
          ...(route.body.kind === 'none' ? {} : { body: JSON.stringify(input) }),
        }
        const before = gate.upstream.requests.length
        const { status } = await gate.gateway.ask(request)
        if (route.id === 'cpk-debug-events' && upstream === 'single-route') {
          t.same([status, arrived(gate, before)], [404, []], 'no single-route runtime has the debug feed')
          continue
        }
        t.equal(status, route.method === 'DELETE' ? 422 : 200, `${route.method} ${request.target}`)
        t.same(arrived(gate, before), [`${route.method} ${to}/${written('chat%3A1')}`])
      }
    }
  })
}

void testEachPair(
  'what lies under the upstream’s path is not found under the public one, nor the other way round',
  async (t, pair) => {
    const { gateway, upstream, olga } = await gated(t, json({}), {
      pair,
      config: { upstream: { basePath: '/internal/ck', publicPath: '/chat' } },
    })
    for (const target of [
      '/internal/ck/info',
      '/internal/ck/threads/clear',
      '/info',
      '/threads/clear',
      '/chat/chat/info',
      '/chat/internal/ck/info',
      '/internal/ck/chat/info',
      '/Chat/info',
      '/CHAT/threads/clear',
      '/chatx/info',
      '/cha/info',
      '/chat.info',
      '/chat~/info',
      '/x/chat/info',
      '/api/copilotkit/info',
    ]) {
      for (const method of ['GET', 'POST']) {
        const answer = await gateway.ask({ method, target, token: olga, base: '/chat' })
        t.match(answer, { status: 404, body: '"code":"not-found"' }, `${method} ${target}`)
      }
    }
    t.equal(upstream.beginnings(), 0)
    t.equal((await gateway.ask({ target: '/chat/info', token: olga, base: '/chat' })).status, 200)
    t.same(
      upstream.requests.map(({ target }) => target),
      ['/internal/ck/info'],
    )
  },
)

void testEachPair('the handshake on a base path of / is the one target that is no more than the base', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, json({}), { pair, config: { upstream: { basePath: '/' } } })
  t.equal((await gateway.ask({ target: '/', token: alice, body: '{"method":"info"}' })).status, 200)
  t.equal((await gateway.ask({ target: '/x/info', token: alice })).status, 404)
  t.same(
    upstream.requests.map(({ method, target }) => `${method} ${target}`),
    ['GET /info'],
  )
})

void testEachPair('Host is the one of the configuration, whatever the caller says', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const hosts = ['evil.example', 'evil.example:80', new URL(upstream.url).hostname, '[::1]', 'evil.example/threads/clear', '']
  for (const host of hosts) await gateway.ask({ target: '/api/copilotkit/info', token: alice, host })
  t.ok(upstream.requests.length >= 4)
  for (const request of upstream.requests) {
    t.equal(request.target, '/api/copilotkit/info')
    t.same(request.headers.get('host'), [new URL(upstream.url).host])
  }
})
