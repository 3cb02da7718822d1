/** Tombstones: a deleted thread is nobody else's for ever, and its owner's run brings it back. */
import type { RunOutcome } from '../../../src/store/port/claims.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { ALICE, BOB, claim, grant, group, KEY, NOW, own, readerOf, row, accessTo, user, type Holds } from './under-test.ts'

const LIVE = { owner: ALICE, deleted: false, provisional: false, granted: null }
const DEAD = { owner: ALICE, deleted: true, provisional: false, granted: null }

const settle = (store: Store, life: number, ...outcomes: readonly RunOutcome[]) =>
  Promise.all(outcomes.map((outcome) => store.settle(KEY, ALICE, life, outcome)))

const bury = async (store: Store): Promise<void> => {
  await own(store, ALICE)
  await store.bury(KEY, ALICE, NOW, 'deleted')
}

/** The part of the contract. */
export function tombstoneContract(holds: Holds): void {
  holds('a deleted thread stays foreign to others', async (t, { store }) => {
    await bury(store)
    t.same(await row(store), DEAD)
    t.equal(await claim(store, BOB), 'foreign')
    t.equal(await store.isEmpty(''), false)
  })

  for (const outcome of ['confirmed', 'stays'] as const) {
    holds(`the run of its owner revives it (${outcome})`, async (t, { store }) => {
      await bury(store)
      t.equal(await claim(store, ALICE), 'new')
      t.same(await row(store), { ...DEAD, provisional: true }, 'once it is over')
      t.equal(await claim(store, BOB), 'foreign', 'for nobody else')
      await settle(store, 1, outcome)
      t.same(await row(store), LIVE, 'it was confirmed before')
      t.equal(await claim(store, ALICE), 'own')
    })
  }

  holds('a revival whose run did not start is a tombstone again, never a thread without an owner', async (t, { store }) => {
    await bury(store)
    await claim(store, ALICE)
    await claim(store, ALICE)
    t.same(await settle(store, 1, 'not-started', 'not-started'), [false, true])
    t.same(await row(store), DEAD)
    t.equal(await claim(store, BOB), 'foreign')
    t.equal((await store.thread(KEY))?.row?.provisional, false)
  })

  for (const late of ['not-started', 'stays', 'confirmed'] as const) {
    holds(`a run that was registered before the deletion does not undo it by ending late (${late})`, async (t, { store }) => {
      await claim(store, ALICE)
      await store.bury(KEY, ALICE, NOW, 'deleted')
      await settle(store, 0, late)
      t.same(await row(store), DEAD)
    })

    holds(`a run from before the deletion that ends late (${late}) settles nothing of a revival`, async (t, { store }) => {
      await claim(store, ALICE)
      await store.bury(KEY, ALICE, NOW, 'deleted')
      const revived = await store.claim(KEY, { userId: ALICE, agentId: 'agent', guest: false, now: NOW })
      t.same(revived, { outcome: 'new', registration: 1 })
      await settle(store, 0, late)
      t.same(await row(store), { ...DEAD, provisional: true }, 'still waiting for the run that revives it')
      await settle(store, 1, 'confirmed')
      t.same(await row(store), LIVE)
    })
  }

  holds('only the owner can delete, and only what is there', async (t, { store }) => {
    await store.bury(KEY, ALICE, NOW, 'deleted')
    t.equal(await store.isEmpty(''), true)
    await claim(store, ALICE)
    await store.bury(KEY, BOB, NOW, 'deleted')
    t.same(await row(store), { ...LIVE, provisional: true })
  })

  holds('a deleted thread has no grants, and none when it is back', async (t, { store }) => {
    await own(store, ALICE)
    await grant(store, user(BOB), 'write')
    await grant(store, group('corp:team'))
    await store.bury(KEY, ALICE, NOW, 'deleted')
    const reader = readerOf(BOB, 'corp:team')
    t.same((await accessTo(store, reader)).row, DEAD)
    t.equal(await store.grants(KEY, null), null)
    t.equal(await grant(store, user(BOB)), 'not-owner', 'nor gets any')
    await claim(store, ALICE)
    t.equal(await grant(store, user(BOB)), 'not-owner', 'nor while it is being revived')
    await settle(store, 1, 'confirmed')
    t.same((await accessTo(store, reader)).row, LIVE)
    t.same(await store.grants(KEY, ALICE), [])
  })
}
