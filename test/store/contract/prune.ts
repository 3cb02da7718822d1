/** Pruning: rows of before a time are thrown away, in steps, and nothing else is. */
import { ALICE, at, BOB, claim, grant, NOW, own, readerOf, row, accessTo, steps, user, type Holds } from './under-test.ts'

const idsOf = (rows: readonly { readonly threadId: string }[]): readonly string[] => rows.map(({ threadId }) => threadId)

/** The part of the contract. */
export function pruneContract(holds: Holds): void {
  holds(
    'tombstones of before a time go whose threads are gone upstream, and may be claimed then; live threads stay',
    async (t, { store }) => {
      for (const [n, id] of ['a', 'b', 'c', 'd', 'live'].entries()) {
        await own(store, ALICE, at(id), NOW)
        if (id !== 'live') await store.bury(at(id), ALICE, NOW + n, 'deleted')
      }
      const rule = { deletedBefore: NOW + 3 }
      t.equal(await store.prunable(rule), 3)
      t.same(await steps(() => store.prune(rule, 2)), [2, 1])
      t.equal(await store.prunable(rule), 0)
      t.same(idsOf(await store.threads({}, null, 10)), ['d', 'live'])
      t.equal(await store.thread(at('a')), null)
      t.equal(await claim(store, BOB, at('a')), 'new')
      t.equal(await claim(store, BOB, at('d')), 'foreign')
    },
  )

  holds('live threads that nobody used since go, with their grants; tombstones stay', async (t, { store }) => {
    for (const [n, id] of ['a', 'b', 'c', 'gone'].entries()) await own(store, ALICE, at(id), NOW + n)
    await own(store, ALICE, { scope: 's', threadId: 'old' }, NOW - 1)
    await own(store, ALICE, { scope: 's', threadId: 'young' }, NOW + 9)
    await claim(store, ALICE, at('a'), NOW + 60_000)
    await grant(store, user(BOB), 'write', at('b'))
    await store.observe(at('b'), BOB, 'agent', 'run', NOW)
    await store.bury(at('gone'), ALICE, NOW, 'deleted')
    const rule = { unusedSince: NOW + 9 }
    t.equal(await store.prunable(rule), 3)
    t.same(await steps(() => store.prune(rule, 2)), [2, 1])
    t.same(idsOf(await store.threads({}, null, 10)), ['a', 'gone', 'young'])
    t.same(await accessTo(store, readerOf(BOB), at('b')), { row: null, runners: [] }, 'nobody ever heard of it')
    t.same(await store.grantedTo(user(BOB), null, 10), [])
    await own(store, 'corp:eve', at('b'))
    t.equal((await row(store, at('b'), readerOf(BOB)))?.granted, null)
  })

  holds('a rule for one scope throws nothing away in another', async (t, { store }) => {
    const places = ['', 'a', 'b', 'c'].map((scope) => ({ scope, threadId: 'gone' }))
    for (const place of places) {
      await own(store, ALICE, { ...place, threadId: 'live' })
      await own(store, ALICE, place)
      await store.bury(place, ALICE, NOW, 'deleted')
    }
    const left = async () => (await store.threads({}, null, 10)).map(({ scope, threadId }) => `${scope}/${threadId}`)
    for (const rule of [
      { scope: 'b', deletedBefore: NOW + 1 },
      { scope: '', unusedSince: NOW + 1 },
      { scope: 'b', unusedSince: NOW + 1 },
    ]) {
      t.equal(await store.prunable(rule), 1)
      t.same(await steps(() => store.prune(rule, 10)), [1])
      t.equal(await store.prunable(rule), 0)
    }
    t.same(await left(), ['/gone', 'a/gone', 'a/live', 'c/gone', 'c/live'])
    t.same(await steps(() => store.prune({ scope: '', deletedBefore: NOW + 1 }, 10)), [1])
    t.equal(await store.prunable({ scope: 'd', unusedSince: NOW + 1 }), 0)
    t.same(await left(), ['a/gone', 'a/live', 'c/gone', 'c/live'])
  })

  holds('a tombstone stays as long as the upstream may hold something of its thread', async (t, { store }) => {
    const rule = { deletedBefore: NOW + 99 }
    const prunable = async () => [await store.prunable(rule), ...(await steps(() => store.prune(rule, 10)))]
    await own(store, ALICE, at('kept'))
    await store.bury(at('kept'), ALICE, NOW, 'unknown')
    await own(store, ALICE, at('live'))
    await store.erase(ALICE, NOW, 10)
    t.same(await prunable(), [0], 'neither was that confirmed to be gone, nor what was erased')

    await own(store, BOB, at('revived'))
    await store.bury(at('revived'), BOB, NOW, 'deleted')
    await claim(store, BOB, at('revived'))
    t.same(await prunable(), [0], 'a run is bringing it back')
    await store.settle(at('revived'), BOB, 1, 'not-started')
    t.equal(await store.prunable(rule), 1, 'or certainly not')
    await claim(store, BOB, at('revived'))
    await store.settle(at('revived'), BOB, 2, 'confirmed')
    await store.bury(at('revived'), BOB, NOW, 'unknown')
    t.same(await prunable(), [0], 'gone once is not gone for ever')
    await store.bury(at('revived'), BOB, NOW, 'deleted')
    t.same(await prunable(), [1, 1])
  })

  holds('a thread that lives again is not gone, whatever becomes of it then', async (t, { store }) => {
    for (const id of ['revived', 'assigned']) {
      await own(store, ALICE, at(id))
      await store.bury(at(id), ALICE, NOW, 'deleted')
    }
    await claim(store, ALICE, at('revived'))
    await store.settle(at('revived'), ALICE, 1, 'confirmed')
    await store.assign(at('assigned'), ALICE, NOW)
    await store.erase(ALICE, NOW, 10)
    t.equal(await store.prunable({ deletedBefore: NOW + 99 }), 0)
    t.equal((await store.threads({ deleted: 'only' }, null, 10)).length, 2)
  })

  holds(
    'what an operator decides in the middle of a revival leaves nothing that is confirmed to be gone',
    async (t, { store }) => {
      for (const id of ['withheld', 'transferred', 'erased', 'untouched']) {
        await own(store, id, at(id))
        await store.bury(at(id), id, NOW, 'deleted')
        if (id !== 'untouched') await claim(store, id, at(id))
      }
      await store.withhold(at('withheld'), NOW)
      await store.transfer('transferred', BOB, 10)
      await store.erase('erased', NOW, 10)
      await store.transfer('untouched', BOB, 10)
      t.same(await steps(() => store.prune({ deletedBefore: NOW + 99 }, 10)), [1])
      t.equal(await store.thread(at('untouched')), null)
    },
  )

  holds(
    'a rule that says nothing throws nothing away; nor does one that wants rows deleted and live at once',
    async (t, { store }) => {
      await own(store, ALICE, at('live'))
      await own(store, ALICE, at('gone'))
      await store.bury(at('gone'), ALICE, NOW, 'deleted')
      for (const rule of [{}, { deletedBefore: NOW + 9, unusedSince: NOW + 9 }]) {
        t.equal(await store.prunable(rule), 0)
        t.equal(await store.prune(rule, 10), 0)
      }
      t.equal((await store.threads({}, null, 10)).length, 2)
    },
  )
}
