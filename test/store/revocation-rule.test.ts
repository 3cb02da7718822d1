/** Whether a credential is revoked: the same answer as the rule in src/core/decide/credential.ts gives, without walking the list. */
import fc from 'fast-check'
import { test } from 'tap'
import type { Credential, Revocation } from '../../src/core/decide/credential.ts'
import type { RevocationList } from '../../src/store/port/revocations.ts'
import { makeRevocationList } from '../../src/store/revocations.ts'

/**
 * The rule, by going through all of them; the list has to say the same without.
 * @param userId whose it is
 */
function isRevoked(userId: string, { tokenId, issuedAt }: Credential, revocations: readonly Revocation[]): boolean {
  return revocations.some((revocation) => {
    if (revocation.kind === 'token') return revocation.tokenId === tokenId
    if (revocation.userId !== userId) return false
    // A token that does not say when it was issued may have been before.
    return revocation.before === null || issuedAt === undefined || issuedAt < revocation.before
  })
}

const NONE: Credential = { tokenId: undefined, issuedAt: undefined, expiresAt: undefined }

/** The list of a store that has these, however they came to be there. */
async function stoppedListOf(all: readonly Revocation[]): Promise<RevocationList> {
  const list = await makeRevocationList({ revocations: async () => all, revocationsVersion: async () => 1 })
  list.stop()
  return list
}

void test('a credential is revoked exactly where the rule says so, however long the list', async (t) => {
  const id = fc.constantFrom('a', 'b', 'c', 'corp:a')
  const time = fc.integer({ min: -3, max: 3 })
  const revocation: fc.Arbitrary<Revocation> = fc.oneof(
    fc.record({ kind: fc.constant('token' as const), tokenId: id, revokedAt: time }),
    fc.record({ kind: fc.constant('user' as const), userId: id, before: fc.option(time), revokedAt: time }),
  )
  const credential = fc.record({
    tokenId: fc.option(id, { nil: undefined }),
    issuedAt: fc.oneof(fc.option(time, { nil: undefined }), fc.constantFrom(NaN, Infinity)),
    expiresAt: fc.constant(undefined),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(revocation), id, credential, async (all, userId, credential) => {
      const list = await stoppedListOf(all)
      return list.isRevoked(userId, credential) === isRevoked(userId, credential, all)
    }),
    { numRuns: 2000 },
  )
  t.pass('always')
})

void test('a question does not look through the list', async (t) => {
  const all = Array.from({ length: 100_000 }, (_, at): Revocation => ({ kind: 'token', tokenId: `j-${at}`, revokedAt: 1 }))
  let touched = 0
  // Whoever walks the list has to touch it.
  const watched = new Proxy(all, {
    get(target, name) {
      touched += 1
      return Reflect.get(target, name) as unknown
    },
  })
  const list = await stoppedListOf(watched)
  t.ok(touched > 0)
  touched = 0
  t.equal(list.isRevoked('corp:alice', { ...NONE, tokenId: 'j-99999' }), true)
  t.equal(list.isRevoked('corp:alice', { ...NONE, tokenId: 'j' }), false)
  t.equal(touched, 0)
})
