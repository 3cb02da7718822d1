/** Guests: runs by somebody else than the owner register on what is there, and neither begin a thread nor revive one. */
import { NOBODY } from '../../../src/store/port/thread.ts'
import { ALICE, BOB, claim, claimAsGuest, KEY, NOW, own, row, type Holds } from './under-test.ts'

const FOREIGN = { outcome: 'foreign' }

/** The part of the contract. */
export function guestContract(holds: Holds): void {
  holds('a guest begins no thread', async (t, { store }) => {
    t.same(await claimAsGuest(store, ALICE), FOREIGN)
    t.equal(await store.isEmpty(''), true)
  })

  holds('a guest’s run on a settled thread is one of its owner’s, and registers nowhere', async (t, { store }) => {
    await own(store, ALICE)
    t.same(await claimAsGuest(store, ALICE), { outcome: 'own', registration: null })
    t.same(await claimAsGuest(store, BOB), FOREIGN, 'and the owner has to be named')
    t.same(await row(store), { owner: ALICE, deleted: false, provisional: false, granted: null })
  })

  holds('a guest’s run on a thread that no run has confirmed yet counts as one of its runs', async (t, { store }) => {
    await claim(store, ALICE)
    t.same(await claimAsGuest(store, ALICE), { outcome: 'own', registration: 0 })
    t.equal(await store.settle(KEY, ALICE, 0, 'not-started'), false, 'the guest’s is under way')
    await store.settle(KEY, ALICE, 0, 'confirmed')
    t.same(await claimAsGuest(store, ALICE), { outcome: 'own', registration: null }, 'a confirmed one settles it')
  })

  holds('a guest revives nothing, nor runs on what is being revived', async (t, { store }) => {
    await own(store, ALICE)
    await store.bury(KEY, ALICE, NOW, 'deleted')
    t.same(await claimAsGuest(store, ALICE), FOREIGN)
    t.same(await row(store), { owner: ALICE, deleted: true, provisional: false, granted: null })
    await claim(store, ALICE)
    t.same(await claimAsGuest(store, ALICE), FOREIGN)
    await store.settle(KEY, ALICE, 1, 'not-started')
    t.same(await row(store), { owner: ALICE, deleted: true, provisional: false, granted: null })
  })

  holds('a guest has nothing on a thread whose owner was taken', async (t, { store }) => {
    await own(store, ALICE)
    await store.withhold(KEY, NOW)
    t.same(await claimAsGuest(store, ALICE), FOREIGN)
    t.same(await claimAsGuest(store, NOBODY), FOREIGN)
  })

  holds('a guest’s use is use', async (t, { store }) => {
    await own(store, ALICE)
    await claimAsGuest(store, ALICE, KEY, NOW + 60_000)
    t.equal((await store.thread(KEY))?.row?.lastUsedAt, NOW + 60_000)
  })
}
