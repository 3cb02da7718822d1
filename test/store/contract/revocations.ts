/**
 * Revocations: what was revoked stays so until it is lifted, never becomes narrower, and its version tells every other
 * process.
 */
import type { Revocation } from '../../../src/core/decide/credential.ts'
import { LOOKALIKES, NOW, type Holds } from './under-test.ts'

const TOKEN: Revocation = { kind: 'token', tokenId: 'j-1', revokedAt: NOW }
const ofUser = (before: number | null, revokedAt = NOW): Revocation => ({ kind: 'user', userId: 'corp:alice', before, revokedAt })

/** The part of the contract. */
export function revocationContract(holds: Holds): void {
  rows(holds)
  wideness(holds)
  versions(holds)
}

function rows(holds: Holds): void {
  holds('what was revoked is listed until it is lifted', async (t, { store }) => {
    t.same(await store.revocations(), [])
    await store.revoke(TOKEN)
    await store.revoke(ofUser(NOW))
    t.same(new Set(await store.revocations()), new Set([TOKEN, ofUser(NOW)]))
    t.equal(await store.lift({ tokenId: 'j-1' }), true)
    t.same(await store.revocations(), [ofUser(NOW)])
    t.equal(await store.lift({ userId: 'corp:alice' }), true)
    t.same(await store.revocations(), [])
    t.equal(await store.lift({ userId: 'corp:alice' }), false, 'and there is nothing left to lift')
  })

  holds('a token and a user of the same name are two', async (t, { store }) => {
    await store.revoke({ kind: 'token', tokenId: 'corp:alice', revokedAt: NOW })
    t.equal(await store.lift({ userId: 'corp:alice' }), false)
    await store.revoke(ofUser(null))
    t.equal(await store.lift({ tokenId: 'corp:alice' }), true)
    t.same(await store.revocations(), [ofUser(null)])
  })

  holds('revoked ids compare byte for byte', async (t, { store }) => {
    const ids = LOOKALIKES
    for (const tokenId of ids) await store.revoke({ kind: 'token', tokenId, revokedAt: NOW })
    for (const id of ids) await store.revoke({ kind: 'user', userId: id, before: null, revokedAt: NOW })
    t.equal((await store.revocations()).length, 2 * ids.length)
    for (const [at, tokenId] of ids.entries()) {
      t.equal(await store.lift({ tokenId }), true, tokenId)
      t.equal((await store.revocations()).length, 2 * ids.length - at - 1)
    }
    t.same(
      (await store.revocations()).map((one) => one.kind === 'user' && one.userId).sort(),
      [...ids].sort(),
      'and those of users are all there',
    )
  })

  holds('what one connection revokes or lifts, another sees at once', async (t, { store, connect }) => {
    const other = await connect()
    await store.revoke(TOKEN)
    t.same(await other.revocations(), [TOKEN])
    t.equal(await other.lift({ tokenId: 'j-1' }), true)
    t.same(await store.revocations(), [])
  })

  holds('of many revocations at once none is lost', async (t, { store, connect }) => {
    const stores = [store, await connect(), await connect()]
    const ids = Array.from({ length: 60 }, (_, at) => `j-${at}`)
    await Promise.all(ids.map((tokenId, at) => (stores[at % 3] ?? store).revoke({ kind: 'token', tokenId, revokedAt: NOW })))
    t.same((await store.revocations()).map((one) => one.kind === 'token' && one.tokenId).sort(), [...ids].sort())
    t.equal(await store.revocationsVersion(), await stores[2]?.revocationsVersion())
  })
}

function wideness(holds: Holds): void {
  holds('the same again is one row, as it was', async (t, { store }) => {
    await store.revoke(TOKEN)
    await store.revoke({ ...TOKEN, revokedAt: NOW + 1 })
    await store.revoke(ofUser(NOW))
    await store.revoke(ofUser(NOW, NOW + 1))
    t.same(new Set(await store.revocations()), new Set([TOKEN, ofUser(NOW)]))
  })

  for (const [first, second, stays] of [
    [NOW, NOW + 1, 'second'],
    [NOW, NOW - 1, 'first'],
    [0, null, 'second'],
    [null, 0, 'first'],
    [null, NOW + 1, 'first'],
    [-1, 0, 'second'],
  ] as const) {
    holds(`of two about a user, before ${String(first)} and then ${String(second)}, the ${stays} stays`, async (t, { store }) => {
      await store.revoke(ofUser(first, NOW))
      await store.revoke(ofUser(second, NOW + 5))
      t.same(await store.revocations(), [stays === 'first' ? ofUser(first, NOW) : ofUser(second, NOW + 5)])
    })
  }

  holds('one user does not widen another', async (t, { store }) => {
    const bob: Revocation = { kind: 'user', userId: 'corp:bob', before: NOW, revokedAt: NOW }
    await store.revoke(bob)
    await store.revoke(ofUser(null))
    t.same(new Set(await store.revocations()), new Set([bob, ofUser(null)]))
  })

  holds('after a lift a narrower one is taken as it is', async (t, { store }) => {
    await store.revoke(ofUser(null))
    await store.lift({ userId: 'corp:alice' })
    await store.revoke(ofUser(NOW))
    t.same(await store.revocations(), [ofUser(NOW)])
  })
}

function versions(holds: Holds): void {
  holds(
    'the version is another after each change, for every connection, and no version comes again',
    async (t, { store, connect }) => {
      const other = await connect()
      const seen = [await other.revocationsVersion()]
      for (const change of [
        () => store.revoke(TOKEN),
        () => store.revoke(ofUser(NOW)),
        () => store.lift({ tokenId: 'j-1' }),
        () => store.lift({ userId: 'corp:alice' }),
        () => store.revoke(TOKEN),
      ]) {
        await change()
        seen.push(await other.revocationsVersion())
        t.equal(await store.revocationsVersion(), seen.at(-1))
      }
      t.equal(new Set(seen).size, seen.length)
    },
  )

  holds('the version stays where nothing changed', async (t, { store }) => {
    await store.revoke(TOKEN)
    const version = await store.revocationsVersion()
    await store.revocations()
    await store.lift({ tokenId: 'j-2' })
    t.equal(await store.revocationsVersion(), version)
  })
}
