/**
 * Keys from an address that somebody else chose, and key sets that are a weapon themselves: a redirect to another host,
 * metadata that speaks for another issuer, an answer without end, a thousand keys. Only the configured address is asked, or
 * the one that the metadata of the configured issuer names; redirects are failures; size and number have bounds.
 *
 * RFC 8725 §3.10 (server-side request forgery by key addresses), OpenID Connect Discovery 1.0 §4.3 and §7.2 (the issuer of
 * the metadata must be the one that was asked for), RFC 8414 §6.2.
 */
import { createServer, type AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { gate, heard } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { startKeyServer, type Answer, type KeyServer } from '../../testing/support/key-server.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { claims, jwkOf, PAIRS, token, type Part } from '../../testing/support/signing.ts'
import { until } from '../../testing/support/until.ts'

/** 16 MiB of a key set's beginning, in 16 KiB. */
const BOMB = gzipSync(`{"keys":[],"x":"${'x'.repeat(16 * 1024 * 1024)}"}`)
const KEY = jwkOf(PAIRS.rsa.publicKey, { kid: 'k1', alg: 'RS256', use: 'sig' })
const METADATA = '/.well-known/openid-configuration'
const signed = (iss: string, header: Part = { kid: 'k1' }) =>
  token({ alg: 'RS256', ...header }, claims({ iss }), PAIRS.rsa.privateKey)

void test('the metadata of the issuer names the key set', async (t) => {
  const server = await startKeyServer(t)
  server.keys(KEY)
  const authenticate = gate(t, { corp: { issuer: server.url, algorithms: ['RS256'] } })
  t.equal(await heard(authenticate, signed(server.url)), 'corp:alice')
  t.same(server.fetched, [METADATA, '/jwks'])
  t.equal(await heard(authenticate, signed(server.url, {})), 'corp:alice', 'also for a token without a key id')
  t.equal(server.fetched.length, 2)
})

void test('an issuer with a path and a slash at its end is asked below its path', async (t) => {
  const server = await startKeyServer(t)
  server.keys(KEY)
  const issuer = `${server.url}/realms/corp/`
  server.answers.set(`/realms/corp${METADATA}`, { body: { issuer, jwks_uri: `${server.url}/jwks` } })
  t.equal(await heard(gate(t, { corp: { issuer, algorithms: ['RS256'] } }), signed(issuer)), 'corp:alice')
})

void test('a configured address needs no metadata', async (t) => {
  const server = await startKeyServer(t)
  server.keys(KEY)
  const authenticate = gate(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } })
  t.equal(await heard(authenticate, token({ alg: 'RS256', kid: 'k1' }, claims(), PAIRS.rsa.privateKey)), 'corp:alice')
  t.same(server.fetched, ['/jwks'])
})

const set = (keys: readonly unknown[]): Answer => ({ body: { keys } })
const USELESS: readonly (readonly [name: string, path: string, answer: (server: KeyServer) => Answer, message: RegExp])[] = [
  [
    'metadata of another issuer',
    METADATA,
    ({ url }) => ({ body: { issuer: `${url}/`, jwks_uri: `${url}/jwks` } }),
    /speaks for another issuer/,
  ],
  ['metadata without an issuer', METADATA, ({ url }) => ({ body: { jwks_uri: `${url}/jwks` } }), /speaks for another issuer/],
  ['metadata without an address', METADATA, ({ url }) => ({ body: { issuer: url } }), /names no jwks_uri/],
  ...[
    ['its own with a query', (url: string) => `${url}?x`],
    ['its own in capitals', (url: string) => url.toUpperCase()],
    ['nobody', () => null],
    ['a list', (url: string) => [url]],
    ['an empty name', () => ''],
    ['a number', () => 1],
  ].map(
    ([name, issuer]) =>
      [
        `metadata whose issuer is ${name as string}`,
        METADATA,
        ({ url }: KeyServer) => ({ body: { issuer: (issuer as (url: string) => unknown)(url), jwks_uri: `${url}/jwks` } }),
        /speaks for another issuer/,
      ] as const,
  ),
  ...['/jwks', 'jwks', '', '//127.0.0.1/jwks', 'http://', null, 1, {}, ['http://127.0.0.1/jwks']].map(
    (uri) =>
      [
        `metadata with the address ${JSON.stringify(uri)}`,
        METADATA,
        ({ url }: KeyServer) => ({ body: { issuer: url, jwks_uri: uri } }),
        /names no jwks_uri/,
      ] as const,
  ),
  // What would be asked without encryption, or is not asked at all.
  ...[
    'http://login.example.com/jwks',
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1/jwks',
    'http://0.0.0.0/jwks',
    'http://127.0.0.1.evil.example/jwks',
    'http://localhost.evil.example/jwks',
    'http://127.0.0.1@evil.example/jwks',
    'http://[::ffff:10.0.0.1]/jwks',
    'file:///etc/passwd',
    'ftp://127.0.0.1/jwks',
    'data:application/json,{"keys":[]}',
    'unix:/run/keys',
    'javascript:1',
    'gopher://127.0.0.1/',
    'ws://127.0.0.1/jwks',
  ].map(
    (uri) =>
      [
        `metadata with the address ${uri}`,
        METADATA,
        ({ url }: KeyServer) => ({ body: { issuer: url, jwks_uri: uri } }),
        /names a jwks_uri without https/,
      ] as const,
  ),
  ...[300, 301, 302, 303, 304, 305, 307, 308].flatMap((status) =>
    [METADATA, '/jwks'].map(
      (path) =>
        [
          `a redirect of ${path} by ${status}`,
          path,
          ({ url }: KeyServer) => ({ status, headers: { location: `${url}/elsewhere` } }),
          new RegExp(`answered ${status}`),
        ] as const,
    ),
  ),
  ['a refresh to elsewhere', '/jwks', () => ({ headers: { refresh: '0;url=/elsewhere', link: '</elsewhere>' }, body: '' }), /./],
  ['an error', '/jwks', () => ({ status: 500, body: { keys: [KEY] } }), /answered 500/],
  ['no answer of substance', '/jwks', () => ({ status: 204 }), /answered 204/],
  ['another good status', '/jwks', () => ({ status: 203, body: { keys: [KEY] } }), /answered 203/],
  ['a part', '/jwks', () => ({ status: 206, body: { keys: [KEY] } }), /answered 206/],
  ['garbage', '/jwks', () => ({ body: '<html>' }), /./],
  ['nothing', '/jwks', () => ({ body: '' }), /./],
  ['half of it', '/jwks', () => ({ body: JSON.stringify({ keys: [KEY] }).slice(0, -1) }), /./],
  ['a bomb', '/jwks', () => ({ headers: { 'content-encoding': 'gzip' }, body: BOMB }), /./],
  ['a list of keys', '/jwks', () => ({ body: [KEY] }), /is no JSON object/],
  ['a key alone', '/jwks', () => ({ body: KEY }), /is no key set/],
  ['no object', '/jwks', () => ({ body: 'null' }), /is no JSON object/],
  ['no key set', '/jwks', () => ({ body: { keys: {} } }), /is no key set/],
  ['a key set without keys', '/jwks', () => set([]), /holds no key that fits/],
  ['more than 512 KiB', '/jwks', () => ({ body: { keys: [KEY], more: 'x'.repeat(512 * 1024) } }), /is larger than 524288 bytes/],
  [
    'metadata of more than 512 KiB',
    METADATA,
    ({ url }) => ({ body: { issuer: url, jwks_uri: `${url}/jwks`, more: 'x'.repeat(512 * 1024) } }),
    /is larger/,
  ],
  ['more than 100 keys', '/jwks', () => set(Array(101).fill(KEY)), /holds 101 keys: more than 100/],
]

for (const [name, path, answer, message] of USELESS) {
  void test(`${name} gives no keys: 503, and the log says why`, async (t) => {
    const server = await startKeyServer(t)
    server.keys(KEY)
    server.answers.set('/elsewhere', set([KEY]))
    server.answers.set(path, answer(server))
    const failures: string[] = []
    const authenticate = gate(t, { corp: { issuer: server.url, algorithms: ['RS256'] } }, { failures })
    t.equal(await heard(authenticate, signed(server.url)), 'keys-unavailable: keys-unavailable')
    t.equal(failures.length, 1)
    t.match(failures[0], message)
    t.notOk(server.fetched.includes('/elsewhere'))
  })
}

void test('as much as the bounds allow is read', async (t) => {
  const server = await startKeyServer(t)
  const others = Array.from({ length: 99 }, (_, at) => jwkOf(PAIRS.otherRsa.publicKey, { kid: `other-${at}` }))
  server.answers.set('/jwks', { body: { keys: [...others, KEY], more: 'x'.repeat(400 * 1024) } })
  t.equal(await heard(gate(t, { corp: { issuer: server.url, algorithms: ['RS256'] } }), signed(server.url)), 'corp:alice')
})

void test('an issuer that is not there gives 503', async (t) => {
  const authenticate = gate(t, { corp: { issuer: 'http://127.0.0.1:1', algorithms: ['RS256'] } })
  t.match(await heard(authenticate, signed('http://127.0.0.1:1')), 'keys-unavailable')
})

void test('a token that no key could make good costs no fetch', async (t) => {
  const server = await startKeyServer(t)
  const authenticate = gate(t, { corp: { issuer: server.url, algorithms: ['RS256'] } })
  for (const bad of [
    'garbage',
    'a.b.c',
    signed('https://evil.example.com'),
    signed(`${server.url}/`),
    signed(server.url, { kid: 7 }),
    signed(server.url, { crit: ['x'] }),
    token({ alg: 'HS256' }, claims({ iss: server.url }), 'x'),
    token({ alg: 'RS512' }, claims({ iss: server.url }), PAIRS.rsa.privateKey),
    'a'.repeat(9000),
  ]) {
    t.match(await heard(authenticate, bad), /^credential-invalid/)
  }
  t.same(server.fetched, [])
})

void test('an answer without end is cut off at the bound', async (t) => {
  let ended = false
  let wrote = 0
  const endless = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('close', () => (ended = true))
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"keys":[],"x":"')
    const more = (error?: Error | null): void => {
      if (ended || error instanceof Error) return
      wrote += 0x10000
      socket.write('x'.repeat(0x10000), more)
    }
    more()
  })
  await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void endless.close())
  const failures: string[] = []
  const jwksUri = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/jwks`
  const authenticate = gate(t, { corp: { algorithms: ['RS256'], jwksUri } }, { failures })
  t.match(await heard(authenticate, signed('https://login.example.com/')), 'keys-unavailable')
  t.match(failures, [/is larger than 524288 bytes/])
  await until(() => ended)
  t.ok(wrote < 64 * 1024 * 1024, 'what the sockets held on the way is all that was sent besides')
})

void testFirstPair(
  'over the real gateway: only the configured address is asked, and no redirect is followed',
  async (t, pair) => {
    const [server, other] = [await startKeyServer(t), await startKeyServer(t)]
    const evil = jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k1', alg: 'RS256' })
    other.keys(evil)
    const said = { alg: 'RS256', kid: 'k1' }
    const forged = (iss: string) => token(said, claims({ iss }), PAIRS.otherRsa.privateKey)
    const elsewhere = { status: 302, headers: { location: `${other.url}/jwks` } }
    const unavailable = '503 keys-unavailable, nothing upstream'

    server.answers.set('/jwks', elsewhere)
    const redirected = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
    t.equal(await redirected.fate(forged('https://login.example.com/')), unavailable)

    server.answers.set('/.well-known/openid-configuration', { ...elsewhere, headers: { location: `${other.url}${METADATA}` } })
    const moved = await guarded(t, { corp: { algorithms: ['RS256'], issuer: server.url } }, { pair })
    t.equal(await moved.fate(forged(server.url)), unavailable)
    t.equal(await moved.fate(forged(other.url)), REFUSED, 'an issuer that is not configured is not asked')

    server.answers.set(METADATA, { body: { issuer: other.url, jwks_uri: `${other.url}/jwks` } })
    const impostor = await guarded(t, { corp: { algorithms: ['RS256'], issuer: server.url } }, { pair })
    t.equal(await impostor.fate(forged(server.url)), unavailable)
    t.same(other.fetched, [], 'nobody came')
    for (const { upstream } of [redirected, moved, impostor]) t.same(upstream.requests, [])

    const honest = await guarded(t, { corp: { algorithms: ['RS256'], issuer: other.url } }, { pair })
    t.equal(await honest.fate(forged(other.url)), PASSED)
    t.same(other.fetched, [METADATA, '/jwks'])
  },
)
