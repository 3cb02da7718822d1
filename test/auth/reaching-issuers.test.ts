/** How an issuer is reached: by a private authority, with a bearer token of the machine's, and by plain http as an exception. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFetching } from '../../src/auth/fetching.ts'
import { AUTHORITY, SERVER } from '../../testing/support/certificates.ts'
import { gate, heard, ISSUER } from '../../testing/support/gates.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { active } from '../../testing/support/issuer-of-opaque-tokens.ts'
import { FIRST } from '../../testing/support/issuer-that-misbehaves.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { claims, PAIRS, token } from '../../testing/support/signing.ts'

const UNAVAILABLE = 'keys-unavailable: keys-unavailable'
const METADATA = '/.well-known/openid-configuration'
const signed = (kid = 'k1', iss = ISSUER) => token({ alg: 'RS256', kid }, claims({ iss }), PAIRS.rsa.privateKey)

function fileOf(t: Test, name: string, text: string): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

void test('ca: an issuer with a certificate of a private authority is believed where that is named, and nowhere else', async (t) => {
  const server = await startKeyServer(t, SERVER)
  server.keys(FIRST)
  const ca = fileOf(t, 'ca.pem', AUTHORITY)
  const failures: string[] = []
  const source = { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` }
  t.equal(await heard(gate(t, { corp: { ...source, ca } }), signed()), 'corp:alice')
  const found = { algorithms: ['RS256'], issuer: server.url, ca }
  t.equal(await heard(gate(t, { corp: found }), signed('k1', server.url)), 'corp:alice', 'by discovery, too')
  t.equal(server.fetched.length, 3)
  t.equal(await heard(gate(t, { corp: source }, { failures }), signed()), UNAVAILABLE)
  t.match(failures, [/certificate/])
  t.equal(server.fetched.length, 3, 'nothing was asked of it')
  const byName = { ...source, ca, jwksUri: `${server.url.replace('127.0.0.1', 'localhost')}/jwks` }
  t.equal(await heard(gate(t, { corp: byName }), signed()), UNAVAILABLE, 'the name has to be right')
  // The authority of one issuer is not that of another.
  const two = gate(t, { corp: { ...source, ca }, other: { ...source, issuer: 'https://other.example' } })
  t.equal(await heard(two, signed()), 'corp:alice')
  t.equal(await heard(two, signed('k1', 'https://other.example')), UNAVAILABLE)
})

void test('no environment switches the verification of an issuer off', async (t) => {
  const server = await startKeyServer(t, SERVER)
  server.keys(FIRST)
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.equal(await heard(gate(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }), signed()), UNAVAILABLE)
  t.same(server.fetched, [])
})

void test('ca: questions about opaque tokens are asked under it, too', async (t) => {
  const server = await startKeyServer(t, SERVER)
  server.answers.set('/introspect', { body: active() })
  const introspection = { url: `${server.url}/introspect`, clientId: 'gateway', clientSecret: 'hush' }
  const ca = fileOf(t, 'ca.pem', AUTHORITY)
  t.equal(await heard(gate(t, { corp: { introspection, ca } }), 'opaque'), 'corp:alice')
  t.equal(await heard(gate(t, { corp: { introspection } }), 'opaque'), UNAVAILABLE)
  t.equal(server.asked.length, 1, 'the secret was not sent to whoever that may be')
})

void test('bearerTokenFile: the token is sent with each fetch, and read anew each time', async (t) => {
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const file = fileOf(t, 'token', 'one\n')
  const time = { now: 0 }
  const failures: string[] = []
  const config = { algorithms: ['RS256'], issuer: server.url, bearerTokenFile: file }
  const authenticate = gate(t, { corp: config }, { clock: () => time.now, failures })
  t.equal(await heard(authenticate, signed('k1', server.url)), 'corp:alice')
  writeFileSync(file, ' two \r\n')
  time.now += 5000
  await heard(authenticate, signed('nope', server.url))
  t.same(
    server.asked.map(({ path, headers }) => `${path} ${headers.authorization}`),
    [`${METADATA} Bearer one`, '/jwks Bearer one', `${METADATA} Bearer two`, '/jwks Bearer two'],
  )
  rmSync(file)
  time.now += 5000
  t.equal(await heard(authenticate, signed('nope', server.url)), UNAVAILABLE)
  t.equal(failures.length, 1)
  t.equal(server.asked.length, 4, 'without it nothing is asked')
})

void test('bearerTokenFile: the token never goes to another origin, though the metadata names it', async (t) => {
  const [home, other] = [await startKeyServer(t), await startKeyServer(t)]
  other.keys(FIRST)
  const bearerTokenFile = fileOf(t, 'token', 'hush')
  for (const uri of [`${other.url}/jwks`, `${home.url.replace('127.0.0.1', 'localhost')}/jwks`]) {
    home.keys(FIRST)
    home.answers.set(METADATA, { body: { issuer: home.url, jwks_uri: uri } })
    const authenticate = gate(t, { corp: { algorithms: ['RS256'], issuer: home.url, bearerTokenFile } })
    t.equal(await heard(authenticate, signed('k1', home.url)), 'corp:alice', uri)
  }
  t.same(
    other.asked.map(({ headers }) => headers.authorization),
    [undefined],
  )
  t.same(
    home.asked.map(({ path, headers }) => [path, headers.authorization]),
    [
      [METADATA, 'Bearer hush'],
      [METADATA, 'Bearer hush'],
      ['/jwks', undefined],
    ],
  )
})

void test('bearerTokenFile: neither does it follow a redirect, nor stand in the log of a failure', async (t) => {
  const [home, other] = [await startKeyServer(t), await startKeyServer(t)]
  const failures: string[] = []
  home.answers.set('/jwks', { status: 307, headers: { location: `${other.url}/jwks` } })
  for (const secret of ['hush-hush', 'hush-hush\nx-more: 1', 'hush-hush\u0000']) {
    const bearerTokenFile = fileOf(t, 'token', secret)
    const config = { algorithms: ['RS256'], jwksUri: `${home.url}/jwks`, bearerTokenFile }
    t.equal(await heard(gate(t, { corp: config }, { failures }), signed()), UNAVAILABLE)
  }
  t.equal(failures.length, 3)
  t.notMatch(failures.join('\n'), 'hush')
  t.same(other.asked, [])
  t.ok(home.asked.every(({ headers }) => headers['x-more'] === undefined))
})

void test('bearerTokenFile: at the introspection endpoint the gateway says who it is as configured', async (t) => {
  const server = await startKeyServer(t)
  server.keys(FIRST)
  server.answers.set('/introspect', { body: active({ iss: server.url }) })
  const introspection = { url: `${server.url}/introspect`, clientId: 'gateway', clientSecret: 'hush' }
  const bearerTokenFile = fileOf(t, 'token', 'machine')
  const authenticate = gate(t, { corp: { algorithms: ['RS256'], issuer: server.url, introspection, bearerTokenFile } })
  t.equal(await heard(authenticate, signed('k1', server.url)), 'corp:alice')
  t.equal(await heard(authenticate, 'opaque'), 'corp:alice')
  const basic = `Basic ${Buffer.from('gateway:hush').toString('base64')}`
  t.same(
    server.asked.map(({ headers }) => headers.authorization),
    ['Bearer machine', 'Bearer machine', basic],
  )
})

void test('ca and bearerTokenFile have to be there at start', (t) => {
  const source = { algorithms: ['RS256'], jwksUri: 'http://127.0.0.1:1/jwks' }
  for (const name of ['ca', 'bearerTokenFile']) {
    t.throws(() => gate(t, { corp: { ...source, [name]: '/nowhere/at/all' } }), new RegExp(`corp.${name}: .* does not exist`))
  }
  t.end()
})

void test('insecureHttp: plain http leaves this machine where it is named, and nowhere else', (t) => {
  const [strict, lax] = [false, true].map((insecureHttp) => makeFetching(ISSUER, { insecureHttp }))
  for (const uri of ['https://login.example.com/jwks', 'http://127.0.0.1/jwks', 'http://localhost:1/jwks', 'http://[::1]/jwks']) {
    t.equal(strict?.allowed(uri), true, uri)
    t.equal(lax?.allowed(uri), true, uri)
  }
  for (const uri of [
    'http://10.0.0.1/jwks',
    'http://idp.cluster.local/jwks',
    'http://[::ffff:127.0.0.1]/jwks',
    'http://0.0.0.0/',
  ]) {
    t.equal(strict?.allowed(uri), false, uri)
    t.equal(lax?.allowed(uri), true, uri)
  }
  for (const uri of ['ftp://127.0.0.1/jwks', 'file:///etc/passwd', 'data:,{}', 'jwks', '']) {
    t.equal(strict?.allowed(uri), false, uri)
    t.equal(lax?.allowed(uri), false, uri)
  }
  const source = { algorithms: ['RS256'], jwksUri: 'http://10.0.0.1/jwks' }
  t.throws(() => gate(t, { corp: source }), /https only/)
  t.ok(gate(t, { corp: { ...source, insecureHttp: true } }))
  t.end()
})
