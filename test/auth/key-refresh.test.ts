/**
 * When keys are fetched, by a clock that the test moves: once for many requests, once for an unknown key id and then not
 * again for a while, and a failing issuer takes no good key away.
 */
import { test } from 'tap'
import { remoteKeys } from '../../src/auth/key-source.ts'
import { until } from '../support/until.ts'
import { gate, heard } from './gates.ts'
import { startKeyServer } from './key-server.ts'
import { claims, jwkOf, PAIRS, token } from './signing.ts'

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
  t.match(await first('nope'), 'key-unknown', 'and an unknown key stays unknown')
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
  const read = () => ({ kid: 'k', fits: () => true, verifier: () => () => ({}) })
  const source = remoteKeys({ at: { jwksUri: `${server.url}/jwks` }, read, clock: () => 0, onFailure: () => {} })
  t.equal(source.ready(), false)
  server.keys(FIRST)
  t.match(await source.find('k'), [{ kid: 'k' }])
  t.equal(source.ready(), true)
})
