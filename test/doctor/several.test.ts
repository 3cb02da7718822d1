/** Several upstreams: each is examined like the first one, under names that end with its key; agents as far as they can be. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { startRuntime } from '../../examples/runtime.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { configFile } from '../../testing/support/program.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { makeFolder, startPrepared } from '../../testing/support/gateway.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { INFO, json, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { examined, hush } from './examination.ts'
import { startScene } from './gateway-scene.ts'

const OF_A_RUNTIME = ['reachable', 'clock', 'runtime', 'version', 'routes', 'debug', 'cors', 'exposure', 'histories', 'threads']
const LEGAL = { basePath: '/api/copilotkit', publicPath: '/legal/copilotkit' }

/** An upstream that is gone with the test. */
async function upstreamOf(t: Test, answering: Answering = json(INFO)): Promise<Upstream> {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  return upstream
}

/** Lists one thread, and answers everything else as a runtime does. */
function listingOf(id: string): Answering {
  return (request, response) => json(/\/threads(?:\?|$)/.test(request.target) ? { threads: [{ id }] } : INFO)(request, response)
}

/** A gateway before agents alone, with what a configuration says that has its ports. */
async function startAgents(t: Test, agents: object) {
  const signer = makeSigner()
  const alone: Changes = { upstream: undefined, 'upstream.url': undefined, authentication: signer.authentication, agents }
  const { file, folder } = configFile(t, alone)
  const gateway = await startPrepared(() => prepare(file, process.env), { folder, file, remove: () => {} })
  t.teardown(async () => {
    await gateway.close()
    signer.remove()
  })
  const port = (url: string): number => Number(new URL(url).port)
  const changes = { ...alone, 'listen.port': port(gateway.url), 'health.port': port(gateway.healthUrl) }
  return { gateway, signer, changes }
}

void test('a gateway before two runtimes and an agent that are as they should be', async (t) => {
  hush(t)
  const [first, legal] = [await startRuntime(), await startRuntime({ mode: 'single-route' })]
  t.teardown(async () => {
    await first.close()
    await legal.close()
  })
  const agent = await upstreamOf(t, json({}, 405))
  const { gateway, signer, changes } = await startScene(t, first.url, {
    upstreams: { legal: { url: legal.url, ...LEGAL } },
    agents: { research: { url: agent.url } },
  })
  await gateway.ready()
  const { all, of } = await examined(t, changes, { wishes: { token: signer.sign('alice') } })
  for (const name of OF_A_RUNTIME) {
    const findings = all.filter(({ check }) => check.startsWith(`upstream.${name}`))
    t.same([...new Set(findings.map(({ check }) => check))], [`upstream.${name}`, `upstream.${name}:legal`])
  }
  t.match(of('upstream.runtime:legal'), { level: 'ok', message: /^a single-route runtime/ })
  t.match(of('upstream.runtime'), { level: 'ok', message: /^a multi-route runtime/ })
  t.match(of('agent.reachable:research'), { level: 'ok', message: `${agent.url} answers` })
  t.match(of('agent.clock:research'), { level: 'ok' })
  for (const key of ['', ':legal', ':research'])
    t.match(of(`gateway.authentication${key}`), { level: 'ok', message: 'requests without a token get 401' })
  for (const key of ['', ':legal']) t.match(of(`gateway.caller${key}`), { level: 'ok' })
  for (const check of ['store.file', 'issuers.clock', 'gateway.ready', 'gateway.preflight', 'gateway.run']) of(check)
  t.notOk(
    all.some(({ check }) => /^(?:store|issuers|upstream|gateway\.(?:ready|preflight|run|caller))\.?.*:research/.test(check)),
  )
  t.same(
    agent.requests.map(({ method }) => method),
    ['GET'],
    'nothing was run',
  )
})

void test('of a further upstream that is not as it should be the settings are named that are its own', async (t) => {
  const wrong = await upstreamOf(t, json({}, 404))
  wrong.answerQuestions(json({}, 404))
  const { of } = await examined(t, {
    'upstreams.legal': { url: 'http://127.0.0.1:2', ...LEGAL },
    'upstreams.wrong': { url: wrong.url, ...LEGAL, publicPath: '/wrong' },
    'agents.research': { url: 'http://127.0.0.1:3' },
    'listen.port': 0,
  })
  const nothing = (port: string) => ({ level: 'problem', message: `nothing listens on http://127.0.0.1:${port}` })
  t.match(of('upstream.reachable'), { ...nothing, remedy: 'start the runtime, or correct upstream.url' })
  t.match(of('upstream.reachable:legal'), { ...nothing('2'), remedy: 'start the runtime, or correct upstreams.legal.url' })
  t.match(of('agent.reachable:research'), { ...nothing('3'), remedy: 'start the agent, or correct agents.research.url' })
  t.match(of('agent.clock:research'), { level: 'unknown', message: /^not checked: the agent gives no answer/ })
  t.match(of('upstream.runtime:wrong'), { level: 'problem', remedy: /^correct upstreams\.wrong\.basePath/ })
  t.match(of('upstream.routes:legal'), { level: 'unknown', message: /did not show what kind of runtime it is/ })
  t.match(of('gateway.authentication:research'), { level: 'unknown', message: /its port is 0/ })
})

void test('an agent that takes connections and says nothing is a problem', async (t) => {
  const server = createServer(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { of } = await examined(t, { 'agents.research': { url } }, { wishes: { timeout: 200 } })
  t.match(of('agent.reachable:research'), { level: 'problem', message: `${url} gives no answer within 200 ms` })
})

void test('what answers strangers where an agent should be guarded is a problem', async (t) => {
  const open = await upstreamOf(t, json({}, 422))
  const { port } = new URL(open.url)
  const changes = { 'agents.research': { url: open.url }, 'listen.port': Number(port) }
  const { of } = await examined(t, changes)
  t.match(of('gateway.authentication:research'), {
    level: 'problem',
    message: 'without a token a POST answers 422, not 401',
    remedy: /agents\.research\.publicPath/,
  })
  t.match(open.requests.at(-1), { method: 'POST', target: '/agents/research', json: {} }, 'with nothing that could run')
})

void test('a configuration with agents alone is examined as far as agents can be', async (t) => {
  const agent = await upstreamOf(t, json({}, 405))
  const agents = { research: { url: agent.url }, math: { url: agent.url, path: '/math' } }
  const { gateway, changes } = await startAgents(t, agents)
  await gateway.ready()
  const { all, of } = await examined(t, { ...changes, 'cors.origins': ['https://app.example.com'] })
  for (const key of ['research', 'math']) {
    t.match(of(`agent.reachable:${key}`), { level: 'ok' })
    t.match(of(`gateway.authentication:${key}`), { level: 'ok' })
  }
  t.match(of('gateway.ready'), { level: 'ok' })
  t.match(of('gateway.preflight'), { level: 'problem', message: /answers 403$/ }, 'which was not there when it started')
  t.notOk(all.some(({ check }) => check.startsWith('upstream.') || check.startsWith('gateway.caller')))
})

void test('--url is that of the first upstream, and the others are beside it', async (t) => {
  const [first, legal, agent] = [await upstreamOf(t), await upstreamOf(t), await upstreamOf(t, json({}, 405))]
  const { base, gateway, changes } = await startScene(t, first.url, {
    upstreams: { legal: { url: legal.url, ...LEGAL } },
    agents: { research: { url: agent.url } },
  })
  await gateway.ready()
  const { of } = await examined(t, { ...changes, 'listen.port': 1 }, { wishes: { url: base } })
  for (const key of ['', ':legal', ':research']) t.match(of(`gateway.authentication${key}`), { level: 'ok' })
  const nowhere = await examined(t, changes, { wishes: { url: 'http://127.0.0.1:1/chat' } })
  for (const [key, path] of [
    ['', '/chat'],
    [':legal', '/legal/copilotkit'],
    [':research', '/agents/research'],
  ] as const)
    t.match(nowhere.of(`gateway.authentication${key}`), {
      message: `nothing listens on http://127.0.0.1:1${path}`,
      level: 'problem',
    })
})

void test('--run runs the agent that has this key, at its own path; there is none of another name without a runtime', async (t) => {
  const agent = await upstreamOf(t, async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    for (const type of ['RUN_STARTED', 'RUN_FINISHED']) {
      response.write(`data: ${JSON.stringify({ type })}\n\n`)
      await pause(600)
    }
    response.end()
  })
  const { gateway, signer, changes } = await startAgents(t, {
    other: { url: agent.url, path: '/other' },
    research: { url: agent.url },
  })
  await gateway.ready()
  const run = (agentId: string) => ({ wishes: { token: signer.sign('alice'), run: { agentId, message: 'hello' } } })
  const runs = () => agent.requests.filter(({ method }) => method === 'POST').length
  t.match((await examined(t, changes, run('research'))).of('gateway.run'), { level: 'ok' })
  t.equal(runs(), 1)
  t.match((await examined(t, changes, run('default'))).of('gateway.run'), {
    level: 'unknown',
    message: /no runtime, and no agent with this name/,
    remedy: /other, research/,
  })
  t.equal(runs(), 1)
})

void test('old threads of a further upstream are looked for where the table has none of it, by its own unknownThread', async (t) => {
  const listing = await upstreamOf(t)
  listing.answerQuestions(listingOf('old'))
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const store = await openSqliteStore(file)
  for (const scope of ['', 'gone']) await store.assign({ scope, threadId: 't' }, 'corp:alice', 1)
  await store.close()
  const { of } = await examined(t, {
    'ownership.store': `sqlite:${file}`,
    'upstream.url': listing.url,
    'upstreams.legal': { url: listing.url, ...LEGAL, basePath: '/legal' },
    'upstreams.closed': { url: listing.url, basePath: '/closed', publicPath: '/closed', unknownThread: 'deny' },
  })
  t.match(of('upstream.threads'), {
    level: 'warning',
    message: /^threads of the upstream without an owner: 1 of 1 \(for example old\)/,
  })
  t.match(of('upstream.threads:legal'), {
    level: 'warning',
    message: /^the ownership table has no thread of this upstream; threads of the upstream without an owner: 1 of 1/,
  })
  t.match(of('upstream.threads:closed'), { level: 'ok', message: /^unknownThread is deny/ })
  t.match(of('store.scopes'), { level: 'warning', message: /does not have: gone$/, remedy: /prune --scope KEY/ })
})

void test('of threads that are all where they should be nothing is said', async (t) => {
  const { all } = await examined(t, { 'agents.research': { url: 'http://127.0.0.1:3' } })
  t.notOk(all.some(({ check }) => check === 'store.scopes'))
})

void test('no header of any upstream leaves with a finding', async (t) => {
  const telling = await upstreamOf(t)
  telling.answerQuestions(json({ ...INFO, version: '1.75.0-hunter2hunter2' }))
  const further = { url: telling.url, ...LEGAL, headers: { 'x-key': 'hunter2hunter2' } }
  const { all } = await examined(t, { 'upstreams.legal': further })
  t.notMatch(JSON.stringify(all), 'hunter2')
  t.match(JSON.stringify(all), /\(hidden\)/)
})

void test('upstreams that list the same threads are one: a thread would have an owner for each of them', async (t) => {
  const [one, other] = [await upstreamOf(t), await upstreamOf(t)]
  for (const upstream of [one, other]) upstream.answerQuestions(listingOf('t-1'))
  const further = { 'upstream.url': one.url, 'upstreams.legal': { url: other.url, ...LEGAL } }
  const { of } = await examined(t, further)
  t.match(of('threads.apart:legal'), {
    level: 'problem',
    message: /threads that upstream also lists \(1\)/,
    remedy: /scope: upstream/,
  })
  other.answerQuestions(listingOf('t-2'))
  t.match((await examined(t, further)).of('threads.apart:legal'), { level: 'ok' })
  const shared = { ...further, 'upstreams.legal': { url: other.url, ...LEGAL, scope: 'upstream' } }
  t.notOk((await examined(t, shared)).all.some(({ check }) => check.startsWith('threads.apart')))
})

void test('an agent that the runtime has by the same name may be the same agent', async (t) => {
  const runtime = await upstreamOf(t)
  const agent = await upstreamOf(t)
  const { of } = await examined(t, { 'upstream.url': runtime.url, 'agents.default': { url: agent.url } })
  t.match(of('threads.apart:default'), {
    level: 'warning',
    message: /also has an agent called default/,
    remedy: /scope: upstream/,
  })
})
