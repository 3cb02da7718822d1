/** Claims: the first one owns the thread, over all processes, and nobody else ever gets it by claiming. */
import { NOBODY } from '../../../src/store/port/thread.ts'
import { ALICE, BOB, claim, KEY, NOW, row, type Holds } from './under-test.ts'

const OWNED = { owner: ALICE, deleted: false, provisional: false, granted: null }

/** The part of the contract. */
export function claimContract(holds: Holds): void {
  holds(
    'the first claim owns the thread, and every later one of another user is told that it is foreign',
    async (t, { store }) => {
      t.equal(await row(store), null, 'no row')
      t.equal(await claim(store, ALICE), 'new')
      t.same(await store.claim(KEY, { userId: BOB, agentId: 'agent', guest: false, now: NOW }), { outcome: 'foreign' })
      t.equal(await claim(store, ALICE), 'own')
      await store.settle(KEY, ALICE, 0, 'confirmed')
      t.equal(await claim(store, BOB), 'foreign')
      t.equal(await claim(store, ALICE), 'own')
      t.same(await row(store), OWNED)
    },
  )

  holds('one of many claims at once wins', async (t, { store, connect }) => {
    const stores = [store, await connect(), await connect()]
    const users = Array.from({ length: 30 }, (_, at) => `corp:user-${at}`)
    const outcomes = await Promise.all(users.map((user, at) => claim(stores[at % 3] ?? store, user)))
    t.equal(outcomes.filter((outcome) => outcome === 'new').length, 1)
    t.equal(outcomes.filter((outcome) => outcome === 'foreign').length, 29)
    t.equal((await row(store))?.owner, users[outcomes.indexOf('new')])
  })

  holds('what one connection claims, another sees at once', async (t, { store, connect }) => {
    const other = await connect()
    await claim(store, ALICE)
    t.same(await row(other), { ...OWNED, provisional: true })
    t.equal(await claim(other, BOB), 'foreign')
    t.equal(await other.isEmpty(''), false)
    await other.settle(KEY, ALICE, 0, 'not-started')
    t.equal(await row(store), null)
  })

  holds(
    'of many runs of one user at once each registers, and the last that did not start gives it back',
    async (t, { store, connect }) => {
      const stores = [store, await connect()]
      const runs = Array.from({ length: 12 }, (_, at) => stores[at % 2] ?? store)
      const outcomes = await Promise.all(runs.map((one) => claim(one, ALICE)))
      t.equal(outcomes.filter((outcome) => outcome === 'new').length, 1)
      t.equal(outcomes.filter((outcome) => outcome === 'own').length, 11)
      const released = await Promise.all(runs.map((one) => one.settle(KEY, ALICE, 0, 'not-started')))
      t.equal(released.filter((one) => one).length, 1)
      t.equal(await row(store), null)
    },
  )

  holds('a run on a settled thread registers nowhere', async (t, { store }) => {
    const again = () => store.claim(KEY, { userId: ALICE, agentId: 'agent', guest: false, now: NOW })
    t.same(await again(), { outcome: 'new', registration: 0 })
    t.same(await again(), { outcome: 'own', registration: 0 })
    await store.settle(KEY, ALICE, 0, 'confirmed')
    t.same(await again(), { outcome: 'own', registration: null })
  })

  holds('nobody is no user, and claims nothing', async (t, { store }) => {
    t.equal(await claim(store, NOBODY), 'foreign')
    t.equal(await store.isEmpty(''), true)
    await claim(store, ALICE)
    await store.withhold(KEY, NOW)
    t.equal(await claim(store, NOBODY), 'foreign')
    t.equal(await store.rename(KEY, NOBODY, 'x'), false)
    await store.bury(KEY, NOBODY, NOW, 'deleted')
    t.same(await row(store), { owner: NOBODY, deleted: false, provisional: false, granted: null })
  })
}
