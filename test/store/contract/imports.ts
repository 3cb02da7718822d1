/** Imports: rows are taken over each on its own, and an owner that is there is never replaced. */
import type { ImportedThread, ImportOutcome } from '../../../src/store/port/administration.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { NOBODY } from '../../../src/store/port/thread.ts'
import { ALICE, at, BOB, CAROL, claim, grant, NOW, own, readerOf, row, accessTo, user, type Holds } from './under-test.ts'

const rowFor = (threadId: string, owner = ALICE): ImportedThread => ({
  ...at(threadId),
  owner,
  agentId: 'agent',
  name: null,
  archived: false,
  createdAt: NOW,
  lastUsedAt: NOW + 1,
})
const ADDED: ImportOutcome = { outcome: 'added' }
const SAME: ImportOutcome = { outcome: 'same' }
const conflict = (kind: 'owner' | 'observed' | 'deleted', ...users: readonly string[]): ImportOutcome => ({
  outcome: 'conflict',
  with: kind,
  users,
})

const importAll = (store: Store, rows: readonly ImportedThread[], settleConflicts = false) =>
  store.import(rows, { dryRun: false, settleConflicts })

/** The part of the contract. */
export function importContract(holds: Holds): void {
  holds('an imported row is its owner’s, settled, as it was handed over', async (t, { store }) => {
    const rows = [
      { ...rowFor('a'), name: 'Ünïcode \u{1f9f5}', archived: true },
      { ...rowFor('b', BOB), scope: 's', agentId: '' },
    ]
    t.same(await importAll(store, rows), [ADDED, ADDED])
    t.same(
      await store.threads({}, null, 10),
      rows.map((one) => ({ ...one, deletedAt: null, provisional: false })),
    )
    t.equal(await claim(store, ALICE, at('a')), 'own')
    await store.settle(at('a'), ALICE, 0, 'not-started')
    t.equal(await claim(store, BOB, at('a')), 'foreign', 'whatever becomes of runs')
  })

  holds('the same again changes nothing', async (t, { store }) => {
    await importAll(store, [{ ...rowFor('a'), name: 'first' }])
    await grant(store, user(BOB), 'read', at('a'))
    t.same(await importAll(store, [{ ...rowFor('a'), name: 'second', archived: true }]), [SAME])
    const { row: there, grants } = (await store.thread(at('a'))) ?? {}
    t.match(there, { name: 'first', archived: false })
    t.equal(grants?.length, 1)
  })

  holds('an owner that is there is never replaced, nor a tombstone dug up', async (t, { store }) => {
    await own(store, BOB, at('bobs'))
    await claim(store, BOB, at('starting'))
    await own(store, BOB, at('withheld'))
    await store.withhold(at('withheld'), NOW)
    await own(store, BOB, at('deleted'))
    await store.bury(at('deleted'), BOB, NOW, 'deleted')
    await own(store, ALICE, at('mine-deleted'))
    await store.bury(at('mine-deleted'), ALICE, NOW, 'deleted')
    const ids = ['bobs', 'starting', 'withheld', 'deleted', 'mine-deleted']
    const before = await store.threads({}, null, 10)
    for (const settleConflicts of [false, true]) {
      const outcomes = await importAll(
        store,
        ids.map((id) => rowFor(id)),
        settleConflicts,
      )
      t.same(outcomes, [
        conflict('owner', BOB),
        conflict('owner', BOB),
        conflict('owner'),
        conflict('deleted', BOB),
        conflict('deleted', ALICE),
      ])
    }
    t.same(await store.threads({}, null, 10), before)
  })

  holds('a tombstone of nobody’s is a conflict with nobody', async (t, { store }) => {
    await own(store, BOB, at('erased'))
    await store.erase(BOB, NOW, 10)
    t.same(await importAll(store, [rowFor('erased')]), [conflict('deleted')])
    t.equal((await row(store, at('erased')))?.owner, NOBODY)
  })

  holds('a thread that others were seen to run is a conflict with them, until an operator settles it', async (t, { store }) => {
    await store.observe(at('mine'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('theirs'), BOB, 'agent', 'run', NOW)
    await store.observe(at('both'), CAROL, 'agent', 'run', NOW)
    await store.observe(at('both'), ALICE, 'agent', 'run', NOW + 1)
    await store.observe(at('both'), BOB, 'agent', 'run', NOW + 2)
    await store.observe(at('mine'), BOB, '', 'other', NOW + 3)
    const rows = ['mine', 'theirs', 'both'].map((id) => rowFor(id))
    t.same(await importAll(store, rows), [ADDED, conflict('observed', BOB), conflict('observed', CAROL, BOB)])
    t.same(await accessTo(store, readerOf(ALICE), at('both')), { row: null, runners: [CAROL, ALICE, BOB] })
    t.same(await importAll(store, rows, true), [SAME, ADDED, ADDED])
    t.same(
      await accessTo(store, readerOf(ALICE), at('both')),
      { row: { owner: ALICE, deleted: false, provisional: false, granted: null }, runners: [] },
      'and who was seen is of no account any more',
    )
    t.equal(await store.unowned(), 0)
    t.same((await store.userData(BOB)).observed, [])
  })

  holds('of two lines for one thread the first counts', async (t, { store }) => {
    const outcomes = await importAll(store, [rowFor('a'), rowFor('a', BOB), rowFor('a')])
    t.same(outcomes, [ADDED, conflict('owner', ALICE), SAME])
    t.equal((await row(store, at('a')))?.owner, ALICE)
  })

  holds('a dry run says what would become of each row, and changes nothing', async (t, { store }) => {
    await own(store, BOB, at('bobs'))
    await own(store, ALICE, at('mine'))
    await store.observe(at('seen'), BOB, 'agent', 'run', NOW)
    const rows = [rowFor('bobs'), rowFor('mine'), rowFor('seen'), rowFor('new'), rowFor('new', BOB), rowFor('new')]
    const before = await store.threads({}, null, 10)
    for (const settleConflicts of [false, true]) {
      const dry = await store.import(rows, { dryRun: true, settleConflicts })
      t.same(dry, [
        conflict('owner', BOB),
        SAME,
        settleConflicts ? ADDED : conflict('observed', BOB),
        ADDED,
        conflict('owner', ALICE),
        SAME,
      ])
      t.same(await store.threads({}, null, 10), before)
      t.equal(await store.unowned(), 1)
    }
    const dry = await store.import(rows, { dryRun: true, settleConflicts: false })
    t.same(await importAll(store, rows), dry, 'and it comes to pass')
    t.same(await importAll(store, []), [])
  })

  holds('a row that is imported while others claim it has one owner', async (t, { store, connect }) => {
    const other = await connect()
    const ids = Array.from({ length: 20 }, (_, n) => `t-${n}`)
    const [imported, claims] = await Promise.all([
      importAll(
        store,
        ids.map((id) => rowFor(id)),
      ),
      Promise.all(ids.map((id) => claim(other, BOB, at(id)))),
    ])
    for (const [n, id] of ids.entries()) {
      const owner = (await row(store, at(id)))?.owner
      t.equal(owner === ALICE, imported[n]?.outcome === 'added', id)
      t.equal(owner === BOB, claims[n] === 'new', id)
    }
  })
}
