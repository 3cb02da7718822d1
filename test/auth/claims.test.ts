/** What a verified token must say: issuer, audience and times. `credential-expired` is said only where nothing else is wrong. */
import { test } from 'tap'
import { heard, rsaGate, rsaToken } from './gates.ts'
import { claims, type Part } from './signing.ts'

const now = (): number => Math.floor(Date.now() / 1000)
const HOUR = 3600

for (const claim of ['iss', 'aud', 'exp']) {
  void test(`a token without ${claim} is refused`, async (t) => {
    t.match(await heard(rsaGate(t), rsaToken(claims({ [claim]: undefined }))), /^credential-invalid/)
    t.match(await heard(rsaGate(t), rsaToken(claims({ [claim]: null }))), /^credential-invalid/)
  })
}

void test('an expiry that is no number is none', async (t) => {
  for (const exp of [String(now() + HOUR), '2099-01-01', true, [now() + HOUR], {}]) {
    t.match(await heard(rsaGate(t), rsaToken(claims({ exp }))), /^credential-invalid/, JSON.stringify(exp))
  }
})

void test('an issuer that is not configured is refused, and so is one that is nearly', async (t) => {
  for (const iss of [
    'https://evil.example.com/',
    'https://login.example.com',
    'HTTPS://login.example.com/',
    '',
    1,
    ['https://login.example.com/'],
  ]) {
    t.match(await heard(rsaGate(t), rsaToken(claims({ iss }))), /^credential-invalid/, JSON.stringify(iss))
  }
})

void test('times count with the clock tolerance and not beyond it', async (t) => {
  const authenticate = rsaGate(t, {}, { clockTolerance: '10m' })
  const told = (changes: Part) => heard(authenticate, rsaToken(claims(changes)))
  t.equal(await told({ exp: now() - 300 }), 'corp:alice')
  t.equal(await told({ exp: now() - 900 }), 'credential-expired: token-expired')
  t.equal(await told({ nbf: now() + 300 }), 'corp:alice')
  t.equal(await told({ nbf: now() + 900 }), 'credential-invalid: token-not-yet-valid')
  const strict = rsaGate(t, {}, { clockTolerance: '0s' })
  t.equal(await heard(strict, rsaToken(claims({ exp: now() - 2 }))), 'credential-expired: token-expired')
  t.match(await told({ nbf: 'tomorrow' }), /^credential-invalid/)
})

void test('credential-expired is said only of a token that is good in every other respect', async (t) => {
  const authenticate = rsaGate(t)
  const exp = now() - HOUR
  t.equal(await heard(authenticate, rsaToken(claims({ exp }))), 'credential-expired: token-expired')
  t.match(await heard(authenticate, rsaToken(claims({ exp, aud: 'other' }))), 'credential-invalid')
  t.match(await heard(authenticate, rsaToken(claims({ exp, aud: undefined }))), 'credential-invalid')
  t.match(await heard(authenticate, rsaToken(claims({ exp, iss: 'https://evil.example.com/' }))), 'credential-invalid')
  t.match(await heard(authenticate, rsaToken(claims({ exp, nbf: now() + HOUR }))), 'credential-invalid')
  const forged = rsaToken(claims({ exp })).replace(/\.[^.]+$/, `.${'A'.repeat(342)}`)
  t.match(await heard(authenticate, forged), 'credential-invalid')
})

void test('an audience is a string or a list of strings that names one of ours', async (t) => {
  const authenticate = rsaGate(t, { audiences: ['chat', 'agents'] })
  const told = (aud: unknown) => heard(authenticate, rsaToken(claims({ aud })))
  for (const aud of ['chat', 'agents', ['chat'], ['other', 'agents']]) t.equal(await told(aud), 'corp:alice', JSON.stringify(aud))
  for (const aud of ['other', 'Chat', 'chat ', 'chat,agents', '', [], ['other'], ['chat', 1], [['chat']], { chat: 1 }, 1, true]) {
    t.equal(await told(aud), 'credential-invalid: audience-mismatch', JSON.stringify(aud))
  }
})

void test('the audience may be in another claim, and only there then', async (t) => {
  const clerk = rsaGate(t, { audienceClaim: '/azp' })
  t.equal(await heard(clerk, rsaToken(claims({ azp: 'chat', aud: undefined }))), 'corp:alice')
  t.match(await heard(clerk, rsaToken(claims({ aud: 'chat' }))), 'credential-invalid')
  t.match(await heard(clerk, rsaToken(claims({ azp: 'other', aud: 'chat' }))), 'credential-invalid')
  const nested = rsaGate(t, { audienceClaim: '/ext/https:~1~1example.com~1aud/0' })
  t.equal(await heard(nested, rsaToken(claims({ ext: { 'https://example.com/aud': ['chat'] } }))), 'corp:alice')
})
