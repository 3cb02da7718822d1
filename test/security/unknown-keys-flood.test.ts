/**
 * Two thousand requests, each with a key id that nobody has: whatever state the issuer is in, that is one fetch, then none for
 * five seconds, and a good token passes meanwhile. jwks-flood.test.ts has the same over the real gateway, with fewer.
 *
 * coreos/go-oidc#482, camunda/camunda#60462 (a fetch for every unknown id); brandonrc/mobula#28 (no pause after an empty set).
 */
import { randomBytes } from 'node:crypto'
import { test, type Test } from 'tap'
import { gate, heard } from '../../testing/support/gates.ts'
import { startMisbehaving } from '../../testing/support/issuer-that-misbehaves.ts'
import { assembled, claims, PAIRS, token } from '../../testing/support/signing.ts'
import { until } from '../../testing/support/until.ts'

const COOL_DOWN = 5000
const MANY = 2000
const UNKNOWN = 'credential-invalid: key-unknown'
const UNAVAILABLE = 'keys-unavailable: keys-unavailable'

/** The states that an issuer can be in while it answers, with what becomes of an unknown key id. */
const STATES: readonly (readonly [name: string, way: string | null, answer: string])[] = [
  ['is up', null, UNKNOWN],
  ...['hangs up', 'answers 500', 'has an empty set', 'sends garbage', 'redirects', 'sends too much'].map(
    (way) => [way, way, UNAVAILABLE] as const,
  ),
]

async function scene(t: Test) {
  const issuer = await startMisbehaving(t)
  const time = { now: 1_000_000 }
  const config = { corp: { algorithms: ['RS256'], jwksUri: `${issuer.url}/jwks` } }
  const authenticate = gate(t, config, { clock: () => time.now })
  const payload = JSON.stringify(claims())
  const good = token({ alg: 'RS256', kid: 'k1' }, payload, PAIRS.rsa.privateKey)
  // Nothing is verified without a key: any signature does.
  const unknown = () => JSON.stringify({ alg: 'RS256', kid: randomBytes(12).toString('base64url') })
  const flood = () =>
    Promise.all(Array.from({ length: MANY }, () => heard(authenticate, assembled(unknown(), payload, Buffer.alloc(256)))))
  return { issuer, time, good: () => heard(authenticate, good), flood }
}

for (const [name, way, answer] of STATES) {
  void test(`two thousand unknown key ids while the issuer ${name} are one fetch in five seconds`, async (t) => {
    const { issuer, time, good, flood } = await scene(t)
    t.equal(await good(), 'corp:alice')
    t.same(new Set(await flood()), new Set([UNKNOWN]), 'a pause follows the first fetch, too')
    t.equal(issuer.fetches(), 1)
    if (way !== null) issuer.misbehave(way)
    for (const fetches of [2, 3]) {
      time.now += COOL_DOWN
      t.same(new Set(await flood()), new Set([answer]))
      t.equal(issuer.fetches(), fetches)
      time.now += COOL_DOWN - 1
      t.same(new Set(await flood()), new Set([answer]))
      t.equal(issuer.fetches(), fetches, 'none before the pause is over')
      t.equal(await good(), 'corp:alice')
    }
  })

  if (way === null) continue
  void test(`two thousand unknown key ids while an issuer that was never reached ${name}`, async (t) => {
    const { issuer, time, good, flood } = await scene(t)
    issuer.misbehave(way)
    for (const fetches of [1, 2]) {
      t.same(new Set(await flood()), new Set([UNAVAILABLE]))
      t.equal(issuer.fetches(), fetches)
      time.now += COOL_DOWN - 1
      t.same(new Set([...(await flood()), await good()]), new Set([UNAVAILABLE]))
      t.equal(issuer.fetches(), fetches)
      time.now += 1
    }
  })
}

void test('two thousand unknown key ids while the issuer is slow wait for one fetch, and a known key for none', async (t) => {
  const { issuer, time, good, flood } = await scene(t)
  await good()
  time.now += COOL_DOWN
  const { letGo } = issuer.holdBack()
  const waiting = [flood(), flood()]
  await until(() => issuer.fetches() === 2)
  for (let more = 0; more < 3; more += 1) {
    t.equal(await good(), 'corp:alice')
    time.now += COOL_DOWN
    waiting.push(flood())
  }
  letGo()
  for (const answers of await Promise.all(waiting)) t.same(new Set(answers), new Set([UNKNOWN]))
  t.equal(issuer.fetches(), 2)
  // The pause begins when the fetch ends.
  time.now += COOL_DOWN - 1
  await flood()
  t.equal(issuer.fetches(), 2)
})
