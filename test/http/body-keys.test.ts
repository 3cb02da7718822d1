/** Of a body the keys of its route pass: all else ends here and is counted. */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { DEFAULT_POLICY } from '../../src/config/policy-file.ts'
import { events, json } from '../../testing/support/upstream.ts'

const SHIPPED = readFileSync(DEFAULT_POLICY.path, 'utf8')

/** The shipped policy with another line at its end. */
function policyWith(from: string, to: string): string {
  if (!SHIPPED.includes(from)) throw new Error(`the shipped policy has no ${from}`)
  return SHIPPED.replace(from, to)
}

void test('unknown keys are dropped and counted', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events())
  const body = runInput('t1', 'hello', {
    userId: 'bob',
    config: {},
    protocolVersion: 2,
    parentRunId: 'r0',
    resume: [],
  })
  await call(`${base}/agent/default/run`, { token: alice, body })
  const arrived = upstream.requests[0]?.json as Record<string, unknown>
  t.same(Object.keys(arrived).sort(), [
    'context',
    'forwardedProps',
    'messages',
    'parentRunId',
    'resume',
    'runId',
    'state',
    'threadId',
    'tools',
  ])
  t.same(arrived['messages'], body['messages'])
  const text = (await call(`${gateway.healthUrl}/metrics`)).text
  t.match(text, 'threadwarden_dropped_total{kind="body-key"} 3')
})

void test('a protocol version passes if it is one, and is dropped otherwise', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  const sent = [
    '1.0',
    '12.34',
    '1',
    '1.0.0',
    '1.0 ',
    '',
    '1.0\n',
    '١.٠',
    '12345.0',
    1,
    null,
    ['1.0'],
    { '1.0': true },
    'x'.repeat(200_000),
  ]
  for (const [at, protocolVersion] of sent.entries()) {
    await call(`${base}/agent/default/run`, { token: alice, body: runInput(`t${at}`, 'x', { protocolVersion }) })
  }
  const arrived = upstream.requests.map(({ json: body }) => (body as { readonly protocolVersion?: unknown }).protocolVersion)
  t.same(arrived, ['1.0', '12.34', ...sent.slice(2).map(() => undefined)])
})

void test('each route has its own keys', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', 'x', { lastSeenEventId: '1' }) })
  await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1', 'x', { lastSeenEventId: '1' }) })
  upstream.answer(json({}))
  await call(`${base}/threads/t1`, {
    method: 'PATCH',
    token: alice,
    body: { name: 'n', agentId: 'default', archived: true, id: 't2', userId: 'bob' },
  })
  await call(`${base}/annotate`, { token: alice, body: { threadId: 't1', type: 'x', payload: { any: [1] }, userId: 'bob' } })
  const [run, connect, patch, annotate] = upstream.requests.map((request) => request.json as Record<string, unknown>)
  t.notOk('lastSeenEventId' in run!)
  t.equal(connect!['lastSeenEventId'], '1')
  t.same(patch, { name: 'n', agentId: 'default', archived: true })
  t.same(annotate, { threadId: 't1', type: 'x', payload: { any: [1] } })
})

void test('state passes or is dropped as the policy says', async (t) => {
  const state = { step: 1 }
  for (const [policy, expected] of [
    [SHIPPED, state],
    [policyWith('state: pass', 'state: drop'), undefined],
  ] as const) {
    const { base, alice, upstream } = await gated(t, events(), { policy })
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', 'x', { state }) })
    t.same((upstream.requests[0]?.json as { state?: unknown }).state, expected)
  }
})
