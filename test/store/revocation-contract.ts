/**
 * What the gateway rests on in every store of revocations, whichever database is behind it: what was revoked stays so until
 * it is lifted, never becomes narrower, and its version tells every other process. A store's own test file hands in a
 * factory and runs all of this.
 */
import { test, type Test } from 'tap'
import type { Revocation } from '../../src/core/credential.ts'
import { StoreUnavailable, type RevocationStore } from '../../src/store/port.ts'

/** A store as a process has it open. */
export type Connection = RevocationStore & { close(): Promise<void> }

/** A store of its own for one test, with nothing in it. */
export interface RevocationsUnderTest {
  readonly store: Connection
  /** Another connection to the same data, as another process would have it. */
  readonly connect: () => Connection
  /** Closes everything and takes the data away. */
  readonly remove: () => Promise<void>
}

type Holds = (promise: string, body: (t: Test, parts: RevocationsUnderTest) => Promise<void>) => void

const NOW = 1_700_000_000_000
const TOKEN: Revocation = { kind: 'token', tokenId: 'j-1', revokedAt: NOW }
const ofUser = (before: number | null, revokedAt = NOW): Revocation => ({ kind: 'user', userId: 'corp:alice', before, revokedAt })

/** Runs the contract against the stores that `make` gives. */
export function revocationContract(name: string, make: () => RevocationsUnderTest): void {
  const holds: Holds = (promise, body) =>
    void test(`${name}: ${promise}`, async (t) => {
      const parts = make()
      t.teardown(() => parts.remove())
      await body(t, parts)
    })
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

  holds('ids compare byte for byte', async (t, { store }) => {
    const ids = ['Id', 'id', 'ID', 'id ', ' id', 'caf\u00e9', 'cafe\u0301', '\u{1f9f5}', '1', '01', '1.0', "a'b", 'a"b', '%', '_']
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

  holds('what one connection revokes or lifts, another sees', async (t, { store, connect }) => {
    const other = connect()
    await store.revoke(TOKEN)
    t.same(await other.revocations(), [TOKEN])
    t.equal(await other.lift({ tokenId: 'j-1' }), true)
    t.same(await store.revocations(), [])
  })

  holds('of many revocations at once none is lost', async (t, { store, connect }) => {
    const stores = [store, connect(), connect()]
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
      const other = connect()
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

  holds('a store that cannot answer rejects: nothing is known', async (t, { connect }) => {
    const store = connect()
    await store.close()
    await t.rejects(store.revoke(TOKEN), StoreUnavailable)
    await t.rejects(store.lift({ tokenId: 'j-1' }), StoreUnavailable)
    await t.rejects(store.revocations(), StoreUnavailable)
    await t.rejects(store.revocationsVersion(), StoreUnavailable)
  })
}
