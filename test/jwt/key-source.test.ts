/**
 * How long the keys of an issuer are good: as fetched for keyCache, and for staleIfError while it fails; a key that was taken
 * out of the set goes with the next fetch. Rotation needs no restart, and the pauses are of a clock that the test moves.
 */
import { test, type Test } from 'tap'
import { makeFetching } from '../../src/auth/fetching.ts'
import { keyFromJwk } from '../../src/jwt/key.ts'
import { fixedKeys, remoteKeys, type KnownKeys } from '../../src/jwt/key-source.ts'
import { FIRST, SECOND, startMisbehaving } from '../../testing/support/issuer-that-misbehaves.ts'
import { until } from '../../testing/support/until.ts'

const COOL_DOWN = 5000
const MINUTE = 60_000
const RULES = { issuer: 'https://login.example.com/', clockTolerance: 0 }

/** A source with a minute of keyCache and an hour of staleIfError; `ids` gives the key ids that it has for a token. */
async function scene(t: Test, { cacheFor = MINUTE, staleIfError = 60 * MINUTE, known = null as KnownKeys | null, now = 0 } = {}) {
  const issuer = await startMisbehaving(t)
  const time = { now }
  const failures: string[] = []
  const fetching = makeFetching(issuer.url, { insecureHttp: false })
  const begun: string[] = []
  const source = remoteKeys({
    at: { jwksUri: `${issuer.url}/jwks` },
    fetching: {
      ...fetching,
      get: (uri) => {
        begun.push(uri)
        return fetching.get(uri)
      },
    },
    read: (jwk) => keyFromJwk(jwk, ['RS256'], RULES),
    cacheFor,
    staleIfError,
    known,
    clock: () => time.now,
    onFailure: (message) => void failures.push(message),
  })
  const ids = async (kid?: string) => {
    const found = await source.find(kid)
    return found === 'unavailable' ? found : found.map((key) => key.kid)
  }
  const isTrusted = () => time.now >= source.trustedFrom && time.now <= source.trustedUntil
  const state = () => ({ ready: source.ready(), stale: source.stale(), trusted: isTrusted() })
  return { issuer, begun, time, failures, source, ids, state }
}

const NONE = { ready: false, stale: false, trusted: false }
const GOOD = { ready: true, stale: false, trusted: true }
const STALE = { ready: true, stale: true, trusted: true }

void test('the last good keys serve for staleIfError while the issuer fails, and not a millisecond longer', async (t) => {
  const { issuer, time, failures, ids, state } = await scene(t)
  t.same(state(), NONE)
  t.same(await ids('k1'), ['k1'])
  t.same(state(), GOOD)
  issuer.misbehave('answers 500')
  time.now = MINUTE + 1
  t.same(await ids('k1'), ['k1'], 'due, and still good')
  await until(() => failures.length === 1)
  t.same(state(), STALE)
  time.now = 60 * MINUTE
  t.same(await ids('k1'), ['k1'])
  t.same(await ids(), ['k1'])
  await until(() => failures.length === 2)
  time.now += 1
  t.equal(state().trusted, false)
  t.equal(await ids('k1'), 'unavailable')
  t.equal(await ids(), 'unavailable')
  t.equal(await ids('nope'), 'unavailable')
  issuer.keys(FIRST)
  time.now += COOL_DOWN
  t.same(await ids('k1'), ['k1'])
  t.same(state(), GOOD)
})

void test('staleIfError is counted from the last good fetch', async (t) => {
  const { issuer, time, source, ids, state } = await scene(t)
  await ids()
  time.now = 30 * MINUTE
  source.renew()
  await until(() => source.version === 2)
  issuer.misbehave('hangs up')
  time.now = 90 * MINUTE
  t.equal(state().trusted, true)
  time.now += 1
  t.equal(state().trusted, false)
})

void test('a staleIfError of nothing ends with keyCache', async (t) => {
  const { issuer, time, ids, state } = await scene(t, { staleIfError: 0 })
  await ids()
  issuer.misbehave('answers 500')
  time.now = MINUTE
  t.same(await ids('k1'), ['k1'])
  time.now += 1
  t.equal(await ids('k1'), 'unavailable')
  t.equal(state().trusted, false)
})

void test('a request with a known key does not wait for the fetch of newer ones', async (t) => {
  const { issuer, time, ids } = await scene(t)
  await ids()
  const { letGo } = issuer.holdBack()
  time.now = MINUTE + 1
  t.same(await ids('k1'), ['k1'])
  letGo()
})

void test('keys are renewed when they are older than keyCache, not before, and with the pause between', async (t) => {
  const { issuer, begun, time, failures, source, ids } = await scene(t)
  await ids()
  for (const now of [0, COOL_DOWN, MINUTE]) {
    time.now = now
    source.renew()
  }
  t.equal(begun.length, 1)
  time.now = MINUTE + 1
  source.renew()
  source.renew()
  await until(() => source.version === 2)
  t.equal(issuer.fetches(), 2)
  issuer.misbehave('sends garbage')
  time.now += MINUTE + 1
  source.renew()
  await until(() => failures.length === 1)
  time.now += COOL_DOWN - 1
  source.renew()
  t.equal(begun.length, 3)
  time.now += 1
  source.renew()
  await until(() => failures.length === 2)
  t.equal(issuer.fetches(), 4)
})

void test('a key that was taken out of the set is gone when it is renewed, and a new one is there, without a restart', async (t) => {
  const { issuer, time, source, ids } = await scene(t)
  issuer.keys(FIRST, SECOND)
  t.same(await ids(), ['k1', 'k2'])
  issuer.keys(SECOND)
  time.now = MINUTE
  t.same(await ids('k1'), ['k1'], 'within keyCache it is taken as it was fetched')
  time.now += 1
  source.renew()
  await until(() => source.version === 2)
  t.same(await ids('k1'), [])
  t.same(await ids('k2'), ['k2'])
  t.same(await ids(), ['k2'])
  issuer.keys(FIRST, SECOND)
  time.now += COOL_DOWN
  t.same(await ids('k1'), ['k1'], 'a new one is looked for at once')
})

void test('the key-set version changes with every good fetch, and with no other', async (t) => {
  const { issuer, time, failures, source, ids } = await scene(t)
  t.equal(source.version, 0)
  await ids()
  await ids('k1')
  t.equal(source.version, 1)
  issuer.misbehave('answers 500')
  time.now += COOL_DOWN
  t.equal(await ids('nope'), 'unavailable')
  t.equal(source.version, 1)
  issuer.keys(FIRST)
  time.now += COOL_DOWN
  t.same(await ids('nope'), [])
  t.equal(source.version, 2)
  t.equal(failures.length, 1)
})

void test('an unknown key id is unavailable while the issuer fails, and unknown as soon as it answers', async (t) => {
  const { issuer, time, ids, state } = await scene(t)
  t.same(await ids('nope'), [])
  issuer.misbehave('redirects')
  t.same(await ids('nope'), [], 'it was asked a moment ago')
  time.now += COOL_DOWN
  t.equal(await ids('nope'), 'unavailable')
  t.equal(await ids('nope'), 'unavailable', 'also within the pause')
  t.same(state(), STALE)
  issuer.keys(FIRST)
  time.now += COOL_DOWN
  t.same(await ids('nope'), [])
  t.same(state(), GOOD)
})

void test('keys that were never had are not stale, however the issuer fails', async (t) => {
  const { issuer, failures, ids, state } = await scene(t)
  issuer.misbehave('answers 500')
  t.equal(await ids(), 'unavailable')
  t.equal(failures.length, 1)
  t.same(state(), NONE)
})

void test('renewing before anything was asked fetches, too', async (t) => {
  const { issuer, source, state } = await scene(t)
  source.renew()
  await until(() => source.ready())
  t.same(state(), GOOD)
  t.equal(issuer.fetches(), 1)
})

void test('keys of the configuration are always good, and never change', async (t) => {
  const source = fixedKeys([])
  source.renew()
  t.same([source.ready(), source.stale(), source.version], [true, false, 0])
  t.same([source.trustedFrom, source.trustedUntil], [-Infinity, Infinity])
  t.same(await source.find('any'), [])
})

void test('a clock that is set back neither keeps old keys nor holds up new ones', async (t) => {
  const { issuer, time, ids } = await scene(t)
  time.now = 5 * 24 * 60 * MINUTE
  t.same(await ids('k1'), ['k1'])
  issuer.keys(SECOND)
  time.now = 0
  t.same(await ids('k1'), [], 'fetched anew: it was taken out')
  t.same(await ids('k2'), ['k2'])
})

void test('an issuer that has failed is asked again after the pause, though its keys are not due', async (t) => {
  const { issuer, time, source, ids, state } = await scene(t)
  t.same(await ids('k1'), ['k1'])
  issuer.misbehave('answers 500')
  time.now = COOL_DOWN
  t.equal(await ids('unknown'), 'unavailable')
  t.same(state(), STALE)
  issuer.keys(FIRST)
  time.now += COOL_DOWN
  source.renew()
  await until(() => !source.stale())
  t.same(state(), GOOD)
})

void test('the keys of an earlier source serve from their own fetch on, until the first fetch, which comes at once', async (t) => {
  const earlier = await scene(t)
  earlier.time.now = 1000
  await earlier.ids('k1')
  const { known } = earlier.source

  const late = await scene(t, { known, staleIfError: 10 * MINUTE, now: 1000 + 10 * MINUTE })
  late.issuer.misbehave('answers 500')
  t.same(late.state(), GOOD)
  late.time.now += 1
  t.equal(late.state().trusted, false, 'not for longer than since their own fetch')
  t.same(await late.ids('k1'), 'unavailable')
  late.time.now = 999
  t.equal(late.state().trusted, false, 'nor for a clock that was set back')

  const { issuer, begun, ids, source } = await scene(t, { known, now: 1001 })
  issuer.keys(SECOND)
  t.same(await ids('k1'), ['k1'])
  t.same(begun, [], 'it has no need of a fetch')
  source.renew()
  t.equal(begun.length, 1, 'and makes one, because a key may have been withdrawn')
  await until(async () => (await ids('k2')).length === 1)
  t.same(await ids('k1'), [])
})

void test('a source that begins with keys too old for it has none until it fetches some', async (t) => {
  const earlier = await scene(t)
  await earlier.ids()
  const { known } = earlier.source
  const { issuer, ids, state } = await scene(t, { known, staleIfError: 0, now: MINUTE + 1 })
  t.same(state(), NONE)
  issuer.misbehave('answers 500')
  t.same(await ids('k1'), 'unavailable')
  t.same(state(), NONE, 'neither ready nor stale')
  const raised = await scene(t, { known, staleIfError: 2 * MINUTE, now: MINUTE + 1 })
  t.equal(raised.state().ready, true, 'and they are not lost for one that may use them')
  issuer.keys(FIRST)
  const again = await scene(t, { known, staleIfError: 0, now: MINUTE + 1 })
  t.same(await again.ids('k1'), ['k1'])
  t.same(again.state(), GOOD)
})

void test('what a source learns after another has taken its place holds for both', async (t) => {
  const earlier = await scene(t)
  await earlier.ids()
  const { letGo } = earlier.issuer.holdBack()
  earlier.time.now = COOL_DOWN
  const asked = earlier.ids('k2')

  const later = await scene(t, { known: earlier.source.known, now: COOL_DOWN })
  t.same(await later.ids('k1'), ['k1'])
  const { version } = later.source
  letGo({ body: { keys: [SECOND] } })
  t.same(await asked, ['k2'])
  later.issuer.misbehave('answers 500')
  later.source.renew()
  await until(() => later.failures.length === 1)
  t.same(await later.ids('k1'), 'unavailable', 'withdrawn')
  t.same(await later.ids('k2'), ['k2'])
  t.not(later.source.version, version, 'results with the withdrawn key count no more')
  t.same(earlier.state(), STALE)
})

void test('an answer that comes after the answer to a later question changes nothing', async (t) => {
  for (const late of [{ body: { keys: [FIRST] } }, { status: 500 }]) {
    const earlier = await scene(t)
    const { letGo } = earlier.issuer.holdBack()
    const asked = earlier.ids()
    const later = await scene(t, { known: earlier.source.known })
    later.issuer.keys(SECOND)
    t.same(await later.ids(), ['k2'])
    letGo(late)
    t.same(await asked, ['k2'])
    t.same(later.state(), GOOD)
  }
})

void test('an issuer that was failing is so for the next source, too, until it answers', async (t) => {
  const earlier = await scene(t)
  await earlier.ids()
  earlier.issuer.misbehave('answers 500')
  earlier.time.now = COOL_DOWN
  await earlier.ids('nope')
  const { source, state } = await scene(t, { known: earlier.source.known })
  t.same(state(), STALE)
  source.renew()
  await until(() => !source.stale())
  t.same(state(), GOOD)
})
