/** The route for grants as a route like every other: methods, CORS, limits, an upstream or a store that is away, what is told. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import type { AuditLine } from '../../src/audit/line.ts'
import { call, codeOf } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { OWNERS_SHARE, reasons, sharing } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'

const BOB = { user: 'corp:bob', right: 'read' }

void test('other methods are 405 and say which there are; a preflight is answered as everywhere', async (t) => {
  const APP = 'https://app.example.com'
  const { alice, base, grants, run, upstream } = await sharing(t, undefined, { config: { cors: { origins: [APP] } } })
  await run(alice)
  const before = upstream.beginnings()
  for (const method of ['HEAD', 'OPTIONS', 'PUT', 'PATCH']) {
    const answer = await grants(alice, undefined, method)
    t.same([answer.status, answer.headers.get('allow')], [405, 'GET, POST, DELETE'], method)
  }
  const target = `${base}/threadwarden/threads/t1/grants`
  const headers = { origin: APP, 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'authorization' }
  const preflight = await call(target, { method: 'OPTIONS', headers })
  t.match([preflight.status, preflight.headers.get('access-control-allow-methods')], [204, /DELETE/])
  const answer = await call(target, { token: alice, headers: { origin: APP } })
  t.same([answer.status, answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')], [200, APP, 'Origin'])
  t.equal(upstream.beginnings(), before)
})

void test('it works while the upstream is away, and waits with everything else until it has shown what it is', async (t) => {
  const gate = await sharing(t)
  const { alice, grants, run, upstream, gateway, signer } = gate
  await run(alice)
  await upstream.close()
  t.equal((await run(alice)).status, 502)
  t.equal((await grants(alice, BOB)).status, 201)
  t.match((await grants(alice)).json, { grants: [BOB] })
  const config = { upstream: { transport: 'auto' } }
  const waiting = await gateBefore(t, upstream.url, { config, policy: OWNERS_SHARE, shared: gateway.folder, signer })
  const answer = await call(`${waiting.base}/threadwarden/threads/t1/grants`, { token: alice })
  t.same([answer.status, codeOf(answer)], [503, 'not-ready'])
})

void test('limits count it, and no answer is cacheable', async (t) => {
  const { alice, grants, run } = await sharing(t, undefined, { config: { limits: { requests: '2/h' } } })
  await run(alice)
  const answers = [await grants(alice), await grants(alice, BOB), await grants(alice, {}), await grants(alice)]
  t.same(
    answers.map(({ status }) => status),
    [200, 201, 400, 429],
  )
  for (const { headers } of answers) t.equal(headers.get('cache-control'), 'no-store')
})

void test('under observe it is enforced: what was only seen is nobody’s to share', async (t) => {
  const gate = await sharing(t, undefined, { config: { enforcement: 'observe' } })
  const { alice, bob, grants, run, base } = gate
  t.equal((await run(alice)).status, 200)
  t.equal((await run(bob)).status, 200)
  for (const token of [alice, bob]) {
    for (const answer of [await grants(token), await grants(token, { user: 'corp:eve', right: 'read' })]) {
      t.same([answer.status, codeOf(answer)], [403, 'not-owner'])
    }
  }
  t.equal((await call(`${base}/threads/t1/messages`, { token: bob })).status, 200, 'what the upstream has is observed')
})

void test('a store that fails is 503, and nothing is said to be done', async (t) => {
  const gate = await sharing(t)
  const { alice, gateway, grants, run } = gate
  await run(alice)
  const database = new Database(join(gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  database.exec('ALTER TABLE grants RENAME TO gone')
  for (const answer of [await grants(alice), await grants(alice, BOB), await grants(alice, { user: 'corp:bob' }, 'DELETE')]) {
    t.same([answer.status, codeOf(answer)], [503, 'store-unavailable'])
  }
  database.exec('ALTER TABLE gone RENAME TO grants')
  await until(async () => (await grants(alice, BOB)).status === 201)
})

void test('each request is one decision: in the log, in the figures and in the audit; a change is a line of its own', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const audit = { to: 'file', file: join(folder, 'audit.jsonl') }
  const gate = await sharing(t, undefined, { config: { audit } })
  const { alice, bob, gateway, grants, run } = gate
  await run(alice)
  const given = await grants(alice, BOB)
  await grants(alice, {})
  await grants(bob)
  await grants(alice, { user: 'corp:bob' }, 'DELETE')
  const decided = ['permitted', 'grant-malformed', 'thread-foreign', 'permitted']
  t.same(reasons(gate), decided)
  const { text } = await call(`${gateway.healthUrl}/metrics`)
  t.match(text, 'threadwarden_decisions_total{route="threads/grants",reason="permitted"} 2')
  t.match(text, 'threadwarden_decisions_total{route="threads/grants",reason="grant-malformed"} 1')
  const changes = gateway.lines.filter(({ target }) => target !== undefined)
  const change = { level: 'info', thread: 't1', principal: 'corp:alice', target: 'user:corp:bob' }
  t.match(changes, [
    { ...change, msg: 'a thread was shared', right: 'read', requestId: given.headers.get('x-request-id') },
    { ...change, msg: 'a grant was taken back', right: undefined },
  ])
  t.equal(changes.length, 2)
  t.notOk(
    changes.some((line) => 'owner' in line),
    'whose it is goes without saying',
  )
  await gateway.stop(0)
  const lines = readdirSync(folder)
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1))
    .map((line) => JSON.parse(line) as AuditLine)
    .filter(({ route }) => route === 'threads/grants')
  t.same(
    lines.map(({ method, thread, reason, facts }) => [method, thread, reason, facts.record]),
    [
      ['POST', 't1', 'permitted', 'own'],
      ['POST', 't1', 'grant-malformed', 'own'],
      ['GET', 't1', 'thread-foreign', 'foreign'],
      ['DELETE', 't1', 'permitted', 'own'],
    ],
  )
})
