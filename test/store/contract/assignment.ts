/** Owners that operators give and take: whatever was so before, what they said is so after it. */
import { NOBODY } from '../../../src/store/port/thread.ts'
import {
  ALICE,
  BOB,
  CAROL,
  claim,
  claimAsGuest,
  grant,
  KEY,
  NOW,
  own,
  readerOf,
  row,
  accessTo,
  user,
  type Holds,
} from './under-test.ts'

/** The part of the contract. */
export function assignmentContract(holds: Holds): void {
  holds('a thread is given to another, without what was granted on it', async (t, { store }) => {
    await own(store, ALICE)
    await grant(store, user(CAROL), 'write')
    await store.archive(KEY, ALICE, { archived: true })
    t.same(await store.assign(KEY, BOB, NOW + 1), { outcome: 'assigned', before: ALICE })
    t.same(await row(store, KEY, readerOf(CAROL)), { owner: BOB, deleted: false, provisional: false, granted: null })
    t.equal(await claim(store, ALICE), 'foreign')
    t.equal(await claim(store, BOB), 'own')
    t.same(await store.grants(KEY, BOB), [])
    t.equal((await store.thread(KEY))?.row?.archived, true, 'and it is archived as it was')
  })

  holds('the owner that it has is no other, and nothing changes', async (t, { store }) => {
    await own(store, ALICE)
    await grant(store, user(CAROL), 'write')
    t.same(await store.assign(KEY, ALICE, NOW), { outcome: 'same' })
    t.same(await store.assign(KEY, ALICE, NOW, ALICE), { outcome: 'same' })
    t.equal((await store.grants(KEY, ALICE))?.length, 1)
  })

  holds('a thread without a row gets one, settled', async (t, { store }) => {
    t.same(await store.assign(KEY, ALICE, NOW), { outcome: 'assigned', before: null })
    t.same((await store.thread(KEY))?.row, {
      ...KEY,
      owner: ALICE,
      agentId: '',
      name: null,
      archived: false,
      createdAt: NOW,
      lastUsedAt: NOW,
      deletedAt: null,
      provisional: false,
    })
  })

  holds('an owner that is not the expected one is told, and stays', async (t, { store }) => {
    t.same(await store.assign(KEY, BOB, NOW, ALICE), { outcome: 'changed', owner: null })
    t.equal(await store.isEmpty(''), true)
    t.same(await store.assign(KEY, ALICE, NOW, null), { outcome: 'assigned', before: null })
    t.same(await store.assign(KEY, BOB, NOW, null), { outcome: 'changed', owner: ALICE })
    t.same(await store.assign(KEY, BOB, NOW, CAROL), { outcome: 'changed', owner: ALICE })
    t.same(await store.assign(KEY, BOB, NOW, NOBODY), { outcome: 'changed', owner: ALICE })
    t.equal((await row(store))?.owner, ALICE)
    t.same(await store.assign(KEY, BOB, NOW, ALICE), { outcome: 'assigned', before: ALICE })
    await store.withhold(KEY, NOW)
    t.same(await store.assign(KEY, ALICE, NOW, BOB), { outcome: 'changed', owner: NOBODY })
    t.same(await store.assign(KEY, ALICE, NOW, NOBODY), { outcome: 'assigned', before: NOBODY })
    t.equal(await claim(store, ALICE), 'own')
  })

  holds('a tombstone that is assigned is a live thread again, its old owner’s as well', async (t, { store }) => {
    for (const to of [ALICE, BOB]) {
      const key = { ...KEY, threadId: to }
      await own(store, ALICE, key)
      await store.bury(key, ALICE, NOW, 'deleted')
      t.same(await store.assign(key, to, NOW), { outcome: 'assigned', before: ALICE })
      t.same(await row(store, key), { owner: to, deleted: false, provisional: false, granted: null })
    }
  })

  for (const late of ['not-started', 'stays', 'confirmed'] as const) {
    holds(`a run from before an assignment settles nothing after it by ending late (${late})`, async (t, { store }) => {
      for (const to of [ALICE, BOB]) {
        const key = { ...KEY, threadId: to }
        await claim(store, ALICE, key)
        await store.assign(key, to, NOW)
        t.equal(await store.settle(key, ALICE, 0, late), false)
        t.same(await row(store, key), { owner: to, deleted: false, provisional: false, granted: null })
        t.equal((await store.thread(key))?.row?.provisional, false)
      }
    })
  }

  holds('who was seen on a thread is of no account once it is assigned', async (t, { store }) => {
    await store.observe(KEY, ALICE, 'agent', 'run', NOW)
    await store.observe(KEY, BOB, 'agent', 'run', NOW)
    t.same(await store.assign(KEY, BOB, NOW), { outcome: 'assigned', before: null })
    t.same((await accessTo(store, readerOf(ALICE))).runners, [])
    t.same((await store.userData(ALICE)).observed, [])
  })

  holds(
    'a thread whose owner is taken is foreign to everybody, without its grants, until it is assigned',
    async (t, { store }) => {
      await own(store, ALICE)
      await grant(store, user(BOB), 'write')
      t.equal(await store.withhold(KEY, NOW), true)
      t.same(await row(store, KEY, readerOf(BOB)), { owner: NOBODY, deleted: false, provisional: false, granted: null })
      for (const userId of [ALICE, BOB]) t.equal(await claim(store, userId), 'foreign')
      t.equal((await claimAsGuest(store, ALICE)).outcome, 'foreign')
      t.equal(await store.withhold(KEY, NOW), true, 'and again')
      await store.assign(KEY, BOB, NOW)
      t.same(await store.grants(KEY, BOB), [])
      t.equal(await store.withhold({ ...KEY, threadId: 'none' }, NOW), false)
      t.equal(await store.thread({ ...KEY, threadId: 'none' }), null)
    },
  )

  holds('the owner of a tombstone can be taken, and then nobody revives it', async (t, { store }) => {
    await own(store, ALICE)
    await store.bury(KEY, ALICE, NOW, 'deleted')
    await claim(store, ALICE)
    t.equal(await store.withhold(KEY, NOW), true)
    await store.settle(KEY, ALICE, 1, 'confirmed')
    t.same(await row(store), { owner: NOBODY, deleted: true, provisional: false, granted: null })
    t.equal(await claim(store, ALICE), 'foreign')
  })

  for (const late of ['not-started', 'stays', 'confirmed'] as const) {
    holds(`a run from before the owner was taken gives nothing back by ending late (${late})`, async (t, { store }) => {
      await claim(store, ALICE)
      await store.withhold(KEY, NOW)
      await store.settle(KEY, ALICE, 0, late)
      t.same(await row(store), { owner: NOBODY, deleted: false, provisional: false, granted: null })
    })
  }
}
