/**
 * A flood of unknown key ids. Whoever fetches the key set anew for every id that it does not know hands its issuer to
 * anybody who can write a token's header, and goes down with it. Fetches are bounded by time and never by what tokens say:
 * one at a time, a pause after each, also while the issuer is down, slow or has no keys; what was good stays good meanwhile,
 * for a day, and new keys are found without a restart. The pauses are read from a clock that the test moves.
 *
 * OpenID Connect Core 1.0 §10.1.1 lets an unknown id ask for the keys; coreos/go-oidc#482 and camunda/camunda#60462 tell
 * what comes of it without a bound, brandonrc/mobula#28 of a pause that an empty key set switched off.
 */
import { test, type Test } from 'tap'
import { makeFetching } from '../../src/auth/fetching.ts'
import { remoteKeys } from '../../src/jwt/key-source.ts'
import { gate, heard } from '../../testing/support/gates.ts'
import { guarded, PASSED, type Guarded } from '../../testing/support/guarded.ts'
import { startKeyServer, type Answer, type KeyServer } from '../../testing/support/key-server.ts'
import { testUnbridged } from '../../testing/support/pairs.ts'
import { claims, jwkOf, PAIRS, signedAs, token } from '../../testing/support/signing.ts'
import { deferred, until } from '../../testing/support/until.ts'

const FIRST = jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' })
const SECOND = jwkOf(PAIRS.otherRsa.publicKey, { kid: 'k2' })
const COOL_DOWN = 5000
const FRESH = 600_000
const DAY = 86_400_000

/** A server with the first key, a gate before it, and tokens of either key. */
async function parts(t: Parameters<typeof startKeyServer>[0]) {
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const time = { now: 1_000_000 }
  const failures: string[] = []
  const issuers = { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }
  const authenticate = gate(t, issuers, { clock: () => time.now, failures })
  const first = (kid = 'k1') => heard(authenticate, token({ alg: 'RS256', kid }, claims(), PAIRS.rsa.privateKey))
  const second = () => heard(authenticate, token({ alg: 'RS256', kid: 'k2' }, claims(), PAIRS.otherRsa.privateKey))
  return { server, time, failures, first, second }
}

void test('twenty requests at once are one fetch', async (t) => {
  const { server, first } = await parts(t)
  const answers = await Promise.all(Array.from({ length: 20 }, () => first()))
  t.same(new Set(answers), new Set(['corp:alice']))
  t.same(server.fetched, ['/jwks'])
})

void test('an unknown key id is looked up once, and then not again until the pause is over', async (t) => {
  const { server, time, first } = await parts(t)
  await first()
  t.match(await first('nope'), 'key-unknown')
  t.equal(server.fetched.length, 1, 'not right after the first fetch')
  time.now += COOL_DOWN
  t.same(new Set(await Promise.all(['a', 'b', 'c'].map(first))), new Set(['credential-invalid: key-unknown']))
  t.equal(server.fetched.length, 2, 'once for three')
  for (let at = 0; at < 50; at += 1) await first(`nope-${at}`)
  time.now += COOL_DOWN - 1
  await first('nope')
  t.equal(server.fetched.length, 2)
  time.now += 1
  await first('nope')
  t.equal(server.fetched.length, 3)
  t.equal(await first(), 'corp:alice')
})

void test('a new key is good as soon as a token names it, an old one as long as it is in the set', async (t) => {
  const { server, time, first, second } = await parts(t)
  await first()
  server.keys(FIRST, SECOND)
  time.now += COOL_DOWN
  t.equal(await second(), 'corp:alice')
  t.equal(await first(), 'corp:alice')
  server.keys(SECOND)
  time.now += FRESH + 1
  t.equal(await first(), 'corp:alice', 'the old one is still in force while the set is fetched anew')
  await until(() => server.fetched.length === 3)
  await until(async () => (await first()).includes('key-unknown'))
  t.equal(await second(), 'corp:alice')
})

void test('a failing issuer takes no good key away', async (t) => {
  const { server, time, failures, first } = await parts(t)
  await first()
  server.answers.set('/jwks', { status: 500 })
  time.now += FRESH + 1
  t.equal(await first(), 'corp:alice')
  await until(() => failures.length === 1)
  t.equal(await first(), 'corp:alice')
  time.now += COOL_DOWN
  t.match(await first('nope'), 'keys-unavailable', 'and whether there is another key nobody can say')
  t.equal(failures.length, 2)
  server.answers.set('/jwks', { body: { keys: [] } })
  time.now += COOL_DOWN
  await first('nope')
  t.equal(await first(), 'corp:alice', 'nor does one that has no more keys')
})

void test('keys that could not be fetched anew for a day are no longer trusted', async (t) => {
  const { server, time, first } = await parts(t)
  await first()
  server.answers.set('/jwks', { status: 500 })
  time.now += DAY
  t.equal(await first(), 'corp:alice', 'for a day they are')
  await until(() => server.fetched.length === 2)
  time.now += COOL_DOWN
  t.match(await first(), 'keys-unavailable')
  server.keys(FIRST)
  time.now += COOL_DOWN
  t.equal(await first(), 'corp:alice')
})

void test('an issuer that was never reached is asked again after the pause, and not before', async (t) => {
  const { server, time, failures, first } = await parts(t)
  server.answers.set('/jwks', { status: 503 })
  for (let at = 0; at < 10; at += 1) t.match(await first(), 'keys-unavailable')
  t.equal(server.fetched.length, 1)
  t.equal(failures.length, 1)
  server.keys(FIRST)
  time.now += COOL_DOWN - 1
  t.match(await first(), 'keys-unavailable')
  time.now += 1
  t.equal(await first(), 'corp:alice')
})

void test('the source says when it is ready', async (t) => {
  const server = await startKeyServer(t)
  const read = () => ({ kid: 'k', signatureBytes: null, fits: () => true, verifier: () => () => ({}) })
  const source = remoteKeys({
    at: { jwksUri: `${server.url}/jwks` },
    fetching: makeFetching(server.url, { insecureHttp: false }),
    read,
    cacheFor: FRESH,
    staleIfError: DAY,
    clock: () => 0,
    onFailure: () => {},
  })
  t.equal(source.ready(), false)
  server.keys(FIRST)
  t.match(await source.find('k'), [{ kid: 'k' }])
  t.equal(source.ready(), true)
})

/** Stops the clock of this process, the gateway's with it, and gives the way to move it. */
function stoppedClock(t: Test): { forward(milliseconds: number): void } {
  let now = Date.now()
  const running = Date.now
  Date.now = () => now
  t.teardown(() => void (Date.now = running))
  return { forward: (milliseconds) => void (now += milliseconds) }
}

const tokenOf = (kid: string | undefined, pair = PAIRS.rsa, iss = 'https://login.example.com/'): string =>
  token({ alg: 'RS256', kid }, claims({ iss }), pair.privateKey)

/** Thirty requests with key ids of their own, ten at a time; gives the statuses that came. */
async function flood({ gateway }: Guarded, name: string, iss?: string): Promise<readonly number[]> {
  const statuses = new Set<number>()
  for (let at = 0; at < 30; at += 10) {
    const some = Array.from({ length: 10 }, (_, more) =>
      gateway.ask({ target: '/api/copilotkit/info', token: tokenOf(`${name}-${at + more}`, PAIRS.otherRsa, iss) }),
    )
    for (const { status } of await Promise.all(some)) statuses.add(status)
  }
  return [...statuses].sort((a, b) => a - b)
}

/** Makes the server's next answers wait until they are let go. */
function heldBack(server: KeyServer): { readonly letGo: (answer: Answer) => void } {
  const held = deferred<Answer>()
  server.answers.set('/jwks', () => held.promise)
  return { letGo: held.resolve }
}

void testUnbridged(
  'over the real gateway a flood of unknown key ids is one fetch in five seconds, and good tokens pass',
  async (t, pair) => {
    const clock = stoppedClock(t)
    const server = await startKeyServer(t)
    server.keys(FIRST)
    const gate = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
    t.equal(await gate.fate(tokenOf('k1')), PASSED)
    t.same(server.fetched, ['/jwks'])
    for (const fetches of [2, 3]) {
      clock.forward(COOL_DOWN - 1)
      t.same(await flood(gate, 'early'), [401])
      t.equal(server.fetched.length, fetches - 1, 'none before the pause is over')
      clock.forward(1)
      t.same(await flood(gate, 'late'), [401])
      t.equal(server.fetched.length, fetches, 'one after it')
      t.equal(await gate.fate(tokenOf('k1')), PASSED)
    }
    t.equal(gate.upstream.requests.length, 3)
  },
)

void testUnbridged('neither does an issuer that fails get more of it, and its good keys stay good', async (t, pair) => {
  const clock = stoppedClock(t)
  for (const [name, answer] of [
    ['is down', { status: 503 }],
    ['has no keys', { body: { keys: [] } }],
    ['has other keys', { body: { keys: [jwkOf(PAIRS.p256.publicKey, { kid: 'k1' })] } }],
    ['answers nonsense', { body: '<html>' }],
    ['points elsewhere', { status: 302, headers: { location: '/elsewhere' } }],
  ] as const) {
    const server = await startKeyServer(t)
    server.keys(FIRST)
    const gate = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
    t.equal(await gate.fate(tokenOf('k1')), PASSED)
    server.answers.set('/jwks', answer)
    for (const fetches of [2, 3]) {
      clock.forward(COOL_DOWN)
      t.same(await flood(gate, name), [503], `an issuer that ${name}: whether there is such a key nobody can say`)
      t.equal(server.fetched.length, fetches, `an issuer that ${name} is asked once`)
      t.equal(await gate.fate(tokenOf('k1')), PASSED, `an issuer that ${name} takes no key away`)
    }
    t.equal(gate.upstream.requests.length, 3)
  }
})

void testUnbridged('an issuer that was never reached is asked once in five seconds, whatever comes', async (t, pair) => {
  const clock = stoppedClock(t)
  const server = await startKeyServer(t)
  server.answers.set('/.well-known/openid-configuration', { status: 500 })
  server.keys(FIRST)
  const gate = await guarded(t, { corp: { algorithms: ['RS256'], issuer: server.url } }, { pair })
  for (const fetches of [1, 2, 3]) {
    t.same(await flood(gate, 'down', server.url), [503])
    t.equal(await gate.fate(tokenOf('k1', PAIRS.rsa, server.url)), '503 keys-unavailable, nothing upstream')
    t.equal(server.fetched.length, fetches)
    clock.forward(COOL_DOWN)
  }
  server.answers.set('/.well-known/openid-configuration', { body: { issuer: server.url, jwks_uri: `${server.url}/jwks` } })
  t.equal(await gate.fate(tokenOf('k1', PAIRS.rsa, server.url)), PASSED)
  t.equal(gate.upstream.requests.length, 1)
})

void testUnbridged('while a fetch hangs there is no second one, and nobody with a known key waits for it', async (t, pair) => {
  const clock = stoppedClock(t)
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const gate = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
  t.equal(await gate.fate(tokenOf('k1')), PASSED)
  clock.forward(COOL_DOWN)
  const { letGo } = heldBack(server)
  const waiting = [flood(gate, 'a'), flood(gate, 'b')]
  await until(() => server.fetched.length === 2)
  for (let at = 0; at < 5; at += 1) t.equal(await gate.fate(tokenOf('k1')), PASSED)
  // Much later it is still the one that hangs.
  clock.forward(100 * COOL_DOWN)
  t.equal(await gate.fate(tokenOf('k1')), PASSED)
  t.equal(server.fetched.length, 2)
  letGo({ body: { keys: [FIRST, SECOND] } })
  t.same(await Promise.all(waiting), [[401], [401]])
  t.equal(server.fetched.length, 2)
  t.equal(await gate.fate(tokenOf('k2', PAIRS.otherRsa)), PASSED, 'what it brought is in force')
})

void testUnbridged('one issuer under a flood does not hold up another', async (t, pair) => {
  const [slow, other] = [await startKeyServer(t), await startKeyServer(t)]
  const { letGo } = heldBack(slow)
  other.keys(FIRST)
  const gate = await guarded(
    t,
    {
      slow: { issuer: slow.url, algorithms: ['RS256'] },
      other: { issuer: other.url, algorithms: ['RS256'] },
    },
    { pair },
  )
  const waiting = flood(gate, 'x', slow.url)
  await until(() => slow.fetched.includes('/jwks'))
  t.equal(await gate.fate(tokenOf('k1', PAIRS.rsa, other.url)), PASSED)
  letGo({ status: 500 })
  t.same(await waiting, [503])
  t.equal(await gate.fate(tokenOf('k1', PAIRS.rsa, other.url)), PASSED)
  t.equal(slow.fetched.filter((path) => path === '/jwks').length, 1)
})

void testUnbridged('keys change without a restart: a new one is found, one that is gone counts no more', async (t, pair) => {
  const clock = stoppedClock(t)
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const gate = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
  t.equal(await gate.fate(tokenOf('k1')), PASSED)
  server.keys(FIRST, SECOND)
  clock.forward(COOL_DOWN)
  t.equal(await gate.fate(tokenOf('k2', PAIRS.otherRsa)), PASSED)
  server.keys(SECOND)
  clock.forward(FRESH + 1)
  await gate.fate(tokenOf('k2', PAIRS.otherRsa))
  await until(async () => (await gate.fate(token({ alg: 'RS256', kid: 'k1' }, claims(), PAIRS.rsa.privateKey))).startsWith('401'))
  t.equal(await gate.fate(token({ alg: 'RS256', kid: 'k2' }, claims(), PAIRS.otherRsa.privateKey)), PASSED)
  // The same id for another key: what counts is the key of now.
  server.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k2' }))
  clock.forward(FRESH + 1)
  await gate.fate(tokenOf('k2', PAIRS.otherRsa))
  await until(async () => (await gate.fate(tokenOf('k2', PAIRS.rsa))) === PASSED)
  t.equal(await gate.fate(tokenOf('k2', PAIRS.otherRsa)), '401 credential-invalid, nothing upstream')
})

void testUnbridged('tokens that no key could make good cost no fetch, however many come', async (t, pair) => {
  const clock = stoppedClock(t)
  const server = await startKeyServer(t)
  server.keys(FIRST)
  const gate = await guarded(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { pair })
  t.equal(await gate.fate(tokenOf('k1')), PASSED)
  for (let at = 0; at < 10; at += 1) {
    clock.forward(COOL_DOWN)
    for (const bad of [
      token({ alg: 'HS256', kid: `x${at}` }, claims(), 'x'),
      signedAs('RS256', `{"alg":"none","kid":"x${at}"}`, claims(), PAIRS.otherRsa.privateKey),
      token({ alg: 'RS256', kid: `x${at}`, crit: ['x'] }, claims(), PAIRS.otherRsa.privateKey),
      tokenOf(`x${at}`, PAIRS.otherRsa, 'https://evil.example.com/'),
      tokenOf('k1', PAIRS.otherRsa),
      tokenOf(undefined, PAIRS.otherRsa),
      `a${at}.b.c`,
    ])
      t.match(await gate.fate(bad), /^401 .*nothing upstream$/)
  }
  t.same(server.fetched, ['/jwks'])
})
