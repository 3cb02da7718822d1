/** A token that fails in several respects has one reason in the log; `credential-expired` is said only where nothing else is wrong. */
import { test } from 'tap'
import { heard, rsaGate } from '../../testing/support/gates.ts'
import { claims, PAIRS, token, type Part } from '../../testing/support/signing.ts'

const PAST = { iat: 1000, exp: 2000 }
const FUTURE = Math.floor(Date.now() / 1000) + 3600
const OTHER = { aud: 'other' }

void test('the reason is what comes first, and an end in the past comes last', async (t) => {
  const authenticate = rsaGate(t)
  for (const [changes, key, expected] of [
    [{}, 'rsa', 'corp:alice'],
    [PAST, 'rsa', 'credential-expired: token-expired'],
    [{ ...PAST, ...OTHER }, 'rsa', 'credential-invalid: audience-mismatch'],
    [{ ...PAST, nbf: FUTURE }, 'rsa', 'credential-invalid: token-not-yet-valid'],
    [{ ...PAST, nbf: FUTURE, ...OTHER }, 'rsa', 'credential-invalid: token-not-yet-valid'],
    [PAST, 'otherRsa', 'credential-invalid: signature-invalid'],
    [{ ...PAST, ...OTHER }, 'otherRsa', 'credential-invalid: signature-invalid'],
    [OTHER, 'otherRsa', 'credential-invalid: signature-invalid'],
    [OTHER, 'rsa', 'credential-invalid: audience-mismatch'],
    [{ nbf: FUTURE, ...OTHER }, 'rsa', 'credential-invalid: token-not-yet-valid'],
    [{ exp: undefined }, 'rsa', 'credential-invalid: claim-missing'],
    [{ exp: 8.64e12 }, 'rsa', 'corp:alice'],
    [{ exp: 8.64e12 + 1 }, 'rsa', 'credential-invalid: claim-missing'],
  ] as const satisfies readonly (readonly [Part, 'rsa' | 'otherRsa', string])[]) {
    const sent = token({ alg: 'RS256' }, claims(changes), PAIRS[key].privateKey)
    t.equal(await heard(authenticate, sent), expected, JSON.stringify([changes, key]))
  }
})
