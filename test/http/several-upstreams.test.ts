/** Several upstreams behind one gateway: chosen by path, and what is whose at one says nothing of another. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeAssertionVerifier, type Verify } from '../../src/sdk/agent/index.ts'
import { fate } from '../agent/credentials.ts'
import { call, codeOf, runInput, type Reply } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, startUpstream, type Answering, type Recorded, type Upstream } from '../../testing/support/upstream.ts'

interface Scene extends GatedUpstream {
  /** The further runtime, and where callers find it. */
  readonly legal: Upstream
  readonly legalBase: string
  /** The agent, likewise. */
  readonly research: Upstream
  readonly researchUrl: string
}

/** A first runtime, a further one under /legal, and an agent under /agents/research. */
async function scene(
  t: Test,
  answering: Answering = events({ type: 'RUN_STARTED' }),
  options: GatedOptions = {},
): Promise<Scene> {
  const legal = await startUpstream(answering)
  const research = await startUpstream(answering)
  t.teardown(() => Promise.all([legal.close(), research.close()]))
  const { upstreams, agents, ...config } = (options.config ?? {}) as { upstreams?: object; agents?: object }
  const first = await gated(t, answering, {
    ...options,
    config: {
      upstreams: { legal: { url: legal.url, basePath: '/chat', publicPath: '/legal', ...upstreams } },
      agents: { research: { url: research.url, path: '/awp/', ...agents } },
      ...config,
    },
  })
  await first.gateway.ready()
  const { url } = first.gateway
  return { ...first, legal, legalBase: `${url}/legal`, research, researchUrl: `${url}/agents/research` }
}

const run = (url: string, token: string, threadId: string): Promise<Reply> => call(url, { token, body: runInput(threadId) })

const targets = ({ requests }: Upstream): readonly string[] => requests.map(({ method, target }) => `${method} ${target}`)
const header = (request: Recorded | undefined, name: string): string | undefined => request?.headers.get(name)?.join('|')

void test('the path says which upstream a request is for, and each gets it as it takes requests itself', async (t) => {
  const { base, legalBase, researchUrl, alice, upstream, legal, research } = await scene(t)
  t.equal((await run(`${base}/agent/default/run`, alice, 't1')).status, 200)
  t.equal((await run(`${legalBase}/agent/default/run`, alice, 't1')).status, 200)
  t.equal((await run(researchUrl, alice, 't1')).status, 200)
  t.equal((await call(`${legalBase}/threads/t1/messages`, { token: alice })).status, 200)
  t.same(targets(upstream), ['POST /api/copilotkit/agent/default/run'])
  t.same(targets(legal), ['POST /chat/agent/default/run', 'GET /chat/threads/t1/messages'])
  t.same(targets(research), ['POST /awp/'])
})

void test('owning a thread at one upstream opens nothing at another', async (t) => {
  const { base, legalBase, researchUrl, alice, bob, upstream, legal, research } = await scene(t)
  await run(`${legalBase}/agent/default/run`, alice, 't1')
  await run(`${base}/agent/default/run`, bob, 't1')
  await run(researchUrl, bob, 't1')
  const reached = [upstream, legal, research].map(({ requests }) => requests.length)
  t.same(reached, [1, 1, 1], "alice's row at one is no obstacle to bob at the others")
  for (const [what, reply] of [
    ['bob reads at legal', await call(`${legalBase}/threads/t1/messages`, { token: bob })],
    ['alice reads at the first', await call(`${base}/threads/t1/messages`, { token: alice })],
    ['alice runs at the first', await run(`${base}/agent/default/run`, alice, 't1')],
    ['alice stops at the first', await call(`${base}/agent/default/stop/t1`, { method: 'POST', token: alice })],
    ['alice runs at the agent', await run(researchUrl, alice, 't1')],
    ['bob runs at legal', await run(`${legalBase}/agent/default/run`, bob, 't1')],
  ] as const) {
    t.same([reply.status, codeOf(reply)], [403, 'not-owner'], what)
  }
  for (const [token, from] of [
    [bob, legalBase],
    [alice, base],
  ] as const) {
    for (const part of ['events', 'state']) {
      t.equal((await call(`${from}/threads/t1/${part}`, { token })).status, 404)
    }
  }
  t.same(
    [upstream, legal, research].map(({ requests }) => requests.length),
    reached,
    'nothing of it reached anybody',
  )
})

void test('a deleted thread of one upstream is no deleted one of another', async (t) => {
  const { base, legalBase, alice, bob } = await scene(t, (request, response) =>
    (request.method === 'DELETE' ? json({ deleted: true }) : events({ type: 'RUN_STARTED' }))(request, response),
  )
  await run(`${base}/agent/default/run`, alice, 't1')
  await run(`${legalBase}/agent/default/run`, bob, 't1')
  t.equal((await call(`${base}/threads/t1`, { method: 'DELETE', token: alice, body: { agentId: 'default' } })).status, 200)
  t.equal((await call(`${legalBase}/threads/t1/messages`, { token: bob })).status, 200)
  t.equal((await call(`${base}/threads/t1/messages`, { token: alice })).status, 403, 'gone at the one')
})

void test('a list has the threads of its own upstream, and its cursor is good there alone', async (t) => {
  const threads = ['t1', 't2', 't3'].map((id) => ({ id, agentId: 'default' }))
  const { base, legalBase, alice, bob } = await scene(t, (request, response) =>
    (request.method === 'GET' ? json({ threads, nextCursor: null }) : events({ type: 'RUN_STARTED' }))(request, response),
  )
  for (const id of ['t1', 't2', 't3']) await run(`${base}/agent/default/run`, alice, id)
  for (const id of ['t2', 't3']) await run(`${legalBase}/agent/default/run`, bob, id)
  const idsIn = (reply: Reply): readonly string[] =>
    (reply.json as { threads: readonly { id: string }[] }).threads.map(({ id }) => id)
  t.same(idsIn(await call(`${base}/threads`, { token: alice })), ['t1', 't2', 't3'])
  t.same(idsIn(await call(`${legalBase}/threads`, { token: alice })), [])
  t.same(idsIn(await call(`${legalBase}/threads`, { token: bob })), ['t2', 't3'])
  const page = await call(`${base}/threads?limit=2`, { token: alice })
  const { nextCursor } = page.json as { nextCursor: string }
  t.same(idsIn(await call(`${base}/threads?limit=2&cursor=${nextCursor}`, { token: alice })), ['t3'])
  const elsewhere = await call(`${legalBase}/threads?limit=2&cursor=${nextCursor}`, { token: alice })
  t.equal(elsewhere.status, 400)
})

void test('each gets its own headers and, where it is meant to, the credential', async (t) => {
  const { base, legalBase, researchUrl, alice, upstream, legal, research } = await scene(t, undefined, {
    config: {
      upstream: { headers: { 'x-secret': 'first' } },
      upstreams: { headers: { 'x-secret': 'legal', authorization: 'Bearer service' } },
      agents: { forwardAuthorization: false },
    },
  })
  const headers = { 'x-secret': 'mine' }
  await call(`${base}/agent/default/run`, { token: alice, headers, body: runInput('t1') })
  await call(`${legalBase}/agent/default/run`, { token: alice, headers, body: runInput('t1') })
  await call(researchUrl, { token: alice, headers, body: runInput('t1') })
  const [first, second, third] = [upstream, legal, research].map(({ requests }) => requests[0])
  t.same([header(first, 'x-secret'), header(first, 'authorization')], ['first', `Bearer ${alice}`])
  t.same([header(second, 'x-secret'), header(second, 'authorization')], ['legal', 'Bearer service'])
  t.same([header(third, 'x-secret'), header(third, 'authorization')], [undefined, undefined])
})

/** A key file for assertions. */
function assertionKey(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'key.pem')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return file
}

/** Runs the same thread at each of the three upstreams, and gives the assertion that each got. */
async function assertionsOf(
  t: Test,
  config: object,
): Promise<{ readonly assertions: readonly string[]; readonly keys: readonly object[] }> {
  const assertion = { keyFiles: [assertionKey(t)], issuer: 'https://chat.example.com', audience: 'agents' }
  const found = await scene(t, undefined, { config: { identity: { assertion }, ...config } })
  await run(`${found.base}/agent/default/run`, found.alice, 't1')
  await run(`${found.legalBase}/agent/default/run`, found.alice, 't1')
  await run(found.researchUrl, found.alice, 't1')
  const { keys } = (await call(`${found.gateway.url}/.well-known/jwks.json`)).json as { readonly keys: readonly object[] }
  const { upstream, legal, research } = found
  return {
    assertions: [upstream, legal, research].map(({ requests }) => header(requests[0], 'x-threadwarden-assertion') ?? ''),
    keys,
  }
}

const claimsIn = (assertion: string): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(assertion.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>

void test('an assertion is for whom it is sent to', async (t) => {
  const { assertions } = await assertionsOf(t, {
    upstreams: { assertionAudience: 'legal' },
    agents: { assertionAudience: 'research' },
  })
  t.match(assertions.map(claimsIn), [
    { aud: 'agents', scope: '' },
    { aud: 'legal', scope: 'legal' },
    { aud: 'research', scope: 'research' },
  ])
})

void test('an assertion of one upstream is refused at every other, whatever the configuration says of audiences', async (t) => {
  const scopes = ['', 'legal', 'research']
  const refused = (reason: string) => `NotAuthenticated credential-invalid ${reason}`
  for (const [config, audiences] of [
    [{}, ['agents', 'agents/legal', 'agents/research']],
    [{ upstreams: { assertionAudience: 'agents' }, agents: { assertionAudience: 'agents' } }, ['agents', 'agents', 'agents']],
  ] as const) {
    const { assertions, keys } = await assertionsOf(t, config)
    t.same(
      assertions.map((one) => claimsIn(one)['aud']),
      audiences,
    )
    for (const [at, scope] of scopes.entries()) {
      const trust = { issuer: 'https://chat.example.com', audience: audiences[at] ?? '', keys }
      for (const [from, one] of assertions.entries()) {
        const own = from === at
        const told = (verify: Verify) => fate(verify({ 'x-threadwarden-assertion': one }))
        const byAudience = await told(makeAssertionVerifier(trust))
        const byScope = await told(makeAssertionVerifier({ ...trust, scope }))
        if (own) t.same([byAudience, byScope], ['corp:alice', 'corp:alice'])
        else if (audiences[0] === audiences[1]) t.same([byAudience, byScope], ['corp:alice', refused('scope-mismatch')])
        else t.same([byAudience, byScope], [refused('audience-mismatch'), refused('audience-mismatch')])
      }
    }
  }
})

void test('what is outside all public paths is 401 without a token and 404 with one; no other path leads to an upstream', async (t) => {
  const { gateway, alice, upstream, legal, research } = await scene(t)
  for (const path of [
    '/',
    '/chat/info',
    '/legalx/info',
    '/Legal/info',
    '/agents',
    '/agents/other',
    '/agents/researchx',
    '/awp/',
    '/legal/agents/research',
    '/api/copilotkit/agents/research',
    '/agents/research/agent/research/run',
    '/agents/research/agent/default/run',
    '/agents/research/info',
    '/agents/research/threads',
    '/agents/research/threads/t1/messages',
    '/agents/research/awp',
  ]) {
    const [stranger, known] = await Promise.all([
      call(`${gateway.url}${path}`, { body: runInput('t9') }),
      call(`${gateway.url}${path}`, { token: alice, body: runInput('t9') }),
    ])
    const malformed = path.endsWith('/') && path !== '/'
    t.equal(stranger.status, malformed ? 400 : 401, path)
    t.equal(known.status, malformed ? 400 : 404, path)
  }
  t.same(
    [upstream, legal, research].map(({ requests }) => requests.length),
    [0, 0, 0],
  )
})

void test('an upstream that is not known yet keeps its own requests waiting, and those of no other', async (t) => {
  const { base, legalBase, researchUrl, alice, gateway, legal } = await scene(t)
  legal.answerQuestions(json({ hello: 'world' }))
  legal.answer(json({}, 404))
  await call(`${legalBase}/info`, { token: alice })
  const readiness = async () => (await call(`${gateway.healthUrl}/readyz`)).json as { pending: Record<string, string> }
  await until(async () => (await readiness()).pending['upstream:legal'] !== undefined)
  t.same(Object.keys((await readiness()).pending), ['upstream:legal'])
  const late = await call(`${legalBase}/info`, { token: alice })
  t.same([late.status, codeOf(late)], [503, 'not-ready'])
  t.equal((await run(`${base}/agent/default/run`, alice, 't1')).status, 200)
  t.equal((await run(researchUrl, alice, 't1')).status, 200)
  t.ok(gateway.lines.some(({ pending, upstream }) => pending !== undefined && upstream === 'legal'))
})

void test('unknown threads are what each upstream says that they are', async (t) => {
  const { base, legalBase, researchUrl, alice } = await scene(t, undefined, {
    config: { upstreams: { unknownThread: 'deny' }, agents: { unknownThread: 'deny' } },
  })
  t.equal((await run(`${base}/agent/default/run`, alice, 't1')).status, 200)
  t.equal((await run(`${legalBase}/agent/default/run`, alice, 't1')).status, 403)
  t.equal((await run(researchUrl, alice, 't1')).status, 403)
})

void test('limits are those of a caller, whichever upstream they call', async (t) => {
  const { base, legalBase, researchUrl, alice, bob } = await scene(t, undefined, {
    config: { limits: { newThreads: '1/h' } },
  })
  t.equal((await run(`${base}/agent/default/run`, alice, 't1')).status, 200)
  t.equal((await run(`${legalBase}/agent/default/run`, alice, 't1')).status, 200, 'the burst is twice the rate')
  const third = await run(researchUrl, alice, 't1')
  t.same([third.status, codeOf(third)], [429, 'rate-limited'])
  t.equal((await run(researchUrl, bob, 't1')).status, 200)
})

void test('the log says of which upstream a thread is', async (t) => {
  const { legalBase, base, alice, gateway } = await scene(t)
  await run(`${legalBase}/agent/default/run`, alice, 't1')
  await run(`${base}/agent/default/run`, alice, 't2')
  const told = (): readonly (readonly unknown[])[] =>
    gateway.lines.filter(({ msg }) => msg === 'request').map(({ thread, upstream }) => [thread, upstream])
  await until(() => told().length === 2)
  t.same(told(), [
    ['t1', 'legal'],
    ['t2', undefined],
  ])
})
