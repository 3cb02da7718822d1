/**
 * A proxy that checks the routes it knows and lets the others pass: Envoy's jwt_authn asks for no token where no rule matches,
 * LangGraph's auth handlers let pass what they don't name. The runtime itself has routes that a gateway may not have heard of
 * yet. Here what is not in the table does not exist, and no policy and no mode opens it.
 */
import type { Test } from 'tap'
import { ROUTES } from '../../src/core/route/routes.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { methodsAt } from '../../testing/support/pair.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { OPEN_POLICY } from './open-policy.ts'

const BASE = '/api/copilotkit'

/** Nothing here is in the table: neighbours of its rows, what runtimes and their tools serve besides, what servers are asked for. */
const UNKNOWN = [
  '/nowhere',
  '/Info',
  '/INFO',
  '/infos',
  '/inf',
  '/info.json',
  '/info/x',
  '/information',
  '/agent',
  '/agents',
  '/agent/default',
  '/agent/default/run/x',
  '/agent/default/Run',
  '/agent/default/runs',
  '/agent/default/resume',
  '/agent/default/stop',
  '/agent/default/stop/t1/x',
  '/agent/default/capabilities',
  '/agents/execute',
  '/actions/execute',
  '/threads/t1/clear',
  '/threads/t1/run',
  '/threads/t1/messages/m1',
  '/threads/t1/Messages',
  '/threads/t1/state/history',
  '/threads/t1/copy',
  '/threads/t1/unarchive',
  '/threads/t1/annotate',
  '/thread/t1/messages',
  '/Threads',
  '/threads/search/runs',
  '/threads/clear/x',
  '/threads/subscribe/x',
  '/runs',
  '/runs/stream',
  '/assistants/search',
  '/store/items',
  '/memories/m1/x',
  '/memories/m1/recall',
  '/transcribe/x',
  '/annotate/x',
  '/cpk-debug-events/x',
  '/inspector-metadata/x',
  '/inspector',
  '/debug',
  '/mcp',
  '/graphql',
  '/ok',
  '/docs',
  '/openapi.json',
  '/health',
  '/metrics',
  '/admin',
  '/favicon.ico',
  '/robots.txt',
  '/index.html',
  '/constructor',
  '/__proto__',
  '/toString/valueOf',
] as const

/** Targets outside the base path. */
const OUTSIDE = ['/', '/api', '/info', '/threads', '/threads/clear', '/copilotkit', '/api/copilotkitx/info', '/.well-known/x']

/** Every method that the parser knows how to read here, and that is no preflight. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE', 'M-SEARCH']

/** Asks for all of them with the credentials given, and all are 404. */
async function refusedAll(t: Test, { gateway, upstream }: GatedUpstream, tokens: readonly (string | undefined)[]): Promise<void> {
  for (const [at, target] of [...UNKNOWN.map((path) => BASE + path), ...OUTSIDE].entries()) {
    const method = at % 2 === 0 ? 'GET' : 'POST'
    for (const token of tokens) {
      const answer = await gateway.ask({ method, target, ...(token === undefined ? {} : { token }) })
      t.match(answer, { status: 404, body: '"code":"not-found"' }, `${method} ${target}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
}

/** The honest request of the same gateway arrives. */
async function infoArrives(t: Test, { gateway, upstream, alice }: GatedUpstream): Promise<void> {
  t.equal((await gateway.ask({ target: `${BASE}/info`, token: alice })).status, 200)
  t.same(
    upstream.requests.map(({ method, target }) => `${method} ${target}`),
    [`GET ${BASE}/info`],
  )
}

void testFirstPair('a route outside the table is 404 to every caller, and 401 without a credential', async (t, pair) => {
  const gate = await gated(t, undefined, { pair })
  await refusedAll(t, gate, [gate.alice, gate.olga])
  for (const target of [...UNKNOWN.map((path) => BASE + path), ...OUTSIDE]) {
    t.match(await gate.gateway.ask({ target }), { status: 401, body: '"code":"credential-missing"' }, target)
    t.match(await gate.gateway.ask({ target, token: 'x.y.z' }), { status: 401, body: '"code":"credential-invalid"' })
  }
  await infoArrives(t, gate)
})

void testFirstPair('in every method', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, undefined, { pair })
  for (const method of methodsAt(pair.place, METHODS)) {
    for (const path of ['/nowhere', '/threads/t1/clear', '/agent/default', '']) {
      const answer = await gateway.ask({ method, target: `${BASE}${path}`, token: olga })
      t.equal(answer.status, 404, `${method} ${path}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

for (const mode of ['required', 'optional', 'off'] as const) {
  for (const policy of [undefined, OPEN_POLICY]) {
    const opened = policy === undefined ? 'the shipped policy' : 'the most open of policies'
    void testFirstPair(`mode ${mode} and ${opened} open none of them`, async (t, pair) => {
      const signer = makeSigner()
      t.teardown(() => signer.remove())
      const gate = await gated(t, undefined, {
        pair,
        signer,
        config: { authentication: { ...signer.authentication, mode } },
        ...(policy === undefined ? {} : { policy }),
      })
      await refusedAll(t, gate, [mode === 'required' ? gate.olga : undefined])
      await infoArrives(t, gate)
    })
  }
}

void testFirstPair('a route that exists has no other method', async (t, pair) => {
  const gate = await gated(t, undefined, { pair, policy: OPEN_POLICY })
  for (const { path } of ROUTES) {
    const allowed = ROUTES.filter((row) => row.path.join('/') === path.join('/')).map((row) => row.method as string)
    const target = `${BASE}/${path.map((word) => (word.startsWith(':') ? 'x-1' : word)).join('/')}`
    for (const method of methodsAt(pair.place, METHODS).filter((one) => !allowed.includes(one))) {
      const answer = await gate.gateway.ask({ method, target, token: gate.olga })
      t.equal(answer.status, 405, `${method} ${target}`)
      t.equal(answer.headers.get('allow'), allowed.join(', '))
    }
  }
  t.equal(gate.upstream.beginnings(), 0)
  await infoArrives(t, gate)
})
