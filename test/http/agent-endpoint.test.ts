/** A self-hosted agent in front: what of a request reaches it, what does not, and how its streams pass and end. */
import { test, type Test } from 'tap'
import { eventBytes, MEDIA_TYPES } from '../../examples/agent-client.ts'
import { AG_UI, VERSIONS } from '../../testing/support/agui-versions.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { owners } from '../../testing/support/rows.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'

const EVENTS = [
  { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'hello' },
]

interface Scene extends GatedUpstream {
  readonly agent: Upstream
  readonly url: string
}

async function scene(t: Test, answering: Answering = events(...EVENTS), options: GatedOptions = {}): Promise<Scene> {
  const agent = await startUpstream(answering)
  t.teardown(() => agent.close())
  const { agents, ...config } = (options.config ?? {}) as { agents?: object }
  const first = await gated(t, undefined, {
    ...options,
    config: { agents: { research: { url: agent.url, ...agents } }, ...config },
  })
  return { ...first, agent, url: `${first.gateway.url}/agents/research` }
}

void test('a run is POSTed to the root path of the agent, with what of its body passes and what the caller asks for', async (t) => {
  const { url, alice, agent } = await scene(t)
  const answer = await call(url, {
    token: alice,
    headers: { accept: MEDIA_TYPES.binary, 'x-user-id': 'olga', cookie: 'a=b' },
    body: { ...runInput('t1'), method: 'info', forwardedProps: { config: { user: 'olga' }, toolChoice: 'auto' } },
  })
  t.equal(answer.status, 200)
  const [request] = agent.requests
  t.match(request, { method: 'POST', target: '/', json: { threadId: 't1', forwardedProps: { toolChoice: 'auto' } } })
  t.notMatch(request?.json, { method: 'info' })
  t.same((request?.json as { forwardedProps: object }).forwardedProps, { toolChoice: 'auto' })
  t.same(request?.headers.get('accept'), [MEDIA_TYPES.binary])
  t.same(request?.headers.get('authorization'), [`Bearer ${alice}`])
  for (const name of ['x-user-id', 'cookie']) t.notOk(request?.headers.has(name), name)
})

void test('nothing but a run with a thread id goes to an agent', async (t) => {
  const { url, alice, agent } = await scene(t)
  for (const [what, reply, status, code] of [
    ['no token', await call(url, { body: runInput('t1') }), 401, 'credential-missing'],
    ['GET', await call(url, { token: alice }), 405, 'method-not-allowed'],
    ['DELETE', await call(url, { method: 'DELETE', token: alice }), 405, 'method-not-allowed'],
    ['HEAD', await call(url, { method: 'HEAD', token: alice }), 405, undefined],
    ['no body', await call(url, { method: 'POST', token: alice }), 400, 'body-malformed'],
    ['an envelope', await call(url, { token: alice, body: { method: 'info' } }), 400, 'thread-id-invalid'],
    ['no thread', await call(url, { token: alice, body: { messages: [] } }), 400, 'thread-id-invalid'],
    ['an empty thread', await call(url, { token: alice, body: runInput('') }), 400, 'thread-id-invalid'],
    ['a path for a thread', await call(url, { token: alice, body: runInput('../t1') }), 400, 'thread-id-invalid'],
    ['below it', await call(`${url}/info`, { token: alice }), 404, 'not-found'],
    [
      'another content type',
      await call(url, { token: alice, headers: { 'content-type': 'text/plain' }, body: runInput('t1') }),
      415,
    ],
  ] as const) {
    t.equal(reply.status, status, what)
    if (code !== undefined) t.equal(codeOf(reply), code, what)
    if (status === 405) t.equal(reply.headers.get('allow'), 'POST')
  }
  t.same(agent.requests, [])
})

void test("a thread is its first runner's, and an agent that refuses leaves no row", async (t) => {
  const { url, alice, bob, agent, gateway } = await scene(t)
  agent.answer(json({ error: 'no' }, 400))
  t.equal((await call(url, { token: bob, body: runInput('t1') })).status, 400)
  t.same(owners(gateway.folder), [])
  agent.answer(events(...EVENTS))
  t.equal((await call(url, { token: alice, body: runInput('t1') })).status, 200)
  const foreign = await call(url, { token: bob, body: runInput('t1') })
  t.same([foreign.status, codeOf(foreign)], [403, 'not-owner'])
  t.same(owners(gateway.folder), ['t1=corp:alice'])
  t.equal(agent.requests.length, 2)
})

void test('a policy speaks of an agent by its key', async (t) => {
  const policy = `version: 1
rules:
  - { routes: [agent/run], agents: [research], allow: [signed-in], roles: [researcher], threads: [own, unknown] }
`
  const { url, alice, signer, agent } = await scene(t, undefined, { policy })
  const refused = await call(url, { token: alice, body: runInput('t1') })
  t.same([refused.status, codeOf(refused)], [403, 'not-allowed'])
  t.equal((await call(url, { token: signer.sign('rita', { role: 'researcher' }), body: runInput('t1') })).status, 200)
  t.equal(agent.requests.length, 1)
})

void test('an owner shares a thread of an agent as any other', async (t) => {
  const { url, alice, bob, agent } = await scene(t, undefined, { policy: OWNERS_SHARE })
  await call(url, { token: alice, body: runInput('t1') })
  const grants = `${url}/threadwarden/threads/t1/grants`
  t.equal((await call(grants, { token: alice, body: { user: 'corp:bob', right: 'write' } })).status, 201)
  t.equal((await call(url, { token: bob, body: runInput('t1') })).status, 200)
  t.equal((await call(grants, { method: 'DELETE', token: alice, body: { user: 'corp:bob' } })).status, 204)
  t.equal((await call(url, { token: bob, body: runInput('t1') })).status, 403)
  t.equal(agent.requests.length, 2)
})

void test('a binary stream passes byte by byte, with its type, and nothing is put into it', async (t) => {
  const all = Buffer.concat(EVENTS.map((event) => eventBytes(event as never, 'binary')))
  const { url, alice } = await scene(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': MEDIA_TYPES.binary }).end(all),
  )
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json', accept: MEDIA_TYPES.binary },
    body: JSON.stringify(runInput('t1')),
  })
  t.equal(answer.headers.get('content-type'), MEDIA_TYPES.binary)
  t.equal(answer.headers.get('x-accel-buffering'), 'no')
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(all))
})

for (const [version, asked] of VERSIONS.flatMap((one) => (['events', 'binary'] as const).map((form) => [one, form] as const))) {
  void test(`AG-UI ${version}: a stream of ${asked} that is ended by rule ends with an event that says why`, async (t) => {
    const { eventBytes, eventsIn } = AG_UI[version]
    const credential = 'c'.repeat(40)
    const begun: Answering = (_request, response) => {
      response.writeHead(200, { 'content-type': MEDIA_TYPES[asked] })
      for (const event of EVENTS) response.write(eventBytes(event, asked))
    }
    const { url, alice, gateway, agent } = await scene(t, begun, { config: { admin: { port: 0, credential } } })
    const answer = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json', accept: MEDIA_TYPES[asked] },
      body: JSON.stringify(runInput('t1')),
    })
    const reader = answer.body!.getReader()
    const first = await reader.read()
    await call(`${gateway.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } })
    const pieces = [Buffer.from(first.value as Uint8Array)]
    for (let next = await reader.read(); !next.done; next = await reader.read())
      pieces.push(Buffer.from(next.value as Uint8Array))
    const read = await eventsIn(Uint8Array.from(Buffer.concat(pieces)), asked)
    t.match(read.at(-1), { type: 'RUN_ERROR', code: 'credential-invalid' })
    await until(() => agent.requests[0]?.left() === true)
  })
}

void test('in the middle of a binary event a stream is broken off, so that nobody takes it for a whole one', async (t) => {
  const credential = 'c'.repeat(40)
  const part = eventBytes(EVENTS[1] as never, 'binary').subarray(0, 9)
  const { url, alice, gateway } = await scene(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': MEDIA_TYPES.binary }).write(part),
    { config: { admin: { port: 0, credential } } },
  )
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput('t1')),
  })
  const whole = answer.arrayBuffer()
  await call(`${gateway.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } })
  await t.rejects(whole)
})

void test('an agent that does not answer is 502, and its upstream neighbour none the worse', async (t) => {
  const { url, base, alice, agent, gateway } = await scene(t)
  await agent.close()
  const answer = await call(url, { token: alice, body: runInput('t1') })
  t.same([answer.status, codeOf(answer)], [502, 'upstream-unreachable'])
  t.same(owners(gateway.folder), [], 'nothing was sent: no row stays')
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
})
