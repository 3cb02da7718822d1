/** Of a body the keys of its route pass, and of forwardedProps what the policy names: all else ends here and is counted. */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { SHIPPED_POLICY } from '../../src/prepare.ts'
import { events, json } from '../support/upstream.ts'

const SHIPPED = readFileSync(SHIPPED_POLICY, 'utf8')

/** The shipped policy with another line at its end. */
function policyWith(from: string, to: string): string {
  if (!SHIPPED.includes(from)) throw new Error(`the shipped policy has no ${from}`)
  return SHIPPED.replace(from, to)
}

void test('unknown keys are dropped, and with them what makes an envelope', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events())
  const body = runInput('t1', 'hello', {
    method: 'agent/run',
    params: { threadId: 't2' },
    body: { threadId: 't2' },
    thread_id: 't2',
    ThreadId: 't2',
    userId: 'bob',
    config: {},
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
  t.match(text, 'threadwarden_dropped_total{kind="body-key"} 7')
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

const PROPS = {
  toolChoice: 'auto',
  command: { resume: 'yes', goto: 'node', update: {} },
  a2uiAction: { a: 1 },
  config: { configurable: { thread_id: 't2' } },
  metadata: { owner: 'bob' },
  webhook: 'http://evil.example',
}

void test('of forwardedProps toolChoice and command.resume pass', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', 'x', { forwardedProps: PROPS }) })
  const { forwardedProps } = upstream.requests[0]?.json as { forwardedProps: Record<string, unknown> }
  t.same(forwardedProps, { toolChoice: 'auto', command: { resume: 'yes' } })
  for (let count = 0; count < 3; count += 1) {
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', 'x', { forwardedProps: PROPS }) })
  }
  const said = gateway.lines.filter((line) => String(line['msg']).startsWith('this part of a body does not pass'))
  t.same(
    said.map((line) => line['name']).sort(),
    [
      'forwardedProps.a2uiAction',
      'forwardedProps.command.goto',
      'forwardedProps.command.update',
      'forwardedProps.config',
      'forwardedProps.metadata',
      'forwardedProps.webhook',
    ],
    'each name is logged once',
  )
})

void test('a name with a dot is no way to what it names', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, {
    token: alice,
    body: runInput('t1', 'x', { forwardedProps: { 'command.resume': 'x' } }),
  })
  t.same((upstream.requests[0]?.json as { forwardedProps: unknown }).forwardedProps, {})
})

void test('the policy may let more of them pass', async (t) => {
  const policy = policyWith('forwardedProps: []', 'forwardedProps: [{ name: a2uiAction }, { name: metadata, unsafe: true }]')
  const { base, alice, upstream } = await gated(t, events(), { policy })
  await call(`${base}/agent/default/run`, {
    token: alice,
    body: runInput('t1', 'x', { forwardedProps: PROPS }),
  })
  t.same((upstream.requests[0]?.json as { forwardedProps: unknown }).forwardedProps, {
    toolChoice: 'auto',
    command: { resume: 'yes' },
    a2uiAction: { a: 1 },
    metadata: { owner: 'bob' },
  })
})

void test('forwardedProps of another type are an empty object', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  for (const forwardedProps of [null, [], ['config'], 'config', 1]) {
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', 'x', { forwardedProps }) })
    t.same((upstream.requests.at(-1)?.json as { forwardedProps: unknown }).forwardedProps, {})
  }
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
