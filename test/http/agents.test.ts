/** Agents that not everybody may name, and what of a request reaches them: by rule of the policy, for every transport. */
import { startStack } from '../../testing/support/stack.ts'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { events, INFO, json, type Answering } from '../../testing/support/upstream.ts'

/** Finance is for those with its permission; others don't hear of it. */
const FINANCE = `version: 1
rules:
  - { routes: [info], allow: [signed-in] }
  - { routes: [agent/run, agent/connect, agent/suggest], allow: [signed-in], threads: [own, unknown] }
  - { routes: [agent/stop], allow: [signed-in], threads: [own] }
  - name: finance
    routes: [agent/run, agent/connect, agent/suggest, agent/stop]
    agents: [finance]
    deny: [signed-in]
    unless: { permissions: { any: [finance] } }
`

const AGENTS = { default: { name: 'default' }, finance: { name: 'finance' }, constructor: { name: 'odd' } }

const runtime =
  (transport: string): Answering =>
  (request, response) => {
    if (!request.target.endsWith('/info')) return events({ type: 'RUN_FINISHED' })(request, response)
    const single = transport === 'single-route' ? { singleRoute: { resourceOperations: true } } : {}
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ ...INFO, ...single, agents: AGENTS, more: 1 }))
  }

void testEachPair(
  'an agent is for those whom the rules let use it, on every route that names one, and in /info',
  async (t, pair) => {
    const { base, call, alice, bob, signer, upstream } = await gated(t, runtime(pair.upstream), { pair, policy: FINANCE })
    const fiona = signer.sign('fiona', { permissions: ['finance'] })
    const agentsOf = async (token: string): Promise<unknown> =>
      Object.keys(((await call(`${base}/info`, { token })).json as { agents: object }).agents)
    t.same(await agentsOf(alice), ['default'])
    t.same(await agentsOf(fiona), ['default', 'finance'])
    t.match((await call(`${base}/info`, { token: alice })).json, { version: '1.75.0', more: 1 }, 'the rest is as it was')
    t.equal((await call(`${base}/agent/finance/run`, { token: fiona, body: runInput('f-1') })).status, 200)
    t.equal((await call(`${base}/agent/default/run`, { token: bob, body: runInput('b-1') })).status, 200)
    const before = upstream.requests.length
    for (const path of ['agent/finance/run', 'agent/finance/connect', 'agent/finance/suggest']) {
      for (const thread of ['b-1', 'b-new']) {
        const refused = await call(`${base}/${path}`, { token: bob, body: runInput(thread) })
        t.same([refused.status, codeOf(refused)], [403, 'not-allowed'], path)
      }
    }
    const stopped = await call(`${base}/agent/finance/stop/b-1`, { method: 'POST', token: bob, body: {} })
    t.same([stopped.status, codeOf(stopped)], [403, 'not-allowed'])
    t.equal(upstream.requests.length, before, 'nothing reaches upstream')
  },
)

void testEachPair('/info with another status tells of no agent that is not theirs', async (t, pair) => {
  const { base, call, alice, upstream } = await gated(t, runtime(pair.upstream), { pair, policy: FINANCE })
  for (const status of [201, 203, 206, 207]) {
    upstream.answer(json({ ...INFO, agents: AGENTS }, status))
    const info = await call(`${base}/info`, { token: alice })
    t.same([info.status, codeOf(info)], [502, 'upstream-unusable'])
    t.notMatch(info.text, /finance/)
  }
  upstream.answer(json({ error: 'down for repair' }, 503))
  t.match((await call(`${base}/info`, { token: alice })).json, { error: 'down for repair' }, 'an error passes as it is')
})

void testEachPair('agents that are opened by name alone: no other can be used, and /info lists no other', async (t, pair) => {
  const policy = `version: 1
rules:
  - { routes: [info], allow: [signed-in] }
  - { routes: [agent/run, agent/connect], agents: [finance], allow: [signed-in], roles: [analyst], threads: [own, unknown] }
`
  const { base, call, alice, signer } = await gated(t, runtime(pair.upstream), { pair, policy })
  const anna = signer.sign('anna', { role: 'analyst' })
  const agentsOf = async (token: string): Promise<unknown> =>
    Object.keys(((await call(`${base}/info`, { token })).json as { agents: object }).agents)
  t.same(await agentsOf(anna), ['finance'])
  t.same(await agentsOf(alice), [])
  t.equal((await call(`${base}/agent/finance/run`, { token: anna, body: runInput('a-1') })).status, 200)
  for (const agent of ['default', 'Finance', 'finance.', 'finance%20']) {
    const refused = await call(`${base}/agent/${agent}/run`, { token: anna, body: runInput('a-1') })
    t.ok(refused.status === 403 || refused.status === 400, `${agent}: ${refused.status}`)
  }
  const large = runInput('a-2', 'x'.repeat(2 * 1024 * 1024))
  t.equal(
    (await call(`${base}/agent/finance/run`, { token: anna, body: large })).status,
    200,
    'also with what is large for others',
  )
})

void testEachPair('what passes is said by the first rule that allows and fits the thread', async (t, pair) => {
  const policy = `version: 1
tools: drop
state: drop
rules:
  - { routes: [info], allow: [signed-in] }
  - routes: [agent/run]
    allow: [signed-in]
    roles: [analyst]
    threads: [own, unknown]
    tools: [showChart]
    state: pass
    forwardedProps: [{ name: chart }]
    headers: [x-theme]
  - routes: [agent/run]
    allow: [signed-in]
    threads: [own, unknown]
    headers: []
`
  const config = { forwardHeaders: ['x-theme', 'x-tenant'] }
  const { base, call, alice, signer, upstream } = await gated(t, events({ type: 'RUN_FINISHED' }), { pair, policy, config })
  const anna = signer.sign('anna', { role: 'analyst' })
  const tools = ['showChart', 'deleteAll'].map((name) => ({ name, description: '', parameters: {} }))
  const more = { tools, state: { a: 1 }, forwardedProps: { chart: 1, other: 2, toolChoice: 'auto' } }
  const headers = { 'x-theme': 'dark', 'x-tenant': 'acme' }
  const sent = async (token: string, thread: string) => {
    t.equal((await call(`${base}/agent/default/run`, { token, headers, body: runInput(thread, 'hello', more) })).status, 200)
    const { json, headers: passed } = upstream.requests.at(-1)!
    const { tools: kept, state, forwardedProps } = json as { tools: { name: string }[]; state?: unknown; forwardedProps: object }
    return [kept.map(({ name }) => name), state, forwardedProps, passed.get('x-theme'), passed.get('x-tenant')]
  }
  t.same(await sent(anna, 'a-1'), [['showChart'], { a: 1 }, { chart: 1, toolChoice: 'auto' }, ['dark'], undefined])
  t.same(await sent(alice, 'b-1'), [[], undefined, { toolChoice: 'auto' }, undefined, undefined])
})

void testEachPair('with the real runtime: an agent that is denied is not in /info, and can not be run', async (t, pair) => {
  const policy = FINANCE.replaceAll('finance]', 'remote]').replace('any: [remote]', 'any: [finance]')
  const stack = await startStack(t, { pair, policy })
  const { base, call, tokens } = stack
  const info = (await call(`${base}/info`, { token: tokens.alice })).json as { agents: object }
  t.same(Object.keys(info.agents), ['default'])
  const refused = await call(`${base}/agent/remote/run`, { token: tokens.alice, body: runInput('t-1') })
  t.same([refused.status, codeOf(refused)], [403, 'not-allowed'])
  const run = await call(`${base}/agent/default/run`, { token: tokens.alice, body: runInput('t-1') })
  t.match([run.status, run.text], [200, /RUN_FINISHED/])
})
