/** The health listener: what lives, what has started, what is pending by name; nothing secret and nothing to change. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { call, codeOf, runInput } from '../support/client.ts'
import { gateBefore, gated } from '../support/gated.ts'
import { ISSUER, AUDIENCE, makeSigner } from '../support/tokens.ts'
import { events, startUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

async function pendingOf(healthUrl: string): Promise<Record<string, string>> {
  return ((await call(`${healthUrl}/readyz`)).json as { pending: Record<string, string> }).pending
}

void test('a gateway whose upstream answers lives, has started and is ready', async (t) => {
  const { gateway } = await gated(t)
  await gateway.ready()
  t.same((await call(`${gateway.healthUrl}/livez`)).json, { status: 'alive' })
  t.same((await call(`${gateway.healthUrl}/startupz`)).json, { status: 'started' })
  const ready = await call(`${gateway.healthUrl}/readyz`)
  t.equal(ready.status, 200)
  t.same(ready.json, { status: 'ready', pending: {} })
  t.equal(ready.headers.get('cache-control'), 'no-store')
})

void test('nothing else is there, and nothing of the gate', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const path of ['', '/', '/info', '/api/copilotkit/info', '/metrics/x', '/readyz/', '/debug', '/threads/clear']) {
    t.equal((await call(`${gateway.healthUrl}${path}`, { token: alice })).status, 404, path)
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    t.equal((await call(`${gateway.healthUrl}/readyz`, { method, token: alice })).status, 404, method)
  }
  t.equal((await call(`${gateway.url}/readyz`, { token: alice })).status, 404, 'and nothing of it on the public listener')
  t.equal((await call(`${gateway.url}/metrics`)).status, 401)
  t.same(upstream.requests, [])
})

void test('an upstream that is away is pending by name, and the gateway lives all the same', async (t) => {
  const gone = await startUpstream()
  await gone.close()
  const { gateway } = await gateBefore(t, gone.url, { config: { upstream: { transport: 'auto' } } })
  t.match((await pendingOf(gateway.healthUrl))['upstream'], /./)
  t.equal((await call(`${gateway.healthUrl}/readyz`)).status, 503)
  t.equal((await call(`${gateway.healthUrl}/livez`)).status, 200)
  t.equal((await call(`${gateway.healthUrl}/startupz`)).status, 200)
})

void test('an issuer whose keys can’t be had is pending by name, and its tokens are 503', async (t) => {
  const gone = await startUpstream()
  await gone.close()
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const issuers = {
    ...signer.authentication.issuers,
    other: { issuer: 'https://other.example/', audiences: [AUDIENCE], algorithms: ['RS256'], jwksUri: `${gone.url}/jwks` },
  }
  const policy = 'version: 1\nrules:\n  - { routes: [info], allow: [signed-in] }\n'
  const { base, gateway, upstream, alice } = await gated(t, undefined, {
    signer,
    policy,
    config: { authentication: { issuers } },
  })
  await until(async () => 'keys:other' in (await pendingOf(gateway.healthUrl)))
  t.notOk('keys:corp' in (await pendingOf(gateway.healthUrl)))
  const answer = await call(`${base}/info`, { token: signer.sign('alice', { iss: 'https://other.example/' }) })
  t.equal(answer.status, 503)
  t.equal(codeOf(answer), 'keys-unavailable')
  t.ok(answer.headers.has('retry-after'))
  t.equal((await call(`${base}/info`, { token: alice })).status, 200, `${ISSUER} is not concerned`)
  t.equal(upstream.requests.length, 1)
  t.match((await call(`${gateway.healthUrl}/metrics`)).text, /threadwarden_key_fetch_failures_total\{issuer="other"\} [1-9]/)
})

void test('a store that fails is pending by name: 503, never yes, and right again when it answers', async (t) => {
  const { base, alice, gateway, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  await gateway.ready()
  const before = upstream.requests.length
  const database = new Database(join(gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  database.exec('ALTER TABLE threads RENAME TO gone')
  t.match((await pendingOf(gateway.healthUrl))['store'], /ownership store failed/)
  for (const answer of [
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') }),
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t2') }),
    await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1') }),
    await call(`${base}/threads/t1/messages`, { token: alice }),
    await call(`${base}/threads/t1/state`, { token: alice }),
    await call(`${base}/threads/t1`, { method: 'DELETE', token: alice }),
  ]) {
    t.equal(answer.status, 503)
    t.equal(codeOf(answer), 'store-unavailable')
    t.ok(answer.headers.has('retry-after'))
  }
  t.equal(upstream.requests.length, before)
  t.equal((await call(`${base}/info`, { token: alice })).status, 200, 'what needs no store goes on')
  database.exec('ALTER TABLE gone RENAME TO threads')
  await gateway.ready()
  t.equal((await call(`${base}/threads/t1/messages`, { token: alice })).status, 200)
})

void test('a list is 503 too while the store fails', async (t) => {
  const { base, alice, gateway, upstream } = await gated(t, events())
  await gateway.ready()
  upstream.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"threads":[{"id":"t1"}]}')
  })
  const database = new Database(join(gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  database.exec('ALTER TABLE threads RENAME TO gone')
  const answer = await call(`${base}/threads`, { token: alice })
  t.equal(answer.status, 503)
  t.equal(codeOf(answer), 'store-unavailable')
})
