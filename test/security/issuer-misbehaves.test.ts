/**
 * An issuer that misbehaves, with every fetch counted. Whatever it sends in place of keys, it is asked once in five seconds,
 * tokens of known keys pass as if nothing were, nobody gets in whom it didn't vouch for, and nobody is told that a token is
 * bad which the issuer was not there to speak of: 503, never 401, because a client that gets 401 throws its token away.
 *
 * OpenID Connect Core 1.0 §10.1.1 (rotation of keys); RFC 7517 §4.5 (key ids should be distinct: they need not be).
 */
import { test, type Test } from 'tap'
import { gate, heard } from '../../testing/support/gates.ts'
import { FIRST, SECOND, startMisbehaving, WAYS } from '../../testing/support/issuer-that-misbehaves.ts'
import { claims, jwkOf, PAIRS, token } from '../../testing/support/signing.ts'
import { until } from '../../testing/support/until.ts'

const COOL_DOWN = 5000
const FRESH = 600_000
const UNAVAILABLE = 'keys-unavailable: keys-unavailable'
const UNKNOWN = 'credential-invalid: key-unknown'

/** The issuer, a gate before it with a clock that the test moves, and tokens of either key. */
async function scene(t: Test) {
  const issuer = await startMisbehaving(t)
  const time = { now: 1_000_000 }
  const failures: string[] = []
  const config = { corp: { algorithms: ['RS256'], jwksUri: `${issuer.url}/jwks` } }
  const authenticate = gate(t, config, { clock: () => time.now, failures })
  const by = (kid: string, pair = PAIRS.rsa) => heard(authenticate, token({ alg: 'RS256', kid }, claims(), pair.privateKey))
  return { issuer, time, failures, first: () => by('k1'), second: () => by('k2', PAIRS.otherRsa), by }
}

for (const way of Object.keys(WAYS)) {
  void test(`an issuer that ${way}: nobody gets in, and it is asked once in five seconds`, async (t) => {
    const { issuer, time, failures, first, by } = await scene(t)
    issuer.misbehave(way)
    for (const fetches of [1, 2, 3]) {
      const answers = await Promise.all([first(), first(), by('nope'), first()])
      t.same(new Set([...answers, await first(), await by('nope')]), new Set([UNAVAILABLE]))
      t.equal(issuer.fetches(), fetches)
      t.equal(failures.length, fetches, 'the log says so each time')
      time.now += COOL_DOWN
    }
    issuer.keys(FIRST)
    t.equal(await first(), 'corp:alice', 'it recovers')
    t.equal(await by('nope'), UNKNOWN)
    t.equal(issuer.fetches(), 4)
    t.same(
      issuer.fetched.filter((path) => path !== '/jwks'),
      [],
    )
  })

  void test(`an issuer that ${way} after it had given keys: those stay good, and of others nobody can say`, async (t) => {
    const { issuer, time, failures, first, second, by } = await scene(t)
    t.equal(await first(), 'corp:alice')
    issuer.misbehave(way)
    t.equal(await by('nope'), UNKNOWN, 'as long as it was asked a moment ago')
    for (const fetches of [2, 3, 4]) {
      time.now += COOL_DOWN
      t.same(await Promise.all([by('nope'), second(), first()]), [UNAVAILABLE, UNAVAILABLE, 'corp:alice'])
      t.same([await by('nope'), await second(), await first()], [UNAVAILABLE, UNAVAILABLE, 'corp:alice'])
      t.equal(issuer.fetches(), fetches)
      t.equal(failures.length, fetches - 1)
    }
    time.now += FRESH
    t.equal(await first(), 'corp:alice', 'also when they are due')
    await until(() => failures.length === 4)
    t.equal(await first(), 'corp:alice')
    t.equal(issuer.fetches(), 5)
    issuer.keys(FIRST, SECOND)
    time.now += COOL_DOWN
    t.equal(await second(), 'corp:alice', 'it recovers')
    t.equal(await by('nope'), UNKNOWN)
    t.equal(issuer.fetches(), 6)
  })
}

void test('an issuer that is slow is asked once, and a request whose key is known does not wait for it', async (t) => {
  const { issuer, time, first, second, by } = await scene(t)
  t.equal(await first(), 'corp:alice')
  time.now += COOL_DOWN
  const { letGo } = issuer.holdBack()
  const waiting = Promise.all([second(), by('nope'), second()])
  await until(() => issuer.fetches() === 2)
  // Nothing but the answer ends that wait: if these waited for it, too, the test would never end.
  for (const later of [0, COOL_DOWN, FRESH, 10 * FRESH]) {
    time.now += later
    t.equal(await first(), 'corp:alice')
  }
  t.equal(issuer.fetches(), 2)
  letGo()
  t.same(await waiting, ['corp:alice', UNKNOWN, 'corp:alice'])
  t.equal(issuer.fetches(), 2)
})

void test('an issuer that was slow and then fails leaves the ones who waited with 503', async (t) => {
  const { issuer, time, first, second, by } = await scene(t)
  await first()
  time.now += COOL_DOWN
  const { letGo } = issuer.holdBack()
  const waiting = Promise.all([second(), by('nope')])
  await until(() => issuer.fetches() === 2)
  letGo({ status: 500 })
  t.same(await waiting, [UNAVAILABLE, UNAVAILABLE])
  t.same([await second(), await first()], [UNAVAILABLE, 'corp:alice'])
  t.equal(issuer.fetches(), 2)
})

void test('an issuer that takes longer than five seconds has failed', async (t) => {
  const { issuer, failures, first } = await scene(t)
  const { letGo } = issuer.holdBack()
  t.equal(await first(), UNAVAILABLE)
  t.match(failures, [/abort|timeout/i])
  letGo()
})

void test('an issuer that rotates with every answer is asked no more often', async (t) => {
  const { issuer, time, by } = await scene(t)
  let turn = 0
  issuer.answers.set('/jwks', () => {
    turn += 1
    return Promise.resolve({ body: { keys: [jwkOf(PAIRS.rsa.publicKey, { kid: `turn-${turn}` })] } })
  })
  t.equal(await by('turn-1'), 'corp:alice')
  t.equal(await by('turn-2'), UNKNOWN, 'not before the pause is over')
  for (let next = 2; next < 6; next += 1) {
    time.now += COOL_DOWN
    t.equal(await by(`turn-${next}`), 'corp:alice')
    t.equal(await by(`turn-${next - 1}`), UNKNOWN, 'what it took back is gone')
    t.equal(issuer.fetches(), next)
  }
})

void test('an issuer with one id for two keys: either counts, and whatever else has the id is no key', async (t) => {
  const { issuer, by } = await scene(t)
  const ec = jwkOf(PAIRS.p256.publicKey, { kid: 'k' })
  issuer.keys(ec, { ...SECOND, kid: 'k' }, { kty: 'oct', k: 'AAAA', kid: 'k' }, { ...FIRST, kid: 'k' }, { ...FIRST, kid: 'k' })
  t.same([await by('k'), await by('k', PAIRS.otherRsa)], ['corp:alice', 'corp:alice'])
  t.equal(await by('k1'), UNKNOWN)
  t.equal(issuer.fetches(), 1)
})

void test('an issuer with one id for a hundred keys costs one token eight verifications and no fetch', async (t) => {
  const { issuer, by } = await scene(t)
  issuer.keys(...Array.from({ length: 8 }, () => ({ ...SECOND, kid: 'k' })), { ...FIRST, kid: 'k' })
  t.equal(await by('k'), 'credential-invalid: signature-invalid', 'the ninth is not tried')
  t.equal(await by('k', PAIRS.otherRsa), 'corp:alice')
  t.equal(issuer.fetches(), 1)
})
