/** Each tested version of the runtime behind the gateway, in both transports: what the gateway assumes about it is true. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { test, type Test } from 'tap'
import { listen, readBody, stop } from '../../../examples/http.ts'
import { envelopeOf } from '../../../src/core/route/envelope.ts'
import { ROUTES, type Route } from '../../../src/core/route/routes.ts'
import type { RuntimeContract } from '../../../testing/contract/facts.ts'
import { nameOf } from '../../../testing/contract/known.ts'
import { readRecorded } from '../../../testing/contract/recorded.ts'
import { startReleased, type Released, type ReleasedOptions } from '../../../testing/contract/released.ts'
import { call, codeOf, runInput, type Reply } from '../../../testing/support/client.ts'
import { gateBefore, type Gated } from '../../../testing/support/gated.ts'
import { ofCallers } from '../../../testing/support/stack.ts'
import { until } from '../../../testing/support/until.ts'

type Mode = ReleasedOptions['mode']

const MODES: readonly Mode[] = ['multi-route', 'single-route']
/** A condition that does not come is a failure of one test. */
const LIMIT = { timeout: 60_000 }

const AGENT_HEADERS = { authorization: 'Bearer agent', 'x-server': 'agent' }

interface Agent {
  readonly url: string
  /** Of the last run. */
  headers: IncomingHttpHeaders
}

/** Answers each run with one message. */
async function startAgent(t: Test): Promise<Agent> {
  const agent = { url: '', headers: {} as IncomingHttpHeaders }
  const server = createServer((request, response) => {
    agent.headers = request.headers
    void readBody(request, 1_000_000).then((text) => {
      const { threadId, runId } = JSON.parse(text) as { readonly threadId: string; readonly runId: string }
      const messageId = crypto.randomUUID()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of [
        { type: 'RUN_STARTED', threadId, runId },
        { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: 'hello' },
        { type: 'TEXT_MESSAGE_END', messageId },
        { type: 'RUN_FINISHED', threadId, runId },
      ]) {
        response.write(`data: ${JSON.stringify(event)}\n\n`)
      }
      response.end()
    })
  })
  t.teardown(() => stop(server))
  const { origin } = await listen(server, 0, '127.0.0.1')
  return Object.assign(agent, { url: `${origin}/` })
}

interface Scene extends Gated {
  readonly runtime: Released
  readonly agent: Agent
}

async function start(t: Test, version: string, mode: Mode, config: Readonly<Record<string, unknown>> = {}): Promise<Scene> {
  t.capture(console, 'error')
  t.capture(console, 'warn')
  const agent = await startAgent(t)
  const runtime = await startReleased(version, { mode, agentUrl: agent.url, agentHeaders: AGENT_HEADERS })
  t.teardown(() => runtime.close())
  const gated = await gateBefore(t, runtime.url, { config: { upstream: { transport: 'auto' }, ...config } })
  return { ...gated, runtime, agent }
}

function hasRoute({ routes }: RuntimeContract, { method, path }: Pick<Route, 'method' | 'path'>): boolean {
  return routes.some((route) => nameOf(route) === `${method} ${path.join('/')}`)
}

/** Whether a request for the route reaches a handler of the runtime. */
function serves(contract: RuntimeContract, mode: Mode, route: Route): boolean {
  // The runtime of the test does not expose its memories.
  if (!hasRoute(contract, route) || route.id.startsWith('memories/')) return false
  if (mode === 'multi-route') return true
  return envelopeOf(route) === 'tunnel'
    ? contract.envelopeMethods.includes('resource/request')
    : contract.envelopeMethods.includes(route.id)
}

function targetOf(route: Route, thread: string): string {
  return `/${route.path.join('/').replace(':agentId', 'remote').replace(':threadId', thread).replace(':memoryId', 'memory')}`
}

const bodyOf = ({ body }: Route, thread: string): { readonly body?: unknown } => {
  if (body.kind === 'none' || body.keys.length === 0) return {}
  if (body.keys.includes('messages')) return { body: runInput(thread) }
  const values: Readonly<Record<string, unknown>> = { threadId: thread, agentId: 'remote', name: 'x', type: 'x', runId: 'r1' }
  return { body: Object.fromEntries(body.keys.flatMap((key) => (key in values ? [[key, values[key]]] : []))) }
}

/** Asks the runtime itself, in its own transport. */
function askDirectly({ url, basePath }: Released, mode: Mode, route: Route, thread: string): Promise<Reply> {
  const [target, { body }] = [targetOf(route, thread), bodyOf(route, thread)]
  if (mode === 'multi-route')
    return call(`${url}${basePath}${target}`, { method: route.method, ...(body !== undefined && { body }) })
  const envelope =
    envelopeOf(route) === 'tunnel'
      ? { method: 'resource/request', params: { path: target, httpMethod: route.method }, body }
      : { method: route.id, params: { agentId: 'remote', threadId: thread }, body }
  return call(`${url}${basePath}`, { body: envelope })
}

/** The policy opens these to an owner, and they have no effect that the next request would see. */
const COMPARED = [
  'info',
  'agent/suggest',
  'threads/list',
  'threads/update',
  'threads/archive',
  'threads/messages',
  'threads/events',
  'threads/state',
  'annotate',
]

for (const contract of readRecorded()) {
  const { version } = contract
  for (const mode of MODES) {
    void test(`${version}, ${mode}: a conversation belongs to one user`, LIMIT, async (t) => {
      const { base, runtime, alice, bob, gateway } = await start(t, version, mode)
      await gateway.ready()
      const thread = crypto.randomUUID()
      const agent = `${base}/agent/remote`
      const run = await call(`${agent}/run`, { token: alice, body: runInput(thread) })
      t.match([run.status, run.text], [200, /hello[^]*RUN_FINISHED/])
      const connect = await call(`${agent}/connect`, { token: alice, body: runInput(thread) })
      t.match([connect.status, connect.text], [200, /hello/], 'a connect replays it')
      const unknown = await call(`${agent}/connect`, { token: alice, body: runInput(crypto.randomUUID()) })
      t.same([unknown.status, unknown.text], [200, ''], 'or is empty')
      const stopped = await call(`${agent}/stop/${thread}`, { token: alice, body: { runId: 'r1' } })
      t.match([stopped.status, stopped.json], [200, { stopped: false }])
      runtime.requests.length = 0
      for (const route of ROUTES.filter((one) => one.thread !== undefined)) {
        const target = `${base}${targetOf(route, thread)}`
        const refused = await call(target, { method: route.method, token: bob, ...bodyOf(route, thread) })
        t.ok([403, 404].includes(refused.status), `${route.method} ${route.id}: ${refused.status}`)
      }
      t.same(ofCallers(runtime.requests), [], 'no request of another user reached it')
    })

    void test(`${version}, ${mode}: each route answers as the runtime does, or is missing`, LIMIT, async (t) => {
      const { base, runtime, alice, gateway } = await start(t, version, mode)
      await gateway.ready()
      const thread = crypto.randomUUID()
      await call(`${base}/agent/remote/run`, { token: alice, body: runInput(thread) })
      for (const route of ROUTES.filter(({ id }) => COMPARED.includes(id))) {
        const [own, through] = [
          await askDirectly(runtime, mode, route, thread),
          await call(`${base}${targetOf(route, thread)}`, { method: route.method, token: alice, ...bodyOf(route, thread) }),
        ]
        const name = `${route.method} ${route.id}`
        if (serves(contract, mode, route)) {
          t.equal(through.status, own.status, `${name}: ${own.status}`)
          t.ok(own.status < 400 || own.status === 422, `${name} is served: ${own.status}`)
        } else {
          t.ok([400, 404, 405].includes(own.status), `${name} is missing in the runtime: ${own.status}`)
          t.ok([400, 404, 405].includes(through.status), `${name} is missing through the gateway: ${through.status}`)
        }
      }
    })

    void test(`${version}, ${mode}: a list has the threads of its caller`, LIMIT, async (t) => {
      const { base, alice, bob, gateway } = await start(t, version, mode)
      await gateway.ready()
      const [one, other] = [crypto.randomUUID(), crypto.randomUUID()]
      await call(`${base}/agent/remote/run`, { token: alice, body: runInput(one) })
      await call(`${base}/agent/remote/run`, { token: bob, body: runInput(other) })
      const list = await call(`${base}/threads?agentId=remote`, { token: alice })
      const route = ROUTES.find(({ id }) => id === 'threads/list') as Route
      if (!serves(contract, mode, route)) t.equal(list.status, 404)
      else if (version === '1.54.1') t.equal(list.status, 422, 'it needs the platform')
      else t.match([list.status, list.json], [200, { threads: [{ id: one }] }])
      t.notMatch(list.text, other)
    })

    void test(
      `${version}, ${mode}: verify finds threads from before where histories are served, and refuses all elsewhere`,
      LIMIT,
      async (t) => {
        const { base, bob, runtime, gateway } = await start(t, version, mode, { ownership: { unknownThread: 'verify' } })
        const old = crypto.randomUUID()
        const run = ROUTES.find(({ id }) => id === 'agent/run') as Route
        t.equal((await askDirectly(runtime, mode, run, old)).status, 200)
        const histories = ROUTES.filter(({ id }) => ['threads/messages', 'threads/events', 'threads/state'].includes(id))
        const canTell = histories.every((route) => serves(contract, mode, route))
        if (!canTell) await until(() => gateway.readiness.pending().has('unknownThread'))
        else await gateway.ready()
        const taken = await call(`${base}/agent/remote/run`, { token: bob, body: runInput(old) })
        t.same([taken.status, codeOf(taken)], [403, 'not-owner'])
        const fresh = await call(`${base}/agent/remote/run`, { token: bob, body: runInput(crypto.randomUUID()) })
        t.equal(fresh.status, canTell ? 200 : 403)
      },
    )

    void test(`${version}, ${mode}: whose headers reach an agent`, LIMIT, async (t) => {
      const { base, agent, alice, gateway } = await start(t, version, mode, { forwardHeaders: ['x-server', 'x-tenant'] })
      await gateway.ready()
      const headers = { 'x-server': 'caller', 'x-tenant': 'caller', 'x-other': 'caller', cookie: 'a=b' }
      const run = await call(`${base}/agent/remote/run`, { token: alice, body: runInput(crypto.randomUUID()), headers })
      t.equal(run.status, 200)
      const agentWins = contract.headers.winner === 'agent'
      t.same(
        ['authorization', 'x-server', 'x-tenant', 'x-other', 'cookie'].map((name) => agent.headers[name]),
        [agentWins ? 'Bearer agent' : `Bearer ${alice}`, agentWins ? 'agent' : 'caller', 'caller', undefined, undefined],
      )
      const warned = gateway.lines.some(({ msg }) => String(msg).startsWith('forwardHeaders names x-* headers'))
      t.equal(warned, !agentWins, 'the gateway warns where those of callers win')
    })
  }
}
