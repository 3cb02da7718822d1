/**
 * Attack: access that ends while the gateway connects to the upstream (CWE-367). A connection may take as long as
 * `timeouts.connect`, and the request that waits for it was permitted before.
 */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { startFullBacklog } from '../support/full-backlog.ts'
import { call, codeOf, runInput } from '../support/client.ts'
import { gateBefore } from '../support/gated.ts'
import { OPERATOR } from '../support/sharing.ts'
import { until } from '../support/until.ts'

const KEY = { scope: '', threadId: 't1' }
const BOB = { kind: 'user', id: 'corp:bob' } as const

/** A run of bob's on alice's thread, permitted, and waiting for its connection. */
async function scene(t: Test) {
  const upstream = await startFullBacklog()
  t.teardown(() => upstream.close())
  const gate = await gateBefore(t, upstream.url, {
    config: { admin: { port: 0, credential: OPERATOR }, upstream: { transport: 'multi-route', timeouts: { connect: '60s' } } },
  })
  const store = await openSqliteStore(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => store.close())
  await store.assign(KEY, 'corp:alice', Date.now())
  await store.grant(KEY, 'corp:alice', { ...BOB, right: 'write', grantedBy: 'corp:alice', grantedAt: Date.now() })
  const operate = (path: string, method: string, body: object) =>
    call(`${gate.gateway.adminUrl}${path}`, { method, token: OPERATOR, body, transport: 'multi-route' })
  const granted = async () => (await store.grants(KEY, null))?.length === 1
  await until(granted)
  const running = call(`${gate.base}/agent/default/run`, { token: gate.bob, body: runInput('t1'), transport: 'multi-route' })
  // Decisions are counted before anything is sent.
  await until(async () => /threadwarden_decisions_total\{[^}]*agent\/run[^}]*\} 1/.test(await metrics(gate.gateway.healthUrl)))
  return { upstream, running, operate }
}

async function metrics(url: string): Promise<string> {
  return (await fetch(`${url}/metrics`)).text()
}

const runsIn = (requests: readonly string[]) => requests.filter((target) => target.endsWith('/run'))

void test('a run whose grant ends before there is a connection is not sent', async (t) => {
  const { upstream, running, operate } = await scene(t)
  t.equal((await operate('/threads/t1/grants', 'DELETE', { user: BOB.id })).status, 204)
  upstream.accept()
  const answer = await running
  t.same([answer.status, codeOf(answer)], [403, 'not-owner'])
  t.same(runsIn(upstream.requests), [])
})

void test('nor one whose caller is revoked', async (t) => {
  const { upstream, running, operate } = await scene(t)
  t.equal((await operate('/revocations', 'POST', { user: BOB.id })).status, 201)
  upstream.accept()
  const answer = await running
  t.same([answer.status, codeOf(answer)], [401, 'credential-invalid'])
  t.same(runsIn(upstream.requests), [])
})

void test('one whose thread has changed in a way that leaves it allowed is sent, once', async (t) => {
  const { upstream, running, operate } = await scene(t)
  t.equal((await operate('/threads/t1/grants', 'POST', { user: 'corp:carol', right: 'read' })).status, 201)
  upstream.accept()
  t.equal((await running).status, 200)
  t.equal(runsIn(upstream.requests).length, 1)
})
