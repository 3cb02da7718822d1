/** Releases: a row goes only when every run on it certainly did not start. */
import type { RunOutcome } from '../../../src/store/port/claims.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { ALICE, BOB, claim, grant, KEY, own, readerOf, row, user, type Holds } from './under-test.ts'

const OWNED = { owner: ALICE, deleted: false, provisional: false, granted: null }
const UNCONFIRMED = { ...OWNED, provisional: true }

/** Settles runs of a thread's first life. */
const settle = (store: Store, ...outcomes: readonly RunOutcome[]) =>
  Promise.all(outcomes.map((outcome) => store.settle(KEY, ALICE, 0, outcome)))

/** The part of the contract. */
export function releaseContract(holds: Holds): void {
  holds('a run that did not start gives the thread back', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await store.settle(KEY, ALICE, 0, 'not-started'), true, 'and is told so')
    t.equal(await row(store), null)
    t.equal(await claim(store, BOB), 'new')
  })

  holds(
    'until a run is confirmed its row says so, to every reader, and no other connection is late',
    async (t, { store, connect }) => {
      const other = await connect()
      await claim(store, ALICE)
      for (const reader of [readerOf(ALICE), readerOf(BOB)]) {
        t.same(await row(store, KEY, reader), UNCONFIRMED)
        t.same(await row(other, KEY, reader), UNCONFIRMED)
      }
      await store.settle(KEY, ALICE, 0, 'confirmed')
      for (const reader of [readerOf(ALICE), readerOf(BOB)]) {
        t.same(await row(other, KEY, reader), OWNED)
        t.same(await row(store, KEY, reader), OWNED)
      }
    },
  )

  for (const [outcome, expected] of [
    ['confirmed', OWNED],
    ['stays', UNCONFIRMED],
  ] as const) {
    holds(`a run that started, or may have, keeps it (${outcome})`, async (t, { store }) => {
      await claim(store, ALICE)
      t.equal(await store.settle(KEY, ALICE, 0, outcome), false)
      t.same(await row(store), expected)
      await claim(store, ALICE)
      await settle(store, 'not-started')
      t.same(await row(store), expected, 'whatever later runs do')
      t.equal(await claim(store, BOB), 'foreign')
      await claim(store, ALICE)
      await settle(store, 'confirmed')
      t.same(await row(store), OWNED, 'but for one that is confirmed')
    })
  }

  for (const outcomes of [
    ['confirmed', 'not-started', 'not-started'],
    ['not-started', 'confirmed', 'not-started'],
    ['not-started', 'not-started', 'confirmed'],
    ['stays', 'not-started', 'not-started'],
    ['not-started', 'stays', 'not-started'],
    ['not-started', 'not-started', 'stays'],
    ['stays', 'confirmed', 'stays'],
  ] as const) {
    holds(`of three runs that ended as ${outcomes.join(', ')}, one was enough`, async (t, { store }) => {
      for (const expected of ['new', 'own', 'own']) t.equal(await claim(store, ALICE), expected)
      for (const outcome of outcomes) await settle(store, outcome)
      t.same(await row(store), outcomes.some((outcome) => outcome === 'confirmed') ? OWNED : UNCONFIRMED)
      t.equal(await claim(store, BOB), 'foreign')
    })
  }

  holds('the thread is given back with the last run that failed, and not before', async (t, { store }) => {
    await claim(store, ALICE)
    await claim(store, ALICE)
    await settle(store, 'not-started')
    t.equal(await claim(store, BOB), 'foreign', 'one is still under way')
    await claim(store, ALICE)
    t.equal(await store.settle(KEY, ALICE, 0, 'not-started'), false)
    t.equal(await claim(store, BOB), 'foreign', 'and one that came later')
    await settle(store, 'not-started')
    t.equal(await row(store), null)
  })

  holds('nobody settles what is not theirs', async (t, { store }) => {
    await claim(store, ALICE)
    await store.settle(KEY, BOB, 0, 'not-started')
    await store.settle({ ...KEY, scope: 'other' }, ALICE, 0, 'not-started')
    t.equal(await claim(store, BOB), 'foreign')
    for (const outcome of ['confirmed', 'stays'] as const) await store.settle(KEY, BOB, 0, outcome)
    t.same(await row(store), UNCONFIRMED)
    await settle(store, 'not-started')
    t.equal(await row(store), null, 'nor keeps it')
    await settle(store, 'confirmed')
    t.equal(await row(store), null, 'and a settled run makes no row')
  })

  holds('a thread that is given back takes its grants with it: the next owner has granted nothing', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await grant(store, user(BOB), 'write'), 'done')
    await settle(store, 'not-started')
    await own(store, 'corp:eve')
    t.same(await row(store, KEY, readerOf(BOB)), { owner: 'corp:eve', deleted: false, provisional: false, granted: null })
    t.same(await store.grantedTo(user(BOB), null, 10), [])
  })
}
