/** `explain` takes the way of a request with every header that may pass: none of them changes what the gateway would decide. */
import { test } from 'tap'
import { openIdentity } from '../../src/snapshot/snapshot.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { explain } from '../../src/tools/simulate/explain.ts'
import { call } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { makeSigner } from '../../testing/support/tokens.ts'

for (const name of ['user-agent', 'traceparent', 'authorization', 'content-type']) {
  void test(`explain agrees with the gateway where forwardHeaders names ${name}, which passes anyway`, async (t) => {
    const scene = await gated(
      t,
      (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"agents":{}}'),
      { config: { forwardHeaders: [name] } },
    )
    const prepared = prepare(scene.gateway.file, {})
    if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
    const { config, policy, sources } = prepared.value
    const run = { threadId: `t-${name}`, runId: 'r', messages: [], tools: [], state: {}, context: [], forwardedProps: {} }
    const answer = await call(`${scene.base}/agent/default/run`, { token: scene.alice, body: run })
    t.equal(answer.status, 200, 'the gateway')
    const { outcome } = await explain(
      {
        method: 'POST',
        target: '/api/copilotkit/agent/default/run',
        presented: { kind: 'token', token: scene.alice },
        body: Buffer.from(JSON.stringify(run)),
        record: null,
        upstreamHistory: 'none',
      },
      { config, policy, identity: openIdentity(config.identity, sources, Date.now), clock: Date.now },
    )
    t.match(outcome, { outcome: 'permitted' }, 'explain')
  })
}

void test('explain takes no request for a preflight because of headers that may pass', async (t) => {
  const config = { forwardHeaders: ['origin', 'access-control-request-method'], cors: { origins: ['*'] } }
  const scene = await gated(t, undefined, { config })
  const prepared = prepare(scene.gateway.file, {})
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const { outcome } = await explain(
    {
      method: 'OPTIONS',
      target: '/api/copilotkit/info',
      presented: { kind: 'token', token: scene.alice },
      body: Buffer.alloc(0),
      record: null,
      upstreamHistory: 'none',
    },
    {
      ...prepared.value,
      identity: openIdentity(prepared.value.config.identity, prepared.value.sources, Date.now),
      clock: Date.now,
    },
  )
  t.match(outcome, { outcome: 'refused', reason: 'method-not-allowed' })
})

void test('explain sends a token in the cookie if its issuer accepts it nowhere else, and says from which page', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const corp = { ...(signer.authentication.issuers['corp'] as object), credential: { cookie: 'session' } }
  const scene = await gated(t, undefined, {
    signer,
    config: {
      authentication: { issuers: { corp } },
      listen: { host: '127.0.0.1', port: 0, publicOrigins: ['https://chat.example.com'] },
      upstream: { forwardCookies: ['session'] },
    },
  })
  const prepared = prepare(scene.gateway.file, {})
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const { config, policy, sources } = prepared.value
  const identity = openIdentity(config.identity, sources, Date.now)
  for (const presented of [
    { kind: 'token', token: scene.alice },
    { kind: 'claims', claims: { iss: 'https://login.example.com/', sub: 'alice' }, issuer: undefined },
  ] as const) {
    const question = { method: 'GET', target: '/api/copilotkit/info', presented, body: Buffer.alloc(0) }
    const { outcome, sent, notes } = await explain(
      { ...question, record: null, upstreamHistory: 'none' },
      { config, policy, identity, clock: Date.now },
    )
    t.match(outcome, { outcome: 'permitted' }, presented.kind)
    t.match(notes.join(), /in the cookie session, from a page of https:\/\/chat\.example\.com/)
    const header = (name: string) => sent?.headers.find((one) => one.name === name)
    t.same([header('cookie'), header('authorization')], [{ name: 'cookie', value: null }, undefined], 'and shows no token')
  }
})
