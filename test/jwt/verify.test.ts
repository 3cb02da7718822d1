/** What a verification does beside its result, which test/auth and test/e2e try with real tokens. */
import { test } from 'tap'
import type { VerificationKey, Verifier } from '../../src/jwt/key.ts'
import { verifySigned } from '../../src/jwt/verify.ts'

const TOKEN = 'a.b.c'

function keyWith(verifier: Verifier): VerificationKey {
  return { kid: undefined, signatureBytes: null, fits: () => true, verifier: () => verifier }
}

const verified = (verifier: Verifier) =>
  verifySigned(TOKEN, { alg: 'RS256' }, ['RS256'], { find: () => Promise.resolve([keyWith(verifier)]) } as never)

void test('errors inside a verification have no stack traces, and others have theirs afterwards', async (t) => {
  const before = Error.stackTraceLimit
  const limits: number[] = []
  t.match(
    await verified(() => {
      limits.push(Error.stackTraceLimit)
      return { exp: 1 }
    }),
    { claims: { exp: 1 } },
  )
  t.equal(Error.stackTraceLimit, before, 'after a valid token')
  t.equal(
    await verified(() => {
      limits.push(Error.stackTraceLimit)
      throw new Error('the verifier fails')
    }),
    'token-malformed',
  )
  t.equal(Error.stackTraceLimit, before, 'after one that is not')
  t.same(limits, [0, 0])
})

void test('where the limit of stack traces cannot be changed, tokens are verified all the same', async (t) => {
  const before = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit') ?? {}
  Object.defineProperty(Error, 'stackTraceLimit', { ...before, writable: false })
  try {
    t.match(await verified(() => ({ exp: 1 })), { claims: { exp: 1 }, isExpired: false })
  } finally {
    Object.defineProperty(Error, 'stackTraceLimit', before)
  }
})
