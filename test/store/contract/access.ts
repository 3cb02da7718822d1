/** What is known of a thread: its row, what was granted to the reader, and who was seen on it. */
import type { Reader } from '../../../src/core/decide/sharing.ts'
import {
  ALICE,
  at,
  BOB,
  CAROL,
  claim,
  grant,
  group,
  KEY,
  NOW,
  own,
  readerOf,
  row,
  accessTo,
  user,
  type Holds,
} from './under-test.ts'

const TEAM = 'corp:team'

/** The part of the contract. */
export function accessContract(holds: Holds): void {
  holds('nothing is known of a thread that nobody ever heard of', async (t, { store }) => {
    await own(store, ALICE, at('t-0'))
    await own(store, ALICE, at('t-2'))
    await store.observe(at('t-2'), BOB, 'agent', 'run', NOW)
    t.same(await accessTo(store, readerOf(ALICE), at('t-1')), { row: null, runners: [] })
    t.equal(await store.thread(at('t-1')), null)
  })

  holds('a reader has the widest of their own right and those of their groups, and no other', async (t, { store }) => {
    await own(store, ALICE)
    const granted = async (reader = readerOf(BOB, TEAM)) => (await row(store, KEY, reader))?.granted
    t.equal(await granted(), null)
    await grant(store, group(TEAM), 'read')
    t.equal(await granted(), 'read')
    t.equal(await granted(readerOf(BOB)), null, 'without the group')
    t.equal(await granted(readerOf(BOB, 'corp:other', TEAM, TEAM)), 'read')
    await grant(store, user(BOB), 'write')
    t.equal(await granted(), 'write')
    t.equal(await granted(readerOf(CAROL, TEAM)), 'read')
    await grant(store, user(BOB), 'read')
    await grant(store, group('corp:wide'), 'write')
    t.equal(await granted(readerOf(BOB, 'corp:wide', TEAM)), 'write', 'whichever comes first')
    t.equal(await granted(readerOf(BOB, TEAM, 'corp:wide')), 'write')
  })

  holds('what one connection grants or takes back, another sees', async (t, { store, connect }) => {
    const other = await connect()
    await own(store, ALICE)
    await grant(store, user(BOB))
    t.equal((await other.accessToSeveral('', [KEY.threadId], readerOf(BOB))).get(KEY.threadId)?.row?.granted, 'read')
    await other.ungrant(KEY, ALICE, user(BOB))
    t.equal((await store.accessToSeveral('', [KEY.threadId], readerOf(BOB))).get(KEY.threadId)?.row?.granted, null)
  })

  holds('who ran a thread is told in their order, and who only looked is not', async (t, { store }) => {
    await store.observe(KEY, CAROL, 'agent', 'run', NOW)
    await store.observe(KEY, BOB, 'agent', 'run', NOW + 1)
    await store.observe(KEY, ALICE, 'agent', 'run', NOW + 1)
    await store.observe(KEY, 'corp:dave', '', 'other', NOW - 5)
    t.same(await accessTo(store, readerOf(ALICE)), { row: null, runners: [CAROL, ALICE, BOB] }, 'by time, then by id')
  })

  holds('a thread with a row tells who was seen on it as well', async (t, { store }) => {
    await own(store, ALICE)
    await store.observe(KEY, BOB, 'agent', 'run', NOW)
    t.same(await accessTo(store, readerOf(BOB)), {
      row: { owner: ALICE, deleted: false, provisional: false, granted: null },
      runners: [BOB],
    })
  })

  holds(
    'the threads of a reader: their own, in whatever state they are, and those that were granted to them',
    async (t, { store }) => {
      const of = async (reader: Reader, most = 100, scope = '') => {
        const theirs = await store.accessOfReader(scope, reader, most)
        if (theirs === null) return null
        const ids = [...theirs.keys()].sort()
        const asked = await store.accessToSeveral(scope, ids, reader)
        for (const id of ids) t.same(theirs.get(id), { ...asked.get(id), runners: [] }, `${id}, as if it were asked for`)
        return ids
      }
      for (const id of ['a', 'b', 'c', 'd']) await own(store, ALICE, at(id))
      await claim(store, ALICE, at('unconfirmed'))
      await store.bury(at('d'), ALICE, NOW, 'deleted')
      await store.withhold(at('c'), NOW)
      await own(store, CAROL, at('e'))
      await own(store, ALICE, { scope: 'other', threadId: 'f' })
      await grant(store, user(BOB), 'read', at('a'))
      await grant(store, group(TEAM), 'write', at('a'))
      await grant(store, group(TEAM), 'read', at('b'))
      await grant(store, group('corp:others'), 'write', at('b'))
      await store.observe(at('seen'), ALICE, 'agent', 'run', NOW)
      t.same(await of(readerOf(ALICE)), ['a', 'b', 'd', 'unconfirmed'])
      t.same(await of(readerOf(ALICE), 100, 'other'), ['f'])
      t.same(await of(readerOf(BOB)), ['a'])
      t.same(await of(readerOf(BOB, TEAM)), ['a', 'b'])
      t.same(await of(readerOf(BOB, 'corp:others', TEAM)), ['a', 'b'])
      t.same(await of(readerOf('corp:nobody', TEAM)), ['a', 'b'])
      t.same(await of(readerOf('corp:nobody', TEAM), 2), ['a', 'b'])
      t.same(await of(readerOf(CAROL)), ['e'])
      t.same(await of({ userId: '', groups: [] }), [], 'what is nobody’s is no one’s')
      t.same(await of(readerOf(ALICE), 4), ['a', 'b', 'd', 'unconfirmed'], 'as many as may be told')
      t.equal(await of(readerOf(ALICE), 3), null, 'and more than that')
      t.equal(await of(readerOf('corp:nobody', TEAM), 1), null)
    },
  )

  holds('more granted threads than are read in one step, each by two grants', async (t, { store }) => {
    const ids = Array.from({ length: 600 }, (_, n) => `thread-${String(n).padStart(3, '0')}`)
    for (const [n, threadId] of ids.entries()) {
      await own(store, ALICE, at(threadId))
      await grant(store, user(BOB), n % 2 === 0 ? 'read' : 'write', at(threadId))
      await grant(store, group(TEAM), n % 3 === 0 ? 'write' : 'read', at(threadId))
    }
    const reader = readerOf(BOB, 'corp:others', TEAM)
    const theirs = await store.accessOfReader('', reader, 1200)
    t.same([...(theirs?.keys() ?? [])].sort(), ids)
    const asked = await store.accessToSeveral('', ids, reader)
    t.same(
      ids.map((id) => theirs?.get(id)?.row),
      ids.map((id) => asked.get(id)?.row),
    )
    t.equal(await store.accessOfReader('', reader, 1199), null)
  })

  holds('five thousand ids are one question', async (t, { store }) => {
    const all = Array.from({ length: 5000 }, (_, n) => `thread-${n}`)
    const owned = all.filter((_, n) => n % 500 === 0)
    for (const threadId of owned) await claim(store, ALICE, at(threadId))
    const [first = '', second = ''] = owned
    await store.settle(at(first), ALICE, 0, 'confirmed')
    await grant(store, user(BOB), 'write', at(first))
    await grant(store, group(TEAM), 'read', at(second))
    await store.observe(at('thread-7'), BOB, 'agent', 'run', NOW)
    const found = await store.accessToSeveral('', all, readerOf(BOB, TEAM))
    t.same([...found.keys()].sort(), [...owned, 'thread-7'].sort())
    const row = { owner: ALICE, deleted: false, provisional: false }
    t.same(found.get(first), { row: { ...row, granted: 'write' }, runners: [] })
    t.same(found.get(second), { row: { ...row, provisional: true, granted: 'read' }, runners: [] })
    t.same(found.get('thread-7'), { row: null, runners: [BOB] })
    t.equal((await store.accessToSeveral('', [], readerOf(BOB))).size, 0, 'and none is an answer too')
    t.equal((await store.accessToSeveral('', [first, first], readerOf(BOB))).size, 1, 'and one twice is one')
  })
}
