/**
 * Rules with an empty meaning "any": an audience that was never configured is not checked, a list that came out empty
 * allows everything, a star stands for all. Algorithms, issuer and audience have to be said, each with something in it, or
 * the gateway does not start; and what is said is compared to the letter.
 *
 * CVE-2026-55689, GHSA-hcxc-wf8j-23hv (OpenFGA: no audience configured, none checked); CVE-2022-23540 (jsonwebtoken:
 * without algorithms, `none` was one); RFC 8725 §3.1, §3.8, §3.9.
 */
import { test } from 'tap'
import { faultPaths } from '../../testing/support/configuration.ts'
import { gate, heard, ISSUER, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { startTestGateway } from '../../testing/support/gateway.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { claims, PAIRS, pemOf, signedAs, token } from '../../testing/support/signing.ts'

const KEYS = ['issuer', 'audiences', 'algorithms'] as const
const PATH = 'authentication.issuers.corp'
/** An environment in which a deployment left things out. */
const SURROUNDINGS = { environment: { EMPTY: '', LIST: '[]' }, files: { 'empty.txt': '\n' } }

/** Ways to say nothing. */
// oxfmt-ignore
const NOTHING: readonly unknown[] = [
  undefined, null, '', [], {}, [''], [null], [[]], [{}], 0, 1, true, false, ['chat', ''], ['', 'chat'], ['chat', null], ['chat', 1], '${env:EMPTY}', ['${env:EMPTY}'],
  '${env:MISSING}', ['${env:MISSING}'], ['chat', '${env:EMPTY}'], '${file:empty.txt}', ['${file:empty.txt}'], '${file:missing.txt}', { 0: 'chat' }, { any: true },
]

for (const key of KEYS) {
  void test(`an issuer says its ${key}, and something in it`, (t) => {
    for (const value of NOTHING) {
      const [first] = faultPaths({ [`${PATH}.${key}`]: value }, SURROUNDINGS)
      t.match(first, new RegExp(`^${PATH}\\.${key}(?:$|\\.)`), JSON.stringify(value))
    }
    t.end()
  })
}

void test('a list is a list: no text with names in it, and no name for all', (t) => {
  for (const key of ['audiences', 'algorithms'])
    for (const value of ['chat', 'chat,agents', 'RS256', '*', 'any', 'all', '[]', '["RS256"]', '${env:LIST}'])
      t.match(faultPaths({ [`${PATH}.${key}`]: value }, SURROUNDINGS)[0], `${PATH}.${key}`, `${key}: ${value}`)
  t.same(faultPaths({}, SURROUNDINGS), [], 'the honest one is valid')
  t.end()
})

// oxfmt-ignore
for (const algorithm of ['none', 'None', 'NONE', '', ' ', '*', 'RS*', 'any', 'all', 'rs256', 'RS256 ', ' RS256', 'RS1', 'RS', 'ES256K', 'RSA-OAEP', 'dir', 'HS1', 'RS256,ES256', 'null']) {
  void test(`"${algorithm}" is no algorithm`, (t) => {
    t.match(faultPaths({ [`${PATH}.algorithms`]: ['RS256', algorithm] })[0], `${PATH}.algorithms.1`)
    t.match(faultPaths({ [`${PATH}.algorithms`]: [algorithm] })[0], `${PATH}.algorithms.0`)
    t.end()
  })
}

void test('other names for the three are unknown keys, not the three', (t) => {
  for (const [key, other] of [
    ['issuer', 'iss'],
    ['issuer', 'issuers'],
    ['audiences', 'audience'],
    ['audiences', 'aud'],
    ['algorithms', 'algorithm'],
    ['algorithms', 'alg'],
    ['algorithms', 'Algorithms'],
  ] as const) {
    const paths = faultPaths({ [`${PATH}.${key}`]: undefined, [`${PATH}.${other}`]: ['chat'] })
    t.ok(paths.includes(`${PATH}.${key}`), `${other} for ${key}`)
    t.ok(paths.length > 1, `${other} is unknown`)
  }
  t.end()
})

void test('a switch that turns a check off is an unknown key', (t) => {
  for (const key of [
    'skipAudience',
    'ignoreAudience',
    'verifyAudience',
    'skipIssuerCheck',
    'ignoreExpiration',
    'allowAny',
    'insecure',
    'clockTolerance',
    'typ',
  ])
    t.match(faultPaths({ [`${PATH}.${key}`]: true }), [new RegExp(`^${PATH}`)], key)
  t.end()
})

void test('a gateway without one of the three does not start', async (t) => {
  const honest = {
    issuer: 'https://login.example.com/',
    audiences: ['chat'],
    algorithms: ['RS256'],
    jwksUri: 'http://127.0.0.1:1/jwks',
  }
  const start = (corp: object) =>
    startTestGateway({ upstream: { url: 'http://127.0.0.1:1', transport: 'multi-route' }, authentication: { issuers: { corp } } })
  const started = await start(honest)
  await started.close()
  for (const key of KEYS) {
    for (const value of [undefined, null, '', [], [''], ['${env:THIS_IS_NOT_SET}'], {}])
      await t.rejects(start({ ...honest, [key]: value }), new RegExp(`${PATH}\\.${key}`), `${key}: ${JSON.stringify(value)}`)
  }
})

void testFirstPair('a token without one of the three is refused, however good the rest', async (t, pair) => {
  const { fate, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  t.equal(await fate(rsaToken(claims())), PASSED)
  for (const claim of ['iss', 'aud', 'exp']) {
    for (const value of [undefined, null, '', [], {}, 0, false]) {
      const answer = await fate(rsaToken(claims({ [claim]: value })))
      const expired = claim === 'exp' && value === 0
      t.equal(answer, expired ? '401 credential-expired, nothing upstream' : REFUSED, `${claim}: ${JSON.stringify(value)}`)
    }
  }
  for (const alg of [undefined, null, '', [], {}, 0])
    t.equal(
      await fate(signedAs('RS256', JSON.stringify({ alg }), claims(), PAIRS.rsa.privateKey)),
      REFUSED,
      `alg: ${JSON.stringify(alg)}`,
    )
  t.equal(upstream.requests.length, 1)
})

/** What other gates read as a pattern. */
const PATTERNS = [
  '**',
  '.*',
  '^.*$',
  '/.*/',
  '%',
  '?',
  'ch*',
  'c?at',
  '*chat',
  'chat|agents',
  '/chat/',
  '[a-z]+',
  '(chat)',
  'any',
  'null',
]

void test('a blank or a star is refused, and so are blanks around a name', (t) => {
  for (const value of ['*', ' ', '\t', '\n', '\u00a0', 'chat ', ' chat', 'chat\n', '\ufeffchat']) {
    t.same(faultPaths({ [`${PATH}.audiences`]: [value] }), [`${PATH}.audiences.0`], JSON.stringify(value))
    t.same(faultPaths({ [`${PATH}.audiences`]: ['chat', value] }), [`${PATH}.audiences.1`], JSON.stringify(value))
    const jwksUri = 'https://login.example.com/jwks'
    t.same(faultPaths({ [`${PATH}.issuer`]: value, [`${PATH}.jwksUri`]: jwksUri }), [`${PATH}.issuer`], JSON.stringify(value))
  }
  t.end()
})

void test('a pattern stands for itself', async (t) => {
  for (const pattern of PATTERNS) {
    const audience = rsaGate(t, { audiences: [pattern] })
    for (const aud of ['chat', 'agents', '', ['chat'], ['chat', 'agents'], [], undefined, null, true])
      t.equal(
        await heard(audience, rsaToken(claims({ aud }))),
        'credential-invalid: audience-mismatch',
        `${pattern}: ${String(aud)}`,
      )
    t.equal(await heard(audience, rsaToken(claims({ aud: pattern }))), 'corp:alice', `${pattern} to the letter`)
    const issuer = rsaGate(t, { issuer: pattern })
    for (const iss of [ISSUER, 'https://evil.example', '', undefined, null, 'chat'])
      t.equal(await heard(issuer, rsaToken(claims({ iss }))), 'credential-invalid: issuer-unknown', `${pattern}: ${String(iss)}`)
    t.equal(await heard(issuer, rsaToken(claims({ iss: pattern }))), 'corp:alice', `${pattern} to the letter`)
  }
  for (const wide of ['https://*.example.com/', 'https://login.example.com/*', 'https://login.example.com/{tenant}'])
    t.match(await heard(rsaGate(t, { issuer: wide }), rsaToken(claims())), 'issuer-unknown', wide)
})

void test('with several audiences and algorithms, those pass and no others', async (t) => {
  const publicKey = pemOf(PAIRS.rsa.publicKey)
  const authenticate = gate(t, { corp: { algorithms: ['RS256', 'PS512'], audiences: ['chat', 'agents'], publicKey } })
  const told = (alg: string, aud: string) => heard(authenticate, token({ alg }, claims({ aud }), PAIRS.rsa.privateKey))
  for (const alg of ['RS256', 'PS512']) {
    t.equal(await told(alg, 'chat'), 'corp:alice')
    t.equal(await told(alg, 'agents'), 'corp:alice')
    t.equal(await told(alg, 'files'), 'credential-invalid: audience-mismatch')
  }
  for (const alg of ['RS384', 'RS512', 'PS256', 'PS384'])
    t.equal(await told(alg, 'chat'), 'credential-invalid: algorithm-not-allowed')
})
