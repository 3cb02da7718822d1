/** Upstreams that come and go while the gateway runs: what is served, what ends, and what goes on. */
import { test, type Test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { events, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { startScene, type Scene } from './scene.ts'

/** A stream that has begun and does not end by itself. */
const begun: Answering = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')

interface Around extends Scene {
  readonly agent: Upstream
  readonly url: string
  /** Writes the configuration with these upstreams, and puts it in force. */
  readonly put: (changes: Parameters<Scene['write']>[0]) => Promise<string>
}

async function around(t: Test): Promise<Around> {
  const scene = await startScene(t)
  const agent = await startUpstream(events({ type: 'RUN_STARTED' }))
  t.teardown(() => agent.close())
  return {
    ...scene,
    agent,
    url: `${scene.gateway.url}/agents/research`,
    put: async (changes) => {
      scene.write(changes)
      return (await scene.gateway.reload('test')).outcome
    },
  }
}

void test('an agent that is added is served at once, and one that is taken out no more; the others never notice', async (t) => {
  const { agent, url, base, upstream, token, put } = await around(t)
  const alice = token('alice')
  const own = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t0') })
  t.equal(own.status, 200)
  const connections = upstream.connections()
  t.equal((await call(url, { token: alice, body: runInput('t1') })).status, 404)
  t.equal(await put({ 'agents.research': { url: agent.url } }), 'reloaded')
  t.equal((await call(url, { token: alice, body: runInput('t1') })).status, 200)
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t0') })).status, 200)
  t.equal(upstream.connections(), connections, 'the connection of the other one was kept')
  t.equal(await put({}), 'reloaded')
  const gone = await call(url, { token: alice, body: runInput('t1') })
  t.same([gone.status, codeOf(gone)], [404, 'not-found'])
  t.equal(await put({ 'agents.research': { url: agent.url } }), 'reloaded')
  const foreign = await call(url, { token: token('bob'), body: runInput('t1') })
  t.equal(foreign.status, 403, 'whose its threads are was not forgotten')
})

void test('streams of an upstream that is taken out end and say why, and those of others go on', async (t) => {
  const { agent, url, base, upstream, token, put } = await around(t)
  const alice = token('alice')
  await put({ 'agents.research': { url: agent.url } })
  agent.answer(begun)
  upstream.answer(begun)
  const ended = call(url, { token: alice, body: runInput('t1') })
  const kept = call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  await Promise.all([agent.arrived(1), upstream.arrived(1)])
  await put({})
  t.match((await ended).text, /"code":"not-allowed"/)
  t.equal(upstream.requests[0]?.left(), false)
  await until(() => agent.requests[0]?.left() === true)
  await put({ 'authentication.issuers.corp.audiences': ['others'] })
  t.match((await kept).text, /"type":"RUN_ERROR"/, 'until its own rules change')
})

void test('a key that becomes a runtime of its own takes over no stream of the agent’s', async (t) => {
  const { agent, url, token, put } = await around(t)
  await put({ 'agents.research': { url: agent.url } })
  agent.answer(begun)
  const open = call(url, { token: token('alice'), body: runInput('t1') })
  await agent.arrived(1)
  await put({ 'upstreams.research': { url: agent.url, basePath: '/api', publicPath: '/agents/research' } })
  t.match((await open).text, /"code":"not-allowed"/)
})

void test('an upstream that does not answer yet is said by name, and no longer when it is taken out', async (t) => {
  const { put, health, base, token } = await around(t)
  const away = { url: 'http://127.0.0.1:9', basePath: '/api', publicPath: '/legal' }
  t.equal(await put({ 'upstreams.legal': away }), 'reloaded')
  await until(async () => (await health('/readyz')).text.includes('upstream:legal'))
  t.equal((await call(`${base}/info`, { token: token('alice') })).status, 200)
  t.equal(await put({}), 'reloaded')
  t.equal((await health('/readyz')).status, 200)
})

void test('upstreams that would be in each other’s way change nothing', async (t) => {
  const { agent, url, token, put } = await around(t)
  await put({ 'agents.research': { url: agent.url } })
  t.equal(await put({ 'agents.research': { url: agent.url, publicPath: '/api/copilotkit/x' } }), 'refused')
  t.equal((await call(url, { token: token('alice'), body: runInput('t1') })).status, 200)
})
