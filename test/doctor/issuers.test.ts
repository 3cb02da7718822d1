/** The issuers: keys fetched or not and why, and clocks that go apart. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { JWK, makeSigner } from '../../testing/support/tokens.ts'
import { examined } from './examination.ts'

const issuerAt = (issuer: string, more: object = {}) => ({
  'authentication.issuers.corp': { issuer, audiences: ['chat'], algorithms: ['RS256'], ...more },
})

void test('the keys of a real issuer are fetched, and its clock is right', async (t) => {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const { of } = await examined(t, issuerAt(issuer.issuer))
  t.match(of('issuers.keys'), { level: 'ok', message: 'corp: 1 key fetched' })
  t.match(of('issuers.clock'), { level: 'ok', message: /agrees with that of the issuer corp/ })
})

void test('keys by their address, and keys in a file', async (t) => {
  const server = await startKeyServer(t)
  server.keys(JWK, { ...JWK, kid: 'k2' })
  const uri = await examined(t, issuerAt('https://login.example.com/', { jwksUri: `${server.url}/jwks` }))
  t.match(uri.of('issuers.keys'), { level: 'ok', message: 'corp: 2 keys fetched' })
  t.ok(
    server.fetched.every((path) => path === '/jwks'),
    'nothing else of the issuer is asked for',
  )
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const file = await examined(t, { 'authentication.issuers': signer.authentication.issuers })
  t.match(file.of('issuers.keys'), { level: 'ok', message: 'corp: 1 key read from its file' })
  t.match(file.of('issuers.clock'), { level: 'unknown', message: /fetches keys from no issuer/ })
})

void test('keys that cannot be fetched are a problem, with why and what to do', async (t) => {
  const server = await startKeyServer(t)
  const cases: readonly (readonly [string, () => void, RegExp, RegExp])[] = [
    ['no keys', () => server.keys(), /holds no key that fits/, /algorithms/],
    ['keys of another kind', () => server.keys({ kty: 'EC', alg: 'ES256' }), /holds no key that fits/, /algorithms/],
    ['no such address', () => void server.answers.set('/jwks', { status: 404 }), /answered 404/, /jwksUri/],
    [
      'another issuer',
      () =>
        void server.answers.set('/.well-known/openid-configuration', {
          body: { issuer: `${server.url}/`, jwks_uri: `${server.url}/jwks` },
        }),
      /speaks for another issuer/,
      /exactly as in its metadata/,
    ],
  ]
  for (const [what, arrange, message, remedy] of cases) {
    arrange()
    const { of } = await examined(t, issuerAt(server.url))
    t.match(of('issuers.keys'), { level: 'problem', message, remedy }, what)
  }
  const away = await examined(t, issuerAt('http://127.0.0.1:1'))
  t.match(away.of('issuers.keys'), { level: 'problem', message: /cannot be fetched/, remedy: /private certificate authority/ })
  t.match(away.of('issuers.clock'), { level: 'unknown', message: /gives no answer \(ECONNREFUSED\)/ })
})

void test('each issuer has findings of its own', async (t) => {
  const server = await startKeyServer(t)
  server.keys(JWK)
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  // The operators of the shipped policy would have to say of which issuer they are.
  const policy = join(folder, 'policy.json')
  writeFileSync(policy, JSON.stringify({ version: 1, rules: [{ routes: ['info'], allow: ['signed-in'] }] }))
  const { each } = await examined(t, {
    ...issuerAt(server.url),
    policy,
    'authentication.issuers.partner': { issuer: 'http://127.0.0.1:1', audiences: ['chat'], algorithms: ['RS256'] },
  })
  t.same(
    each('issuers.keys')
      .map(({ level }) => level)
      .sort(),
    ['ok', 'problem'],
  )
})

void test('nobody is asked where nobody has to sign in', async (t) => {
  const { of } = await examined(t, { 'authentication.mode': 'off', 'authentication.issuers': undefined })
  t.match(of('issuers.keys'), { level: 'unknown', message: /has no issuer/ })
})

for (const [off, level, message] of [
  [0, 'ok', /agrees/],
  [4000, 'ok', /agrees/],
  [12_000, 'warning', /12(?:\.\d)? s ahead of that of the issuer corp$/],
  [-12_000, 'warning', /1[12](?:\.\d)? s behind that of the issuer corp$/],
  [90_000, 'problem', /ahead of .* more than authentication\.clockTolerance \(30 s\)/],
  [-90_000, 'problem', /behind .* more than authentication\.clockTolerance \(30 s\)/],
] as const) {
  void test(`a clock that is ${off / 1000} s off is ${level}`, async (t) => {
    const server = await startKeyServer(t)
    server.keys(JWK)
    // A time that stands still, however long the machine takes.
    const now = Date.UTC(2026, 0, 1, 0, 0, 0, 500)
    const date = new Date(now - off).toUTCString()
    for (const path of ['/jwks', '/.well-known/openid-configuration']) {
      const known = server.answers.get(path) as { body: unknown }
      server.answers.set(path, { ...known, headers: { date } })
    }
    t.match((await examined(t, issuerAt(server.url), { clock: () => now })).of('issuers.clock'), { level, message })
  })
}

void test('a time that comes from a cache, or that nobody tells, says nothing', async (t) => {
  const server = await startKeyServer(t)
  const known = server.answers.get('/.well-known/openid-configuration') as { body: unknown }
  server.answers.set('/.well-known/openid-configuration', { ...known, headers: { age: '30' } })
  t.match((await examined(t, issuerAt(server.url))).of('issuers.clock'), { level: 'unknown', message: /is from a cache/ })
  server.answers.set('/.well-known/openid-configuration', { ...known, headers: { date: 'today' } })
  t.match((await examined(t, issuerAt(server.url))).of('issuers.clock'), { level: 'unknown', message: /sends no Date/ })
})

void test('the clock of the upstream is compared, too', async (t) => {
  const server = await startKeyServer(t)
  server.answers.set('/api/copilotkit/info', { body: {}, headers: { date: new Date(Date.now() - 60_000).toUTCString() } })
  t.match((await examined(t, { 'upstream.url': server.url })).of('upstream.clock'), {
    level: 'problem',
    message: /of the upstream/,
    remedy: /NTP/,
  })
  server.answers.delete('/api/copilotkit/info')
  t.match((await examined(t, { 'upstream.url': server.url })).of('upstream.clock'), { level: 'ok' })
})

void test('an issuer that is asked about each token is asked about one', async (t) => {
  const server = await startKeyServer(t)
  const introspection = { url: `${server.url}/introspect`, clientId: 'gateway', clientSecret: 'a secret of the test' }
  const opaque = { 'authentication.issuers': { corp: { issuer: 'corp', audiences: ['chat'], introspection } } }
  server.answers.set('/introspect', { body: { active: false } })
  const good = await examined(t, opaque)
  t.match(good.of('issuers.keys'), { level: 'ok', message: 'the introspection of corp answers' })
  t.match(good.of('issuers.clock'), { level: 'unknown' })
  server.answers.set('/introspect', { status: 401 })
  const bad = await examined(t, opaque)
  t.match(bad.of('issuers.keys'), { level: 'problem', message: /the introspection of corp fails: .* answered 401/ })
  t.notMatch(JSON.stringify([...good.all, ...bad.all]), 'a secret of the test')
})

void test('a token is verified; what differs from the configuration is named, and no part of the token is', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const about = async (token: string | null, changes: object = {}) => {
    const { all, each } = await examined(t, { authentication: signer.authentication, ...changes }, { wishes: { token } })
    for (const part of token?.split('.') ?? []) t.notMatch(JSON.stringify(all), part)
    return each('issuers.token')
  }
  t.same(await about(null), [])
  t.match(await about(signer.sign('alice')), [{ level: 'ok', message: 'the token is accepted, as a token of corp:alice' }])
  t.match(await about(signer.sign('alice', { iss: 'https://a.example/\u001b[31m' })), [
    {
      level: 'problem',
      message: /\(issuer-unknown\); token iss "https:\/\/a\.example\/\\u001b\[31m", configured: ".+"; token aud /,
    },
  ])
  t.match(await about(signer.sign('alice', { exp: 1 })), [
    { level: 'problem', message: /\(token-expired\); .*token exp 1970-01-01T00:00:01/, remedy: /troubleshooting\.md/ },
  ])
  const away = { issuer: 'http://127.0.0.1:1', audiences: ['chat'], algorithms: ['RS256'] }
  const token = signer.sign('alice', { iss: 'http://127.0.0.1:1' })
  const issuers = { corp: away }
  t.match(await about(token, { authentication: { issuers } }), [{ level: 'unknown', remedy: 'see issuers.keys' }])
})
