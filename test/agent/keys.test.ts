/** The keys of an agent come from where its author said, and neither callers nor a failing issuer change how often or for whom. */
import { test, type Test } from 'tap'
import { makeAssertionVerifier, makeVerifier } from '../../src/sdk/agent/index.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { jwkOf, PAIRS, token, type Part } from '../../testing/support/signing.ts'
import { deferred, until } from '../../testing/support/until.ts'
import { assertion, ASSERTION_TRUST, fate, forged, TRUST, userToken } from './credentials.ts'

const FIRST = jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' })
const SECOND = jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k2' })
const METADATA = '/.well-known/openid-configuration'
const UNAVAILABLE = 'KeysUnavailable keys-unavailable'
const COOL_DOWN = 5000
const FRESH = 600_000
const DAY = 86_400_000

/** Stops the clock of this process, and gives the way to move it. */
function stoppedClock(t: Test): { forward(milliseconds: number): void } {
  let now = Date.now()
  const running = Date.now
  Date.now = () => now
  t.teardown(() => void (Date.now = running))
  return { forward: (milliseconds) => void (now += milliseconds) }
}

/** A server with the first key, an agent that asks it, and what becomes of tokens of either key. */
async function parts(t: Test) {
  const clock = stoppedClock(t)
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const { issuer, audience, algorithms } = TRUST
  const verify = makeVerifier({ issuer, audience, algorithms, jwksUri: `${server.url}/jwks` })
  const judged = (jwt: string) => fate(verify({ authorization: `Bearer ${jwt}` }))
  const first = (kid?: string) => judged(userToken({ exp: Date.now() / 1000 + 60 }, { kid: kid ?? 'k1' }))
  const claims = (): Part => ({ iss: issuer, aud: audience, sub: 'bob', exp: Date.now() / 1000 + 60 })
  const second = () => judged(token({ alg: 'RS256', kid: 'k2' }, claims(), PAIRS.otherRsa.privateKey))
  return { clock, server, judged, first, second }
}

void test('metadata names the key set', async (t) => {
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const { audience, algorithms } = TRUST
  const verify = makeVerifier({ issuer: server.url, audience, algorithms, discovery: true })
  t.same(server.fetched, [], 'nothing is fetched before it is wanted')
  t.equal(await fate(verify({ authorization: `Bearer ${userToken({ iss: server.url })}` })), 'alice')
  t.same(server.fetched, [METADATA, '/jwks'])
})

void test('the keys of the gateway are a key set, too', async (t) => {
  const server = await startKeyServer(t)
  server.answers.set('/.well-known/jwks.json', { body: { keys: ASSERTION_TRUST.keys } })
  const { issuer, audience } = ASSERTION_TRUST
  const verify = makeAssertionVerifier({ issuer, audience, jwksUri: `${server.url}/.well-known/jwks.json` })
  t.equal(await fate(verify({ 'x-threadwarden-assertion': assertion() })), 'corp:alice')
})

void test('twenty requests at once are one fetch', async (t) => {
  const { server, first } = await parts(t)
  t.same(new Set(await Promise.all(Array.from({ length: 20 }, () => first()))), new Set(['alice']))
  t.same(server.fetched, ['/jwks'])
})

void test('a flood of unknown key ids is one fetch in five seconds, and good tokens pass', async (t) => {
  const { clock, server, first } = await parts(t)
  t.equal(await first(), 'alice')
  for (const fetches of [2, 3]) {
    clock.forward(COOL_DOWN - 1)
    for (let at = 0; at < 20; at += 1) t.match(await first(`early-${at}`), /key-unknown/)
    t.equal(server.fetched.length, fetches - 1)
    clock.forward(1)
    await Promise.all(Array.from({ length: 20 }, (_, at) => first(`late-${at}`)))
    t.equal(server.fetched.length, fetches)
    t.equal(await first(), 'alice')
  }
})

void test('a token that no key could make good costs no fetch', async (t) => {
  const { server, judged } = await parts(t)
  for (const bad of [forged.unsigned('none'), forged.confused('x'), assertion(), userToken({ iss: 'x' }), 'x.y.z']) {
    t.match(await judged(bad), /NotAuthenticated/)
  }
  t.same(server.fetched, [])
})

void test('a new key is good as soon as a token names it, one that is gone is good for ten minutes at most', async (t) => {
  const { clock, server, first, second } = await parts(t)
  t.equal(await first(), 'alice')
  server.keys(SECOND)
  t.match(await second(), /key-unknown/, 'not within the pause')
  t.equal(await first(), 'alice')
  clock.forward(FRESH + 1)
  t.match(await first(), /key-unknown/)
  t.equal(await second(), 'bob')
})

void test('an issuer that is down is an error of its own, and takes no good key away for a day', async (t) => {
  const { clock, server, first, second } = await parts(t)
  server.answers.set('/jwks', { status: 500 })
  t.equal(await first(), UNAVAILABLE)
  server.keys(FIRST)
  t.equal(await first(), UNAVAILABLE, 'and is asked again after the pause only')
  clock.forward(COOL_DOWN)
  t.equal(await first(), 'alice')
  server.answers.set('/jwks', { body: { keys: [] } })
  clock.forward(DAY)
  t.equal(await first(), 'alice')
  t.equal(await second(), UNAVAILABLE, 'whether this key exists, nobody says')
  clock.forward(1)
  t.equal(await first(), UNAVAILABLE)
})

void test('a clock that is set back neither keeps old keys nor delays new ones', async (t) => {
  const { clock, server, first, second } = await parts(t)
  t.equal(await first(), 'alice')
  server.keys(SECOND)
  clock.forward(-DAY)
  t.match(await first(), /key-unknown/)
  t.equal(await second(), 'bob')
})

void test('while a fetch hangs there is no second one', async (t) => {
  const { clock, server, first, second } = await parts(t)
  t.equal(await first(), 'alice')
  clock.forward(COOL_DOWN)
  const held = deferred<{ body: unknown }>()
  server.answers.set('/jwks', () => held.promise)
  const waiting = [second(), second()]
  await until(() => server.fetched.length === 2)
  t.equal(await first(), 'alice', 'and nobody with a known key waits for it')
  held.resolve({ body: { keys: [FIRST, SECOND] } })
  t.same(await Promise.all(waiting), ['bob', 'bob'])
  t.equal(server.fetched.length, 2)
})

const USELESS: readonly (readonly [name: string, path: string, answer: (url: string) => object, cause: RegExp])[] = [
  ['a redirect', '/jwks', (url) => ({ status: 302, headers: { location: `${url}/elsewhere` } }), /./],
  ['a redirect of the metadata', METADATA, (url) => ({ status: 307, headers: { location: `${url}/elsewhere` } }), /./],
  ['an error', '/jwks', () => ({ status: 500, body: { keys: [FIRST] } }), /answered 500/],
  ['no document', '/jwks', () => ({ body: '<html>' }), /./],
  ['a document without keys', '/jwks', () => ({ body: { keys: {} } }), /no key set/],
  ['nothing', '/jwks', () => ({ body: 'null' }), /no JSON object/],
  ['more than 512 KiB', '/jwks', () => ({ body: { keys: [FIRST], more: 'x'.repeat(512 * 1024) } }), /larger than/],
  ['more than 100 keys', '/jwks', () => ({ body: { keys: Array(101).fill(FIRST) } }), /more than 100/],
  ['secrets', '/jwks', () => ({ body: { keys: [{ kty: 'oct', k: 'eHg', kid: 'k1' }] } }), /no key that fits/],
  ['keys for encryption', '/jwks', () => ({ body: { keys: [{ ...FIRST, use: 'enc' }] } }), /no key that fits/],
  ['metadata of another issuer', METADATA, (url) => ({ body: { issuer: `${url}/`, jwks_uri: `${url}/jwks` } }), /another issuer/],
  [
    'metadata with an address without https',
    METADATA,
    (url) => ({ body: { issuer: url, jwks_uri: 'http://10.0.0.1/jwks' } }),
    /names a jwks_uri without https/,
  ],
  [
    'metadata with credentials in the address',
    METADATA,
    (url) => ({ body: { issuer: url, jwks_uri: `${url.replace('//', '//user:secret@')}/jwks` } }),
    /names a jwks_uri without https/,
  ],
  [
    'a key set after a byte-order mark',
    '/jwks',
    () => ({ body: `\ufeff${JSON.stringify({ keys: [FIRST] })}` }),
    /no JSON object/,
  ],
  ['a list', '/jwks', () => ({ body: [FIRST] }), /no JSON object/],
  ['text that is not JSON', '/jwks', () => ({ body: 'not JSON' }), /jwks is no JSON object$/],
]

for (const [name, path, answer, cause] of USELESS) {
  void test(`${name} gives no keys, and the error says why`, async (t) => {
    const server = await startKeyServer(t)
    server.keys(FIRST)
    server.answers.set('/elsewhere', { body: { issuer: server.url, jwks_uri: `${server.url}/jwks`, keys: [FIRST] } })
    server.answers.set(path, answer(server.url))
    const verify = makeVerifier({ issuer: server.url, audience: 'chat', algorithms: ['RS256'], discovery: true })
    const error = await verify({ authorization: `Bearer ${userToken({ iss: server.url })}` }).catch((caught: unknown) => caught)
    t.match(error, { name: 'KeysUnavailable', code: 'keys-unavailable', cause: { message: cause } })
    t.notOk(server.fetched.includes('/elsewhere'))
  })
}

void test('an own fetch is asked in place of the usual', async (t) => {
  const asked: unknown[] = []
  const fetch = (...call: unknown[]) => {
    asked.push(call)
    return Promise.resolve(Response.json({ keys: [FIRST] }))
  }
  const { issuer, audience, algorithms } = TRUST
  const verify = makeVerifier({ issuer, audience, algorithms, jwksUri: 'https://keys.example.com/', fetch })
  t.equal(await fate(verify({ authorization: `Bearer ${userToken()}` })), 'alice')
  t.match(asked, [['https://keys.example.com/', { redirect: 'error', headers: { accept: 'application/json' } }]])
})
