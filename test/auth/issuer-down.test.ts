/** A gateway whose issuer is down: at start, later, and when it comes back; what /readyz, the metrics and the log say of it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'tap'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { FIRST, SECOND, startMisbehaving, type Misbehaving } from '../../testing/support/issuer-that-misbehaves.ts'
import { claims, PAIRS, token } from '../../testing/support/signing.ts'
import { until } from '../../testing/support/until.ts'

const UNAVAILABLE = '503 keys-unavailable, nothing upstream'
const FAILS = 'the issuer is unavailable: its last known keys stay valid for staleIfError'
const ANSWERS = 'the issuer is available again'
const FETCH_FAILED = 'the keys of an issuer could not be fetched'

const good = token({ alg: 'RS256', kid: 'k1' }, claims(), PAIRS.rsa.privateKey)
const unknown = token({ alg: 'RS256', kid: 'nope' }, claims(), PAIRS.rsa.privateKey)
const corpOf = ({ url }: Misbehaving) => ({ corp: { algorithms: ['RS256'], jwksUri: `${url}/jwks` } })
const text = async (url: string) => (await fetch(url)).text()

/** Moves the clock of this process, which goes on. */
function movedClock(t: Parameters<typeof startMisbehaving>[0]): { by: number } {
  const running = Date.now
  const moved = { by: 0 }
  Date.now = () => running() + moved.by
  t.teardown(() => void (Date.now = running))
  return moved
}

void test('with its issuer down the gateway starts, says in /readyz what is missing, answers 503, and recovers', async (t) => {
  const clock = movedClock(t)
  const issuer = await startMisbehaving(t)
  issuer.misbehave('answers 500')
  const { gateway, fate } = await guarded(t, corpOf(issuer))
  t.equal(await fate(good), UNAVAILABLE)
  const readyz = async () => {
    const answer = await fetch(`${gateway.healthUrl}/readyz`)
    return { status: answer.status, body: await answer.text() }
  }
  t.match(await readyz(), { status: 503, body: /keys:corp/ })
  const fetchedAt = async () => {
    const metrics = await text(`${gateway.healthUrl}/metrics`)
    return /^threadwarden_issuer_keys_fetched_timestamp_seconds\{issuer="corp"\} (.*)$/m.exec(metrics)?.[1]
  }
  t.match(await text(`${gateway.healthUrl}/metrics`), 'threadwarden_issuer_keys_stale{issuer="corp"} 0')
  t.equal(await fetchedAt(), undefined, 'no keys yet')
  t.equal((await fetch(`${gateway.healthUrl}/livez`)).status, 200)
  t.equal(issuer.fetches(), 1, 'within the pause it is not asked again')
  issuer.keys(FIRST)
  clock.by += 5000
  // Nobody has to come for it: the gateway looks by itself.
  await until(async () => (await readyz()).status === 200)
  t.equal(issuer.fetches(), 2)
  await until(async () => (await fetchedAt()) !== undefined)
  t.ok(Math.abs(Number(await fetchedAt()) - Date.now() / 1000) < 60)
  t.equal(await fate(good), PASSED)
  t.equal(await fate(unknown), REFUSED)
  t.same(gateway.lines.filter(({ msg }) => msg === FETCH_FAILED).length, 1)
})

void test('an issuer that fails later: good keys pass, the metric and one log line say so, and that it is over', async (t) => {
  const clock = movedClock(t)
  const issuer = await startMisbehaving(t)
  const { gateway, fate } = await guarded(t, corpOf(issuer), { authentication: { tokenCache: 0 } })
  const said = (msg: string) => gateway.lines.filter((line) => line['msg'] === msg && line['issuer'] === 'corp')
  const stale = async () => /^threadwarden_issuer_keys_stale\{issuer="corp"\} (\d)$/m.exec(await text(`${gateway.healthUrl}/metrics`))?.[1] // oxfmt-ignore
  await until(() => issuer.fetches() === 1)
  t.equal(await fate(good), PASSED)
  t.equal(await stale(), '0')
  issuer.misbehave('hangs up')
  clock.by += 600_001
  await until(async () => (await stale()) === '1')
  t.equal(await fate(good), PASSED)
  t.equal(await fate(unknown), UNAVAILABLE)
  t.equal((await fetch(`${gateway.healthUrl}/readyz`)).status, 200, 'it still serves')
  clock.by += 5000
  await until(() => issuer.fetches() === 3)
  t.equal(said(FAILS).length, 1, 'once, however often it fails')
  t.match(said(FAILS), [{ level: 'warn' }])
  t.equal(said(ANSWERS).length, 0)
  issuer.holdBack().letGo()
  clock.by += 5000
  await until(async () => (await stale()) === '0')
  t.equal(said(FAILS).length, 1)
  t.match(said(ANSWERS), [{ level: 'info' }])
  t.equal(await fate(unknown), REFUSED)
})

void test('keys that the gateway renews by itself: one that was taken back counts no more, remembered or not', async (t) => {
  const clock = movedClock(t)
  const issuer = await startMisbehaving(t)
  const { fate } = await guarded(t, corpOf(issuer))
  t.equal(await fate(good), PASSED)
  t.equal(await fate(good), PASSED)
  issuer.keys(SECOND)
  t.equal(await fate(good), PASSED)
  const { length } = issuer.fetched
  clock.by += 600_001
  await until(() => issuer.fetched.length > length)
  await until(async () => (await fate(good)) === REFUSED)
  const second = token({ alg: 'RS256', kid: 'k2' }, claims(), PAIRS.otherRsa.privateKey)
  t.equal(await fate(second), PASSED)
})

void test('one issuer that is down leaves the gateway not ready, and the tokens of others good', async (t) => {
  const [down, up] = [await startMisbehaving(t), await startMisbehaving(t)]
  down.misbehave('answers 500')
  const corp = corpOf(up).corp
  const { gateway, fate } = await guarded(t, {
    corp,
    down: { ...corp, issuer: 'https://down.example', jwksUri: `${down.url}/jwks` },
  })
  t.equal(
    await fate(token({ alg: 'RS256', kid: 'k1' }, claims({ iss: 'https://down.example' }), PAIRS.rsa.privateKey)),
    UNAVAILABLE,
  )
  t.equal(await fate(good), PASSED)
  const readyz = await text(`${gateway.healthUrl}/readyz`)
  t.match(readyz, 'keys:down')
  t.notMatch(readyz, 'keys:corp')
})

void test('a reload while the issuer is down: its keys stay unless what they depend on changes', async (t) => {
  const clock = movedClock(t)
  const issuer = await startMisbehaving(t)
  const { gateway, fate } = await guarded(t, corpOf(issuer), { authentication: { tokenCache: 0 } })
  const goodNow = () => {
    const now = Math.floor(Date.now() / 1000)
    return token({ alg: 'RS256', kid: 'k1' }, claims({ iat: now, exp: now + 60 }), PAIRS.rsa.privateKey)
  }
  t.equal(await fate(goodNow()), PASSED)
  issuer.misbehave('hangs up')
  const reloadWith = async (changes: object) => {
    const tree = JSON.parse(readFileSync(gateway.file, 'utf8')) as { authentication: { issuers: { corp: object } } }
    Object.assign(tree.authentication.issuers.corp, changes)
    writeFileSync(gateway.file, JSON.stringify(tree))
    t.match(await gateway.reload('SIGHUP'), { outcome: 'reloaded' })
  }
  await reloadWith({ staleIfError: '48h' })
  t.equal(await fate(goodNow()), PASSED)
  clock.by += 30 * 3_600_000
  t.equal(await fate(goodNow()), PASSED, 'as long as the raised value says')
  await reloadWith({ requiredClaims: { '/sub': null } })
  t.equal(await fate(goodNow()), PASSED)
  clock.by += 19 * 3_600_000
  t.equal(await fate(goodNow()), UNAVAILABLE, 'no reload makes the keys younger')
  clock.by -= 19 * 3_600_000
  t.equal(await fate(goodNow()), PASSED)
  await reloadWith({ algorithms: ['RS256', 'RS384'] })
  t.equal(await fate(goodNow()), UNAVAILABLE)
})
