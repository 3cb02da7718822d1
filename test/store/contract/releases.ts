/** Releases: a row goes only when every run on it certainly did not start. */
import type { RunOutcome, Store } from '../../../src/store/port.ts'
import { ALICE, BOB, claim, grant, KEY, own, readerOf, row, user, type Holds } from './under-test.ts'

const OWNED = { owner: ALICE, deleted: false, granted: null }

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

  holds('a run that started, or may have, keeps it', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await store.settle(KEY, ALICE, 0, 'stays'), false)
    t.same(await row(store), OWNED)
    await claim(store, ALICE)
    await settle(store, 'not-started', 'not-started')
    t.same(await row(store), OWNED, 'whatever later runs do')
  })

  for (const outcomes of [
    ['stays', 'not-started', 'not-started'],
    ['not-started', 'stays', 'not-started'],
    ['not-started', 'not-started', 'stays'],
  ] as const) {
    holds(`of three runs that ended as ${outcomes.join(', ')}, one was enough`, async (t, { store }) => {
      for (const expected of ['new', 'own', 'own']) t.equal(await claim(store, ALICE), expected)
      for (const outcome of outcomes) await settle(store, outcome)
      t.same(await row(store), OWNED)
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
    await store.settle(KEY, BOB, 0, 'stays')
    await settle(store, 'not-started')
    t.equal(await row(store), null, 'nor keeps it')
    await settle(store, 'stays')
    t.equal(await row(store), null, 'and a settled run makes no row')
  })

  holds('a thread that is given back takes its grants with it: the next owner has granted nothing', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await grant(store, user(BOB), 'write'), 'done')
    await settle(store, 'not-started')
    await own(store, 'corp:eve')
    t.same(await row(store, KEY, readerOf(BOB)), { owner: 'corp:eve', deleted: false, granted: null })
    t.same(await store.grantedTo(user(BOB), null, 10), [])
  })
}
