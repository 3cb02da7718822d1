/**
 * Tokens out of their time: expired, not yet valid, without an end, or with one that is no number, so that a comparison is
 * skipped or comes out wrong. A token is held against the clock at every request, with the configured tolerance and no
 * more, and that it was good a moment ago counts for nothing.
 *
 * RFC 7519 §4.1.4-4.1.6; CVE-2026-44459 (Hono: values that are no dates passed), CVE-2026-25537 (jsonwebtoken for Rust: a
 * claim of the wrong type was as if it were not there), CVE-2026-35039 (fast-jwt: a cache that answers for another token).
 */
import { test, type Test } from 'tap'
import { heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { openRaw } from '../../testing/support/raw.ts'
import { claims, PAIRS, pemOf, type Part } from '../../testing/support/signing.ts'
import { until } from '../../testing/support/until.ts'

const CORP = { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } }
const HOUR = 3600
const EXPIRED = 'credential-expired: token-expired'
const EARLY = 'credential-invalid: token-not-yet-valid'

/** Stops the clock of this process; `seconds` moves it. */
function stoppedClock(t: Test): { readonly now: number; seconds: number } {
  const now = Math.floor(Date.now() / 1000)
  const clock = { now, seconds: now }
  const running = Date.now
  Date.now = () => Math.round(clock.seconds * 1000)
  t.teardown(() => void (Date.now = running))
  return clock
}

/** Good claims whose `name` is this text of JSON. */
const withText = (name: string, text: string, more: Part = {}): string =>
  JSON.stringify({ ...claims(more), [name]: 'TEXT' }).replace('"TEXT"', () => text)

for (const [tolerance, seconds] of [
  ['0s', 0],
  ['500ms', 0.5],
  ['30s', 30],
  ['10m', 600],
] as const) {
  void test(`with a tolerance of ${tolerance} a token counts so much longer and earlier, and not a millisecond more`, async (t) => {
    const { now } = stoppedClock(t)
    const authenticate = rsaGate(t, {}, { clockTolerance: tolerance })
    const told = (changes: Part) => heard(authenticate, rsaToken(claims(changes)))
    t.equal(await told({ exp: now - seconds + 0.002 }), 'corp:alice')
    t.equal(await told({ exp: now - seconds - 0.002 }), EXPIRED)
    t.equal(await told({ exp: now - seconds - 1 }), EXPIRED)
    t.equal(await told({ nbf: now + seconds - 0.002 }), 'corp:alice')
    t.equal(await told({ nbf: now + seconds + 0.002 }), EARLY)
    t.equal(await told({ nbf: now + seconds + 1 }), EARLY)
    t.equal(await told({ nbf: now + seconds + HOUR, exp: now + seconds + 2 * HOUR }), EARLY)
  })
}

/** Ends that are none, as they stand in the payload. */
// oxfmt-ignore
const NO_ENDS = [
  '"4102444800"', '"4102444800.0"', '"2099-01-01"', '"2099-01-01T00:00:00Z"', '"never"', '"NaN"', '"Infinity"', '"1e99"', '""', '" "', '"0"',
  'true', 'false', 'null', '[]', '{}', '[4102444800]', '[[4102444800]]', '["4102444800"]', '{"$date":4102444800}', '{"valueOf":4102444800}',
  // Beyond the last time that a date can hold; 1e400 is read as infinity (CVE-2026-44459, Hono).
  '1e400', '1e300', '8640000000001',
  // No JSON at all.
  'NaN', 'Infinity', '-Infinity', 'undefined', '0xffffffff', '04102444800', '+4102444800', '4102444800n', '4_102_444_800', '4102444800.', '.5e10', '1e', 'new Date()',
]

/** Ends that are long past. */
const PAST_ENDS = ['0', '-0', '1', '-1', '0.5', '1e-400', '1e9', '1000000000.5', '-4102444800', '-1e12']

void testFirstPair('an end that is no number is none, and a token without one is refused', async (t, pair) => {
  const authenticate = rsaGate(t)
  const { fate, upstream } = await guarded(t, CORP, { pair })
  t.equal(await fate(rsaToken(claims())), PASSED)
  t.equal(await fate(rsaToken(withText('exp', '4102444800'))), PASSED)
  t.equal(await fate(rsaToken(withText('exp', '4102444800.75'))), PASSED, 'a part of a second')
  t.equal(await fate(rsaToken(withText('exp', '4.1024448e9'))), PASSED, 'any spelling of a number')
  const bad = [...NO_ENDS.map((text) => withText('exp', text)), JSON.stringify(claims({ exp: undefined }))]
  bad.push(...['Exp', 'EXP', 'exp ', 'expires', 'expiresAt', 'ttl'].map((name) => JSON.stringify(claims({ exp: undefined, [name]: 4102444800 })))) // oxfmt-ignore
  bad.push(withText('exp', '1').replace('"exp":1', '"__proto__":{"exp":4102444800}'))
  for (const text of bad) {
    t.match(await heard(authenticate, rsaToken(text)), /^credential-invalid/, text)
    t.equal(await fate(rsaToken(text)), REFUSED, text)
  }
  t.equal(await fate(rsaToken(claims({ exp: undefined }), { exp: 4102444800 })), REFUSED, 'in the header')
  t.equal(upstream.requests.length, 4)
})

void testFirstPair('an end that is past is past, however it is written', async (t, pair) => {
  const authenticate = rsaGate(t)
  const { fate, upstream } = await guarded(t, CORP, { pair })
  for (const text of PAST_ENDS) {
    t.equal(await heard(authenticate, rsaToken(withText('exp', text))), EXPIRED, text)
    t.equal(await fate(rsaToken(withText('exp', text))), '401 credential-expired, nothing upstream', text)
  }
  // Of two the last counts, as everywhere in the token.
  t.equal(await heard(authenticate, rsaToken(withText('exp', '4102444800,"exp":1'))), EXPIRED)
  t.match(await heard(authenticate, rsaToken(withText('exp', '-1e300'))), /^credential-/, 'a date that there is none of')
  t.same(upstream.requests, [])
})

void testFirstPair(
  'a beginning that is no number, or still to come, is refused; one that is past changes nothing',
  async (t, pair) => {
    const authenticate = rsaGate(t)
    const { fate, upstream } = await guarded(t, CORP, { pair })
    for (const text of [...NO_ENDS, '4102444800', '4102444800.5', '1e12', '1e300', '1e400', '0,"nbf":4102444800']) {
      t.match(await heard(authenticate, rsaToken(withText('nbf', text))), /^credential-invalid/, text)
      t.equal(await fate(rsaToken(withText('nbf', text))), REFUSED, text)
    }
    t.same(upstream.requests, [])
    for (const text of PAST_ENDS) t.equal(await fate(rsaToken(withText('nbf', text))), PASSED, text)
  },
)

void test('when a token was issued neither lengthens nor shortens its time', async (t) => {
  const { now } = stoppedClock(t)
  const authenticate = rsaGate(t)
  for (const iat of [now + HOUR, 4102444800, 0, -1, now - 1000 * HOUR]) {
    t.equal(await heard(authenticate, rsaToken(claims({ iat }))), 'corp:alice', String(iat))
    t.equal(await heard(authenticate, rsaToken(claims({ iat, exp: now - HOUR }))), EXPIRED, String(iat))
    t.equal(await heard(authenticate, rsaToken(claims({ iat, nbf: now + HOUR }))), EARLY, String(iat))
  }
})

void test('credential-expired is said only of a token that is good in every other respect', async (t) => {
  const authenticate = rsaGate(t)
  const exp = Math.floor(Date.now() / 1000) - HOUR
  t.equal(await heard(authenticate, rsaToken(claims({ exp }))), EXPIRED)
  for (const more of [
    { aud: 'other' },
    { aud: undefined },
    { iss: 'https://evil.example.com/' },
    { nbf: exp + 2 * HOUR },
    { nbf: 'x' },
  ])
    t.match(await heard(authenticate, rsaToken(claims({ exp, ...more }))), 'credential-invalid', JSON.stringify(more))
  const forged = rsaToken(claims({ exp })).replace(/\.[^.]+$/, `.${'A'.repeat(342)}`)
  t.match(await heard(authenticate, forged), 'credential-invalid')
})

void testFirstPair('every request checks its token against the clock, also on the same connection', async (t, pair) => {
  const clock = stoppedClock(t)
  const { gateway, upstream } = await guarded(t, CORP, { pair, authentication: { clockTolerance: '0s' } })
  const { now } = clock
  const token = rsaToken(claims({ nbf: now, exp: now + 60 }))
  const connection = await openRaw(gateway.url)
  let answers = 0
  const answer = async (): Promise<string> => {
    connection.write(gateway.bytes({ target: '/api/copilotkit/info', token, keepAlive: true }))
    answers += 1
    // Every answer ends with a closing brace, in a chunk or not.
    await until(() => connection.text().split('HTTP/1.1').length > answers && /\}(?:\r\n0\r\n\r\n)?$/.test(connection.text()))
    const text = connection.text()
    return text.slice(text.lastIndexOf('HTTP/1.1')).slice(9, 12)
  }
  const told: string[] = []
  for (const seconds of [-1, 0.001, 30, 59.9, 60.1, 3600, 1, 59, 61, -1, 30]) {
    clock.seconds = now + seconds
    told.push(`${seconds}: ${await answer()}`)
  }
  connection.destroy()
  t.same(told, ['-1: 401', '0.001: 200', '30: 200', '59.9: 200', '60.1: 401', '3600: 401', '1: 200', '59: 200', '61: 401', '-1: 401', '30: 200']) // oxfmt-ignore
  t.equal(upstream.requests.length, 6)
})

void testFirstPair('that one token was good says nothing of another, whatever they share', async (t, pair) => {
  const { fate, upstream } = await guarded(t, CORP, { pair })
  const good = rsaToken(claims({ jti: 'one' }))
  const exp = Math.floor(Date.now() / 1000) - HOUR
  for (const other of [claims({ jti: 'one', exp }), claims({ jti: 'one', aud: 'other' }), claims({ jti: 'one', iss: 'x' })]) {
    t.equal(await fate(good), PASSED)
    t.match(await fate(rsaToken(other)), /^401 .* nothing upstream$/, JSON.stringify(other))
  }
  const [header = '', payload = '', signature = ''] = good.split('.')
  const forged = Buffer.from(JSON.stringify(claims({ jti: 'one', sub: 'bob' }))).toString('base64url')
  t.equal(await fate(`${header}.${forged}.${signature}`), REFUSED, 'the same signature')
  t.equal(await fate(`${header}.${payload}.${signature.slice(0, -8)}AAAAAAAA`), REFUSED, 'the same beginning')
  t.equal(upstream.requests.length, 3)
})
