/** The health listener: what lives, what has started, what is pending by name; nothing secret and nothing to change. */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { call, codeOf } from '../../testing/support/client.ts'
import { gateBefore, gated, NOWHERE } from '../../testing/support/gated.ts'
import { ISSUER, AUDIENCE, makeSigner } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'

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
  const { gateway } = await gateBefore(t, NOWHERE, { config: { upstream: { transport: 'auto' } } })
  t.match((await pendingOf(gateway.healthUrl))['upstream'], /./)
  t.equal((await call(`${gateway.healthUrl}/readyz`)).status, 503)
  t.equal((await call(`${gateway.healthUrl}/livez`)).status, 200)
  t.equal((await call(`${gateway.healthUrl}/startupz`)).status, 200)
})

void test('an issuer whose keys can’t be had is pending by name, and its tokens are 503', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const issuers = {
    ...signer.authentication.issuers,
    other: { issuer: 'https://other.example/', audiences: [AUDIENCE], algorithms: ['RS256'], jwksUri: `${NOWHERE}/jwks` },
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

void test('a scrape says whether the store can be used, as /readyz does', async (t) => {
  const { gateway } = await gated(t)
  await gateway.ready()
  const pending = async () =>
    /^threadwarden_readiness_pending\{condition="store"\} (\d)$/m.exec((await call(`${gateway.healthUrl}/metrics`)).text)?.[1]
  t.equal(await pending(), '0')
  const file = join(gateway.folder, 'ownership.db')
  renameSync(file, `${file}.away`)
  t.equal(await pending(), '1')
  t.match((await pendingOf(gateway.healthUrl))['store'], /its file is missing/)
  renameSync(`${file}.away`, file)
  await until(async () => (await pending()) === '0')
})
