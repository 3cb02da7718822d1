/** What claims are held against besides the signature: age, required claims, and the tolerance of clocks of each issuer. */
import { test, type Test } from 'tap'
import type { Authenticated } from '../../src/auth/authenticate.ts'
import { gate, heard, ISSUER, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { claims, PAIRS, pemOf, type Part } from '../../testing/support/signing.ts'

const MISSING = 'credential-invalid: claim-missing'
const OLD = 'credential-invalid: token-too-old'

/** Stops the clock of this process. */
function stoppedClock(t: Test): number {
  const now = Math.floor(Date.now() / 1000)
  const running = Date.now
  Date.now = () => now * 1000
  t.teardown(() => void (Date.now = running))
  return now
}

void test('maxTokenAge: a token that was issued longer ago is refused, with the tolerance of clocks', async (t) => {
  const now = stoppedClock(t)
  for (const [clockTolerance, seconds] of [
    ['0s', 0],
    ['30s', 30],
  ] as const) {
    const authenticate = rsaGate(t, { maxTokenAge: '10m', clockTolerance })
    const told = (iat: unknown) => heard(authenticate, rsaToken(claims({ iat })))
    t.equal(await told(now), 'corp:alice')
    t.equal(await told(now - 600 - seconds), 'corp:alice')
    t.equal(await told(now - 600 - seconds - 0.001), OLD)
    t.equal(await told(now - 600 - seconds - 1), OLD)
    t.equal(await told(0), OLD)
    t.equal(await told(-1e12), OLD)
    t.equal(await told(now + seconds), 'corp:alice')
    t.equal(await told(now + seconds + 1), 'credential-invalid: token-not-yet-valid', 'nor can it be younger than now')
  }
})

void test('maxTokenAge: a token that does not say when it was issued is refused', async (t) => {
  const [strict, lax] = [rsaGate(t, { maxTokenAge: '10m' }), rsaGate(t)]
  t.equal(await heard(strict, rsaToken(claims({ iat: undefined }))), MISSING)
  t.equal(await heard(lax, rsaToken(claims({ iat: undefined }))), 'corp:alice')
  for (const iat of ['4102444800', null, true, [], {}, 8.65e12]) {
    t.match(await heard(strict, rsaToken(claims({ iat }))), /^credential-invalid/, JSON.stringify(iat))
  }
  t.match(
    await heard(strict, rsaToken(JSON.stringify(claims({ iat: 0 })).replace('"iat":0', '"iat":1e400'))),
    /^credential-invalid/,
  )
})

void test('maxTokenAge: the credential ends when the token is too old, or before that, with the tolerance', async (t) => {
  const now = stoppedClock(t)
  const authenticate = rsaGate(t, { maxTokenAge: '10m', clockTolerance: '30s' })
  const ends = async (changes: Part) => {
    const answer = await authenticate(`Bearer ${rsaToken(claims(changes))}`)
    return answer.outcome === 'refused' ? answer.reason : (answer.credential?.expiresAt ?? 0) / 1000 - now
  }
  t.equal(await ends({ iat: now, exp: now + 3600 }), 630)
  t.equal(await ends({ iat: now - 60, exp: now + 3600 }), 570)
  t.equal(await ends({ iat: now, exp: now + 60 }), 90)
  t.equal(await ends({ iat: now, exp: now - 29 }), 1)
})

void test('clockTolerance is of each issuer, and else that of all', async (t) => {
  const now = stoppedClock(t)
  const issuer = { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) }
  const strict = 'https://strict.example'
  const lax = 'https://lax.example'
  const authenticate = gate(
    t,
    {
      corp: issuer,
      strict: { ...issuer, issuer: strict, clockTolerance: '0s' },
      lax: { ...issuer, issuer: lax, clockTolerance: '5m' },
    },
    { clockTolerance: '30s' },
  )
  const told = (iss: string, changes: Part) => heard(authenticate, rsaToken(claims({ iss, ...changes })))
  for (const [iss, key, seconds] of [
    [ISSUER, 'corp', 30],
    [strict, 'strict', 0],
    [lax, 'lax', 300],
  ] as const) {
    t.equal(await told(iss, { exp: now - seconds + 1 }), `${key}:alice`)
    t.equal(await told(iss, { exp: now - seconds - 1 }), 'credential-expired: token-expired', key)
    t.equal(await told(iss, { nbf: now + seconds }), `${key}:alice`)
    t.equal(await told(iss, { nbf: now + seconds + 1 }), 'credential-invalid: token-not-yet-valid', key)
  }
})

/** What is required of the claim `/tier`, with values that are it and values that are not. */
const RULES: readonly (readonly [wanted: unknown, good: readonly unknown[], bad: readonly unknown[]])[] = [
  ['gold', ['gold'], ['Gold', 'gold ', '', 'silver', ['gold'], { gold: true }, null, undefined, true, 1]],
  ['', [''], [' ', null, undefined, 0, false, []]],
  [1, [1, 1.0], ['1', true, 2, [1], null, undefined]],
  [0, [0], ['', false, null, undefined, '0']],
  [true, [true], ['true', 1, 'yes', [true], null, undefined]],
  [false, [false], ['false', 0, '', null, undefined]],
  [
    ['gold', 'silver', 3],
    ['gold', 'silver', 3],
    ['bronze', '3', ['gold'], ['gold', 'silver', 3], 'gold,silver', null, undefined],
  ],
  [null, ['gold', '', 0, false, true, [], {}], [null, undefined]],
]

for (const [wanted, good, bad] of RULES) {
  void test(`requiredClaims: ${JSON.stringify(wanted)} is wanted`, async (t) => {
    const authenticate = rsaGate(t, { requiredClaims: { '/tier': wanted } })
    for (const tier of good) t.equal(await heard(authenticate, rsaToken(claims({ tier }))), 'corp:alice', JSON.stringify(tier))
    for (const tier of bad) t.equal(await heard(authenticate, rsaToken(claims({ tier }))), MISSING, JSON.stringify({ tier }))
  })
}

void test('requiredClaims: each has to be there, where its pointer says', async (t) => {
  const authenticate = rsaGate(t, { requiredClaims: { '/realm/tier': 'gold', '/email_verified': true, '/a~1b': null } })
  const all = { realm: { tier: 'gold' }, email_verified: true, 'a/b': 1 }
  t.equal(await heard(authenticate, rsaToken(claims(all))), 'corp:alice')
  for (const without of [
    { realm: undefined },
    { realm: 'gold' },
    { realm: { Tier: 'gold' } },
    { realm: undefined, 'realm/tier': 'gold' },
    { email_verified: 'true' },
    { 'a/b': undefined, a: { b: 1 } },
  ])
    t.equal(await heard(authenticate, rsaToken(claims({ ...all, ...without }))), MISSING, JSON.stringify(without))
  t.equal(await heard(authenticate, rsaToken(claims(), all)), MISSING, 'in the header')
})

void test('requiredClaims: nothing that every object has is a claim', async (t) => {
  for (const pointer of ['/constructor', '/toString', '/__proto__', '/realm/length']) {
    const authenticate = rsaGate(t, { requiredClaims: { [pointer]: null } })
    t.equal(await heard(authenticate, rsaToken(claims({ realm: 'gold' }))), MISSING, pointer)
  }
})

void test('a time of issue that is still to come says nothing, so a revocation of what came before does not miss it', async (t) => {
  const now = stoppedClock(t)
  const authenticate = rsaGate(t, { clockTolerance: '30s' })
  const issuedAt = async (iat: number) =>
    ((await authenticate(`Bearer ${rsaToken(claims({ iat }))}`)) as Authenticated).credential?.issuedAt
  t.equal(await issuedAt(now + 30), (now + 30) * 1000)
  t.equal(await issuedAt(now + 31), undefined)
  t.equal(await issuedAt(4102444800), undefined)
})
