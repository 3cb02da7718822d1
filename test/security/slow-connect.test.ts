/**
 * Attack: access that ends while the gateway connects to the upstream (CWE-367). A connection may take as long as
 * `timeouts.connect`, and the request that waits for it was permitted before.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { startFullBacklog } from '../../testing/support/full-backlog.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'

const KEY = { scope: '', threadId: 't1' }
const BOB = { kind: 'user', id: 'corp:bob' } as const

/** The next time that undici begins to connect. */
function connecting(): Promise<void> {
  return new Promise((resolve) => {
    const onConnect = (): void => {
      unsubscribe('undici:client:beforeConnect', onConnect)
      resolve()
    }
    subscribe('undici:client:beforeConnect', onConnect)
  })
}

/** A gateway whose connections to the upstream wait; alice has granted bob her thread. */
async function scene(t: Test, limits = {}) {
  const upstream = await startFullBacklog()
  t.teardown(() => upstream.close())
  const gate = await gateBefore(t, upstream.url, {
    config: {
      admin: { port: 0, credential: OPERATOR },
      limits,
      upstream: { transport: 'multi-route', timeouts: { connect: '60s' } },
    },
  })
  const store = await openSqliteStore(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => store.close())
  await store.assign(KEY, 'corp:alice', Date.now())
  await store.grant(KEY, 'corp:alice', { ...BOB, right: 'write', grantedBy: 'corp:alice', grantedAt: Date.now() })
  const operate = (path: string, method: string, body: object) =>
    call(`${gate.gateway.adminUrl}${path}`, { method, token: OPERATOR, body, transport: 'multi-route' })
  const granted = async () => (await store.grants(KEY, null))?.length === 1
  await until(granted)
  const run = (body: object = { ...runInput('t1'), strange: 1 }) =>
    call(`${gate.base}/agent/default/run`, { token: gate.bob, body, transport: 'multi-route' })
  const figures = async (): Promise<string> => (await fetch(`${gate.gateway.healthUrl}/metrics`)).text()
  return { upstream, gate, operate, run, figures }
}

/** With a run of bob's that is permitted and waits for its connection. */
async function waiting(t: Test, limits = {}) {
  const all = await scene(t, limits)
  const begins = connecting()
  const running = all.run()
  await begins
  return { ...all, running }
}

/** How often the decision about a route was counted, by reason. */
function decisions(figures: string, route: string): Record<string, string> {
  const lines = figures.matchAll(/^threadwarden_decisions_total\{route="([^"]*)",reason="([^"]*)"\} (.*)$/gm)
  const counted: Record<string, string> = {}
  for (const [, of, reason = '', count = ''] of lines) if (of === route) counted[reason] = count
  return counted
}

const runsIn = (requests: readonly string[]) => requests.filter((target) => target.endsWith('/run'))

void test('a run whose grant ends before there is a connection is not sent, and counts as refused', async (t) => {
  const { upstream, running, operate, figures } = await waiting(t)
  t.equal((await operate('/threads/t1/grants', 'DELETE', { user: BOB.id })).status, 204)
  upstream.accept()
  const answer = await running
  t.same([answer.status, codeOf(answer)], [403, 'not-owner'])
  t.same(runsIn(upstream.requests), [])
  t.same(decisions(await figures(), 'agent/run'), { 'thread-foreign': '1' })
})

void test('nor one whose caller is revoked', async (t) => {
  const { upstream, running, operate } = await waiting(t)
  t.equal((await operate('/revocations', 'POST', { user: BOB.id })).status, 201)
  upstream.accept()
  const answer = await running
  t.same([answer.status, codeOf(answer)], [401, 'credential-invalid'])
  t.same(runsIn(upstream.requests), [])
})

void test('one whose thread has changed in a way that leaves it allowed is sent, once, and counts once', async (t) => {
  const { upstream, running, operate, run, figures } = await waiting(t, { runs: '1/h', streams: 1 })
  t.equal((await operate('/threads/t1/grants', 'POST', { user: 'corp:carol', right: 'read' })).status, 201)
  upstream.accept()
  t.equal((await running).status, 200)
  t.equal(runsIn(upstream.requests).length, 1)
  const counted = await figures()
  t.same(decisions(counted, 'agent/run'), { permitted: '1' })
  t.match(counted, /^threadwarden_dropped_total\{kind="body-key"\} 1$/m)
  // A limit of one leaves two at first (docs/how-to/authorize/limits.md).
  t.equal((await run()).status, 200)
})

for (const [name, length] of [
  ['body', 5],
  ['large body', 300_000],
] as const) {
  void test(`and its ${name} arrives whole, although it was written for two decisions`, async (t) => {
    const { upstream, operate, run } = await scene(t)
    // Nothing is dropped from it, so it is sent as its bytes came.
    const body = runInput('t1', 'x'.repeat(length))
    const begins = connecting()
    const running = run(body)
    await begins
    t.equal((await operate('/threads/t1/grants', 'POST', { user: 'corp:carol', right: 'read' })).status, 201)
    upstream.accept()
    const answer = await running
    t.equal(answer.status, 200)
    t.equal(answer.text, `data: ${JSON.stringify(body)}\n\n`)
  })
}

void test('a recording of a caller who is revoked is not sent, and the answer says why', async (t) => {
  const { upstream, gate, operate, figures } = await scene(t)
  const form = new FormData()
  form.append('audio', new Blob(['abc'], { type: 'audio/webm' }), 'a.webm')
  const begins = connecting()
  const headers = { authorization: `Bearer ${gate.bob}` }
  const transcribing = fetch(`${gate.base}/transcribe`, { method: 'POST', headers, body: form })
  await begins
  t.equal((await operate('/revocations', 'POST', { user: BOB.id })).status, 201)
  upstream.accept()
  const answer = await transcribing
  t.equal(answer.status, 401)
  t.match(await answer.text(), 'credential-invalid')
  t.match(answer.headers.get('www-authenticate'), 'invalid_token')
  t.notMatch(upstream.requests, ['/transcribe'])
  t.notMatch(await figures(), /^threadwarden_upstream_errors_total\{[^}]*rules-changed/m)
})
