/**
 * The hosted graph platform: a LangGraph server with an authentication handler, behind the real runtime, behind a gateway that
 * is started from a ready configuration (docs/contributing/specification-map.md, "Authentication" 6 and 8;
 * runtime-behaviour.md, "What the runtime does not check"). Between runtime and server stands a relay that tells what arrives at the server.
 */
import { readFileSync } from 'node:fs'
import tap, { after, before, end, test } from 'tap'
import { parse } from 'yaml'
import { ACCOUNTS } from '../../examples/accounts.ts'
import { startIssuer, type Issuer } from '../../examples/issuer.ts'
import { startLangGraph, type LangGraph } from '../../examples/langgraph.ts'
import { startRuntime, type Runtime } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { deploymentFile, startDeployment } from '../../testing/support/deployment.ts'
import { runGraph } from '../../testing/support/graph-run.ts'
import { startTestGateway, type TestGateway } from '../../testing/support/gateway.ts'
import { ask } from '../../testing/support/raw.ts'
import { startRelay, type Relay } from '../../testing/support/relay.ts'
import type { People } from '../../testing/support/stack.ts'

// The runtime tells of every run that fails.
tap.capture(console, 'error')

/** What the gateway shows the graph server in the second deployment. */
const SERVICE_TOKEN = 'the token of a service, which no user has'

/** What the runtime sends to the graph server in the first one, as its operator's. */
const HEADERS_OF_THE_RUNTIME = { authorization: 'Bearer of-the-server', 'x-api-key': 'server', 'x-tenant': 'server' }

/** Everything behind a gateway, and the gateway. */
interface Deployment {
  readonly langGraph: LangGraph
  readonly relay: Relay
  readonly runtime: Runtime
  readonly gateway: TestGateway
  /** Where the routes of the agent are: at the runtime itself, and at the gateway. */
  readonly bare: string
  readonly gated: string
  close(): Promise<void>
}

let issuer: Issuer
let tokens: People
/** The graph server verifies the users' tokens. */
let users: Deployment
/** The graph server takes requests from the gateway alone. */
let service: Deployment

before(async () => {
  // Of bob the issuer says who he is, and nothing more.
  issuer = await startIssuer({ claimsOf: (user) => (user === 'bob' ? {} : { ...ACCOUNTS.get(user) }) })
  const [alice, bob, olga] = await Promise.all([issuer.signIn('alice'), issuer.signIn('bob'), issuer.signIn('olga')])
  tokens = { alice, bob, olga }
  ;[users, service] = await Promise.all([
    deploy('hosted-graph', 'auth.ts', HEADERS_OF_THE_RUNTIME),
    deploy('hosted-graph-service', 'service-auth.ts', {}),
  ])
})
after(async () => {
  await Promise.all([users.close(), service.close()])
  await issuer.close()
})

/** Starts one, whose runtime sends headers of its own to the graph server. */
async function deploy(
  name: string,
  handler: 'auth.ts' | 'service-auth.ts',
  langGraphHeaders: Readonly<Record<string, string>>,
): Promise<Deployment> {
  const environment = { ISSUER_URL: issuer.issuer, GRAPH_SERVICE_TOKEN: SERVICE_TOKEN }
  const langGraph = await startLangGraph({ handler, environment })
  const relay = await startRelay(langGraph.url)
  const runtime = await startRuntime({ langGraphUrl: relay.url, langGraphHeaders })
  const gateway = await startDeployment(name, { ...environment, RUNTIME_URL: runtime.url })
  await gateway.ready()
  return {
    langGraph,
    relay,
    runtime,
    gateway,
    bare: `${runtime.url}/api/copilotkit/agent/graph`,
    gated: `${gateway.url}/api/copilotkit/agent/graph`,
    async close() {
      await gateway.close()
      await runtime.close()
      await relay.close()
      await langGraph.close()
    },
  }
}

/** Does something; gives every value that arrived at the graph server meanwhile under a name, each once. */
async function arriving<Name extends string>(
  { relay }: Deployment,
  names: readonly Name[],
  act: () => Promise<unknown>,
): Promise<Record<Name, readonly unknown[]>> {
  relay.requests.length = 0
  await act()
  const valuesOf = (name: string): readonly unknown[] => [...new Set(relay.requests.map(({ headers }) => headers[name]))]
  return Object.fromEntries(names.map((name) => [name, valuesOf(name)])) as Record<Name, readonly unknown[]>
}

/** Runs the graph through the gateway, with header lines that stand on the wire as they are written here. */
function runWith({ gateway }: Deployment, lines: readonly string[]): ReturnType<typeof ask> {
  const body = JSON.stringify(runInput(crypto.randomUUID()))
  return ask(gateway.url, { target: '/api/copilotkit/agent/graph/run', lines, body })
}

/** The requests for the agent that came to the runtime; its others are questions of the gateway's own. */
function reached({ runtime }: Deployment): readonly unknown[] {
  return runtime.requests.filter(({ url }) => url.includes('/agent/'))
}

/** Asks the graph server itself for threads; gives the status. */
async function search({ langGraph }: Deployment, headers: Record<string, string>): Promise<number> {
  return (await call(`${langGraph.url}/threads/search`, { headers, body: {} })).status
}

/** Every case in which a caller may write a name. */
const CASES = [
  (name: string) => name,
  (name: string) => name.toUpperCase(),
  (name: string) => name.replaceAll(/\b[a-z]/g, (one) => one.toUpperCase()),
]

void test('the caller’s token arrives, and the node reads who is asking', async (t) => {
  for (const [name, user] of [
    ['olga', { identity: 'olga', role: 'operator', permissions: ['threads:operate'] }],
    ['alice', { identity: 'alice', role: 'member', permissions: [] }],
    ['bob', { identity: 'bob', permissions: [] }],
  ] as const) {
    const token = tokens[name]
    const run = async (): Promise<void> => {
      const { finished, seen, text } = await runGraph(users.gated, token)
      t.ok(finished)
      // What the server adds by itself.
      t.strictSame(seen?.user, { ...user, is_authenticated: true, display_name: name })
      t.notOk(text.includes(token), 'the token is not told to the graph')
    }
    const { authorization } = await arriving(users, ['authorization'], run)
    t.strictSame(authorization, [`Bearer ${token}`], 'each request to the server has it')
    const last = users.relay.requests.at(-1)
    t.match(last, { method: 'GET', url: /\/state$/ }, 'also the one after the run, so it has to be good until then')
  }
})

void test('the graph server itself refuses callers without a valid bearer token', async (t) => {
  t.equal(await search(users, { authorization: `Bearer ${tokens.bob}` }), 200)
  t.equal(await search(users, {}), 401)
  for (const authorization of ['', tokens.bob, `bearer ${tokens.bob}`, `Basic ${tokens.bob}`, 'Bearer', 'Bearer x.y.z']) {
    t.equal(await search(users, { authorization }), 401)
  }
  t.equal(await search(users, { 'x-auth-scheme': 'langsmith' }), 401, 'the Studio is nobody special')
})

void test('without a good token nobody gets past the gateway', async (t) => {
  for (const deployment of [users, service]) {
    deployment.relay.requests.length = 0
    deployment.runtime.requests.length = 0
    for (const token of [undefined, 'x.y.z']) {
      for (const route of ['run', 'connect', 'suggest']) {
        t.equal((await runGraph(deployment.gated, token, {}, { route })).status, 401)
      }
    }
    t.strictSame([reached(deployment), deployment.relay.requests], [[], []])
  }
  const without = await runGraph(users.bare, undefined)
  t.strictSame([without.status, without.finished], [200, false])
  t.ok(users.relay.requests.length > 0, 'without the gateway it is the graph server that refuses')
})

void test('headers that the runtime sends to the graph lose to a caller’s, and win behind the gateway', async (t) => {
  const names = ['authorization', 'x-api-key', 'x-tenant'] as const
  const callers = { 'x-api-key': 'caller', 'x-tenant': 'caller' }
  t.strictSame(
    await arriving(users, names, () => runGraph(users.bare, undefined)),
    { authorization: ['Bearer of-the-server'], 'x-api-key': ['server'], 'x-tenant': ['server'] },
    'they are there when nobody sends one',
  )
  const authorization = `Bearer ${tokens.bob}`
  const without = async (): Promise<void> => {
    const { seen } = await runGraph(users.bare, tokens.bob, {}, { headers: callers })
    t.equal(seen?.user?.['identity'], 'bob')
    t.match(seen?.identity, { 'x-tenant': 'caller' }, 'the graph reads the caller’s')
    t.match(seen?.identity['copilotkit_forwarded_headers'], callers, 'and they are written down, the key too')
  }
  t.strictSame(
    await arriving(users, names, without),
    { authorization: [authorization], 'x-api-key': ['caller'], 'x-tenant': ['caller'] },
    'without the gateway it succeeds',
  )
  for (const spelled of CASES) {
    const lines = Object.entries({ ...callers, authorization }).map(([name, value]) => `${spelled(name)}: ${value}`)
    const through = async (): Promise<void> => {
      const { status, body } = await runWith(users, lines)
      t.match(body, /RUN_FINISHED/)
      t.strictSame([status, body.includes('caller')], [200, false])
      t.notOk(body.includes('x-api-key'), 'a key that the runtime sends by itself is not written down')
    }
    t.strictSame(
      await arriving(users, names, through),
      { authorization: [authorization], 'x-api-key': ['server'], 'x-tenant': ['server'] },
      `through it it fails: ${spelled('x-api-key')}`,
    )
  }
})

void test('a service’s token at the gateway is all that the graph server sees, and the node reads who is asking', async (t) => {
  for (const [name, user] of [
    ['olga', { identity: 'corp:olga', role: 'operator', permissions: ['threads:operate'] }],
    ['bob', { identity: 'corp:bob', permissions: [] }],
  ] as const) {
    const { finished, seen, text } = await runGraph(service.gated, tokens[name])
    t.ok(finished)
    t.strictSame(seen?.user, { ...user, is_authenticated: true, display_name: user.identity })
    t.notOk(text.includes(SERVICE_TOKEN), 'the graph is not told it')
  }
  const forged = { 'x-user-id': 'corp:olga', 'x-user-role': 'operator', 'x-user-permissions': 'threads:operate' }
  for (const spelled of CASES) {
    service.runtime.requests.length = 0
    const callers = { ...forged, 'x-api-key': 'caller', authorization: `Bearer ${tokens.bob}` }
    const lines = Object.entries(callers).map(([name, value]) => `${spelled(name)}: ${value}`)
    const through = async (): Promise<void> => {
      const { status, body } = await runWith(service, lines)
      t.equal(status, 200)
      t.match(body.replaceAll('\\', ''), /"user":{"identity":"corp:bob","permissions":\[\]/)
      t.notMatch(body, /olga|operate|caller/)
    }
    t.strictSame(
      await arriving(service, ['authorization', 'x-user-id', 'x-user-role', 'x-user-permissions', 'x-api-key'], through),
      {
        authorization: [`Bearer ${SERVICE_TOKEN}`],
        'x-user-id': ['corp:bob'],
        'x-user-role': [undefined],
        'x-user-permissions': [undefined],
        'x-api-key': [undefined],
      },
      spelled('authorization'),
    )
    t.equal(reached(service).length, 1)
    t.notOk(JSON.stringify(service.runtime.requests).includes(tokens.bob), 'the caller’s token ends at the gateway')
  }
})

void test('the caller’s token ends at the gateway even where the service’s is forgotten', async (t) => {
  const { upstream } = parse(readFileSync(deploymentFile('hosted-graph-service'), 'utf8')) as { upstream: object }
  const issuers = { corp: { issuer: issuer.issuer, audiences: [issuer.audience], algorithms: ['RS256'] } }
  const forgetful = await startTestGateway({
    authentication: { issuers },
    upstream: { ...upstream, url: service.runtime.url, headers: {} },
  })
  t.teardown(() => forgetful.close())
  await forgetful.ready()
  const run = async (): Promise<void> => {
    const { status, finished } = await runGraph(`${forgetful.url}/api/copilotkit/agent/graph`, tokens.bob)
    t.strictSame([status, finished], [200, false])
  }
  t.strictSame(await arriving(service, ['authorization'], run), { authorization: [undefined] })
})

void test('with a service’s token in the runtime instead, a caller is anybody', async (t) => {
  const authorization = `Bearer ${SERVICE_TOKEN}`
  const runtime = await startRuntime({ langGraphUrl: service.relay.url, langGraphHeaders: { authorization } })
  t.teardown(() => runtime.close())
  const bare = `${runtime.url}/api/copilotkit/agent/graph`
  const headers = { 'x-user-id': 'corp:olga' }
  const named = await runGraph(bare, undefined, {}, { headers })
  t.equal(named.seen?.user?.['identity'], 'corp:olga', 'the runtime lends its token')
  const own = async (): Promise<void> => {
    const { finished } = await runGraph(bare, tokens.bob, {}, { headers })
    t.notOk(finished)
  }
  t.strictSame(
    await arriving(service, ['authorization'], own),
    { authorization: [`Bearer ${tokens.bob}`] },
    'or nobody: a credential of the caller’s wins over it',
  )
})

void test('the graph server itself believes nobody without the service’s token', async (t) => {
  const user = { 'x-user-id': 'corp:olga' }
  const authorization = `Bearer ${SERVICE_TOKEN}`
  t.equal(await search(service, { ...user, authorization }), 200)
  for (const headers of [{}, user, { authorization }, { ...user, authorization: `${authorization}x` }]) {
    t.equal(await search(service, headers), 401)
  }
  t.equal(await search(service, { ...user, authorization: `Bearer ${tokens.olga}` }), 401, 'nor a user’s')
})

void test('nobody gets at another’s thread', async (t) => {
  for (const deployment of [users, service]) {
    const { threadId, finished } = await runGraph(deployment.gated, tokens.alice, {}, { text: 'alice’s note' })
    t.ok(finished)
    deployment.relay.requests.length = 0
    for (const route of ['run', 'connect', 'suggest']) {
      const { status, code, text } = await runGraph(deployment.gated, tokens.bob, {}, { threadId, route })
      t.strictSame([status, code, text.includes('alice’s note')], [403, 'not-owner', false], `through it it fails: ${route}`)
    }
    t.strictSame(deployment.relay.requests, [], 'the graph server has heard nothing of it')
    const own = await runGraph(deployment.gated, tokens.alice, {}, { threadId })
    t.ok(
      own.messages.some(({ content }) => content === 'alice’s note'),
      'while she goes on',
    )
  }
  const { threadId } = await runGraph(users.gated, tokens.alice, {}, { text: 'alice’s note' })
  const { messages } = await runGraph(users.bare, tokens.bob, {}, { threadId })
  t.ok(
    messages.some(({ content }) => content === 'alice’s note'),
    'without the gateway it succeeds: the handler knows no owners',
  )
})

void test('the body says nothing about who is asking', async (t) => {
  const spoofed = { langgraph_auth_user: { identity: 'olga' }, langgraph_auth_user_id: 'olga', user_id: 'olga' }
  const forwardedProps = { config: { configurable: spoofed } }
  const without = await runGraph(users.bare, tokens.bob, { forwardedProps })
  t.match(without.seen?.identity, { langgraph_auth_user: { identity: 'bob' }, langgraph_auth_user_id: 'bob' }, 'the handler wins')
  t.equal(without.seen?.identity['user_id'], 'olga', 'without the gateway what it does not set is the caller’s')
  for (const { gated } of [users, service]) {
    const { finished, seen, text } = await runGraph(gated, tokens.bob, { forwardedProps })
    t.ok(finished)
    t.match(seen?.user?.['identity'], /^(?:corp:)?bob$/)
    t.notMatch(text, /olga/, 'through it it fails')
  }
})

end()
