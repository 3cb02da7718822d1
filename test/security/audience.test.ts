/**
 * A token that was made for another service. Every service of a company takes tokens of one issuer; what keeps those of one
 * from opening the next is the audience alone. It is compared whole, in the one claim that is configured, and a claim that
 * is missing or of another type fits nobody.
 *
 * RFC 8725 §3.9 and RFC 7519 §4.1.3; CVE-2020-26160 (jwt-go: a list of audiences switched the check off),
 * GHSA-hcxc-wf8j-23hv (OpenFGA: no check where none was configured).
 */
import { test } from 'tap'
import { heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { claims, PAIRS, pemOf } from '../../testing/support/signing.ts'

const PUBLIC = { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) }
const MISMATCH = 'credential-invalid: audience-mismatch'

/** For one of the audiences `chat` and `agents`. */
const FITTING = ['chat', 'agents', ['chat'], ['other', 'agents'], ['chat', 'agents'], ['chat', 'chat'], ['', 'chat'], Array(50).fill('chat')] // oxfmt-ignore

/** For none of them. */
// oxfmt-ignore
const OTHERS: readonly unknown[] = [
  'other', '', ' ', '*', '.*', 'Chat', 'CHAT', 'chat ', ' chat', 'chat\n', 'chat\0', 'chat\u200b', '\u0441hat', 'cha', 'hat', 'c', 'chats', 'chat-admin', 'chat/', 'chat#', 'https://chat',
  'chat,agents', 'chat agents', 'chat|agents', '["chat"]', '{"chat":1}', 'agent', 'null', 'undefined', 'constructor', 'includes', '0', 'corp',
  [], [[]], ['other'], ['Chat'], ['chat '], ['chat,agents'], [''], [' '], ['*'], [['chat']], [['chat'], 'other'], ['cha', 't'], [...'chat'], [{ chat: 1 }], [{ aud: 'chat' }],
  // With one member of another type nobody can say what the list was meant to be.
  ['chat', 1], [1, 'chat'], ['chat', null], [null, 'chat'], ['chat', ['agents']], ['chat', {}], ['chat', true],
  { chat: 1 }, { aud: 'chat' }, { 0: 'chat', length: 1 }, { toString: 'chat' }, { includes: 'chat' }, {}, 1, 0, true, false, null,
]

void test('an audience is a string or a list of strings that names one of ours', async (t) => {
  const authenticate = rsaGate(t, { audiences: ['chat', 'agents'] })
  const told = (aud: unknown) => heard(authenticate, rsaToken(claims({ aud })))
  for (const aud of FITTING) t.equal(await told(aud), 'corp:alice', JSON.stringify(aud))
  for (const aud of [...OTHERS, undefined]) t.equal(await told(aud), MISMATCH, JSON.stringify(aud))
})

void testFirstPair('over the real gateway, a token for another service reaches nothing', async (t, pair) => {
  const { fate, upstream } = await guarded(t, { corp: { ...PUBLIC, audiences: ['chat', 'agents'] } }, { pair })
  for (const aud of FITTING) t.equal(await fate(rsaToken(claims({ aud }))), PASSED, JSON.stringify(aud))
  for (const aud of [...OTHERS, undefined]) t.equal(await fate(rsaToken(claims({ aud }))), REFUSED, JSON.stringify(aud))
  t.equal(upstream.requests.length, FITTING.length)
})

void testFirstPair('an audience in another claim, under another name or on a prototype is none', async (t, pair) => {
  const { fate, upstream } = await guarded(t, { corp: PUBLIC }, { pair })
  for (const name of ['azp', 'client_id', 'audience', 'AUD', 'Aud', 'aud ', '/aud', 'resource', 'scope'])
    t.equal(await fate(rsaToken(claims({ aud: undefined, [name]: 'chat' }))), REFUSED, name)
  const text = JSON.stringify(claims({ aud: 'other' }))
  t.equal(await fate(rsaToken(text.replace('"aud":"other"', '"__proto__":{"aud":"chat"}'))), REFUSED)
  t.equal(await fate(rsaToken(text.replace('"aud"', '"aud":"chat","aud"'))), REFUSED, 'the last of two counts')
  t.equal(await fate(rsaToken(claims({ aud: 'other' }), { aud: 'chat' })), REFUSED, 'in the header')
  t.same(upstream.requests, [])
  t.equal(await fate(rsaToken(claims())), PASSED)
})

void testFirstPair('the audiences of one issuer are not those of another', async (t, pair) => {
  const other = 'https://other.example'
  const { fate } = await guarded(
    t,
    {
      corp: { ...PUBLIC, audiences: ['chat'] },
      other: { ...PUBLIC, issuer: other, audiences: ['files'] },
    },
    { pair },
  )
  t.equal(await fate(rsaToken(claims({ aud: 'chat' }))), PASSED)
  t.equal(await fate(rsaToken(claims({ iss: other, aud: 'files' }))), PASSED)
  t.equal(await fate(rsaToken(claims({ aud: 'files' }))), REFUSED)
  t.equal(await fate(rsaToken(claims({ iss: other, aud: 'chat' }))), REFUSED)
})

void test('the audience may be in another claim, and only there then', async (t) => {
  const clerk = rsaGate(t, { audienceClaim: '/azp' })
  t.equal(await heard(clerk, rsaToken(claims({ azp: 'chat', aud: undefined }))), 'corp:alice')
  t.equal(await heard(clerk, rsaToken(claims({ aud: 'chat' }))), MISMATCH)
  t.equal(await heard(clerk, rsaToken(claims({ azp: 'other', aud: 'chat' }))), MISMATCH)
  const nested = rsaGate(t, { audienceClaim: '/ext/https:~1~1example.com~1aud/0' })
  t.equal(await heard(nested, rsaToken(claims({ ext: { 'https://example.com/aud': ['chat'] } }))), 'corp:alice')
  for (const ext of [{}, 'chat', ['chat'], { 'https://example.com/aud': [] }, { 'https://example.com/aud': { 0: ['x'] } }, null])
    t.equal(await heard(nested, rsaToken(claims({ ext }))), MISMATCH, JSON.stringify(ext))
  const cognito = rsaGate(t, { audienceClaim: '/constructor/name', audiences: ['Object'] })
  t.equal(await heard(cognito, rsaToken(claims())), MISMATCH, 'no prototype has one')
})
