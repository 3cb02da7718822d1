/** The gateway's assertion in an agent: which is good, that no other is, and that it is good for one thread. */
import { test } from 'tap'
import { ASSERTION_HEADER, expectThread, makeAssertionVerifier, NotAuthenticated } from '../../src/sdk/agent/index.ts'
import { PAIRS, pemOf, type Part } from '../../testing/support/signing.ts'
import { assertion, ASSERTION_TRUST, fate, forged, userToken } from './credentials.ts'

const verify = makeAssertionVerifier(ASSERTION_TRUST)
const now = Math.floor(Date.now() / 1000)

void test('a good assertion gives the user and the thread', async (t) => {
  const alice = {
    ...{ user_id: 'corp:alice', name: 'Alice', role: 'member', roles: ['member', 'tester'] },
    ...{ permissions: ['threads:read'], thread: 't1' },
  }
  t.same(await verify({ [ASSERTION_HEADER]: assertion() }), alice)
  t.same(await verify(new Headers({ 'X-Threadwarden-Assertion': assertion() })), alice)
})

void test('it may stand in another header, or in place of the token', async (t) => {
  const elsewhere = makeAssertionVerifier({ ...ASSERTION_TRUST, header: 'X-Who' })
  t.equal(await fate(elsewhere({ 'x-who': assertion() })), 'corp:alice')
  t.match(await fate(elsewhere({ [ASSERTION_HEADER]: assertion() })), /credential-missing/)
  const instead = makeAssertionVerifier({ ...ASSERTION_TRUST, header: 'Authorization' })
  t.equal(await fate(instead({ authorization: `Bearer ${assertion()}` })), 'corp:alice')
  t.match(await fate(instead({ authorization: assertion() })), /scheme-not-bearer/)
  t.match(await fate(verify({ authorization: `Bearer ${assertion()}` })), /credential-missing/)
})

const REFUSED: readonly (readonly [name: string, assertion: () => string, fate: string])[] = [
  ['expired', () => assertion({ exp: now - 10 }), 'credential-expired token-expired'],
  ['without an end', () => assertion({ exp: undefined }), 'credential-invalid claim-missing'],
  ['for another audience', () => assertion({ aud: 'chat' }), 'credential-invalid audience-mismatch'],
  ['of another gateway', () => assertion({ iss: 'https://other.example.com' }), 'credential-invalid issuer-unknown'],
  ['signed by another', forged.otherGateway, 'credential-invalid signature-invalid'],
  ['signed in another way', forged.otherCurve, 'credential-invalid algorithm-not-allowed'],
  [
    'signed with the public key',
    () => forged.confusedAssertion(pemOf(PAIRS.p256.publicKey)),
    'credential-invalid algorithm-not-allowed',
  ],
  ['unsigned', () => forged.unsignedAssertion('none'), 'credential-invalid algorithm-not-allowed'],
  ['without its signature', () => forged.unsignedAssertion('ES256'), 'credential-invalid token-malformed'],
  ...['JWT', 'at+jwt', 'Threadwarden+jwt', 'application/threadwarden+jwt', undefined, null].map(
    (typ) => [`of the type ${String(typ)}`, () => assertion({}, { typ }), 'credential-invalid token-type'] as const,
  ),
  ['that is a user’s token', () => userToken(), 'credential-invalid token-type'],
  ['that is a user’s token with the type', () => userToken({}, { typ: 'threadwarden+jwt' }), 'credential-invalid issuer-unknown'],
  ['about nobody', () => assertion({ sub: undefined }), 'credential-invalid user-id-invalid'],
  ['after a scheme', () => `Bearer ${assertion()}`, 'credential-invalid token-malformed'],
  ['twice in one header', () => `${assertion()}, ${assertion()}`, 'credential-invalid token-malformed'],
]

for (const [name, make, expected] of REFUSED) {
  void test(`an assertion ${name} is refused`, async (t) => {
    t.equal(await fate(verify({ [ASSERTION_HEADER]: make() })), `NotAuthenticated ${expected}`)
  })
}

void test('two headers are refused, and none', async (t) => {
  t.match(await fate(verify({ [ASSERTION_HEADER]: [assertion(), assertion()] })), /header-repeated/)
  t.match(await fate(verify({})), /credential-missing/)
})

void test('roles and permissions of a wrong type grant nothing', async (t) => {
  const user = await verify({ [ASSERTION_HEADER]: assertion({ role: { 0: 'admin' }, permissions: ['x', 1], name: undefined }) })
  t.same(user, { user_id: 'corp:alice', roles: [], permissions: [], thread: 't1' })
})

void test('with a scope it is good for that upstream alone', async (t) => {
  const told = (scope: string, changes: Part) =>
    fate(makeAssertionVerifier({ ...ASSERTION_TRUST, scope })({ [ASSERTION_HEADER]: assertion(changes) }))
  const refused = 'NotAuthenticated credential-invalid scope-mismatch'
  t.equal(await told('legal', { scope: 'legal' }), 'corp:alice')
  t.equal(await told('', { scope: '' }), 'corp:alice')
  for (const scope of [undefined, null, '', 'Legal', 'legal ', 'other', ['legal'], 0, false, {}]) {
    t.equal(await told('legal', { scope }), refused, JSON.stringify(scope))
  }
  for (const scope of [undefined, null, 'legal', [], 0, false]) t.equal(await told('', { scope }), refused, JSON.stringify(scope))
  // `credential-expired` is said only of what is good in every other respect.
  t.equal(await told('legal', { scope: 'other', exp: now - 60 }), refused)
  t.equal(await told('legal', { scope: 'legal', exp: now - 60 }), 'NotAuthenticated credential-expired token-expired')
  for (const scope of [undefined, '', 'legal'])
    t.equal(await fate(verify({ [ASSERTION_HEADER]: assertion({ scope }) })), 'corp:alice', 'without one any is')
})

void test('an assertion is good for its thread alone', async (t) => {
  const user = await verify({ [ASSERTION_HEADER]: assertion() })
  expectThread(user, 't1')
  const expected = { name: 'NotAuthenticated', code: 'other-thread' }
  for (const threadId of ['t2', 'T1', 't1 ', '']) t.throws(() => expectThread(user, threadId), expected)
  t.ok(Object.isFrozen(user))
})

void test('an assertion that names no thread is good for none', async (t) => {
  for (const thread of [undefined, null, '', 1, ['t1']]) {
    const user = await verify({ [ASSERTION_HEADER]: assertion({ thread }) })
    t.notOk('thread' in user)
    // From plain JavaScript.
    for (const threadId of ['t1', '', undefined as unknown as string]) {
      t.throws(() => expectThread(user, threadId), NotAuthenticated)
    }
  }
})
