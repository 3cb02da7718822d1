/** Keys are found by discovery at the configured issuer, or at the configured address: nowhere else, and not by redirect. */
import { test } from 'tap'
import { gate, heard } from './gates.ts'
import { startKeyServer, type Answer, type KeyServer } from './key-server.ts'
import { claims, jwkOf, PAIRS, token, type Part } from './signing.ts'

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
const REFUSED: readonly (readonly [name: string, path: string, answer: (server: KeyServer) => Answer, message: RegExp])[] = [
  [
    'metadata of another issuer',
    METADATA,
    ({ url }) => ({ body: { issuer: `${url}/`, jwks_uri: `${url}/jwks` } }),
    /speaks for another issuer/,
  ],
  ['metadata without an issuer', METADATA, ({ url }) => ({ body: { jwks_uri: `${url}/jwks` } }), /speaks for another issuer/],
  ['metadata without an address', METADATA, ({ url }) => ({ body: { issuer: url } }), /names no jwks_uri/],
  ['metadata with half an address', METADATA, ({ url }) => ({ body: { issuer: url, jwks_uri: '/jwks' } }), /names no jwks_uri/],
  ['a redirect of the metadata', METADATA, () => ({ status: 302, headers: { location: '/elsewhere' } }), /answered 302/],
  ['a redirect of the key set', '/jwks', () => ({ status: 307, headers: { location: '/elsewhere' } }), /answered 307/],
  ['an error', '/jwks', () => ({ status: 500, body: { keys: [KEY] } }), /answered 500/],
  ['no answer of substance', '/jwks', () => ({ status: 204 }), /answered 204/],
  ['garbage', '/jwks', () => ({ body: '<html>' }), /./],
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

for (const [name, path, answer, message] of REFUSED) {
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
    token({ alg: 'HS256' }, claims({ iss: server.url }), 'x'),
  ]) {
    t.match(await heard(authenticate, bad), /^credential-invalid/)
  }
  t.same(server.fetched, [])
})
