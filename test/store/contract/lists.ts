/** Lists of threads: the live ones of a reader and those that were granted to them, page by page. */
import type { Reader } from '../../../src/core/decide/sharing.ts'
import type { ListedThread, ListWindow } from '../../../src/store/port/lists.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { NOBODY } from '../../../src/store/port/thread.ts'
import { ALICE, at, BOB, claim, grant, group, NOW, own, readerOf, user, type Holds } from './under-test.ts'

const TEAM = 'corp:team'
const FIRST: ListWindow = { agentId: null, includeArchived: false, after: null, limit: 100 }

/** The ids of a whole list, read in pages of this size. */
async function idsOf(store: Store, reader: Reader | 'everybody', options: Partial<ListWindow> = {}, limit = 100) {
  return (await pagesOf(store, reader, options, limit)).map(({ threadId }) => threadId)
}

async function pagesOf(store: Store, reader: Reader | 'everybody', options: Partial<ListWindow>, limit: number) {
  const all: ListedThread[] = []
  for (let after: ListWindow['after'] = null; ;) {
    const page: readonly ListedThread[] = await store.listed('', reader, { ...FIRST, ...options, after, limit })
    all.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < limit) return all
    after = last
  }
}

/** The part of the contract. */
export function listContract(holds: Holds): void {
  holds('a list is of a reader’s live threads, the last used first', async (t, { store }) => {
    for (const [n, threadId] of ['a', 'b', 'c', 'd', 'e'].entries()) await own(store, ALICE, at(threadId), NOW + n)
    await own(store, BOB, at('bobs'), NOW)
    await own(store, ALICE, { scope: 'other', threadId: 'elsewhere' }, NOW)
    await store.bury(at('c'), ALICE, NOW, 'deleted')
    await store.withhold(at('d'), NOW)
    await claim(store, ALICE, at('starting'), NOW - 1)
    t.same(await idsOf(store, readerOf(ALICE)), ['e', 'b', 'a', 'starting'], 'one that is starting included')
    t.same(await idsOf(store, readerOf(NOBODY)), [], 'what is nobody’s is in nobody’s list')
    await claim(store, ALICE, at('a'), NOW + 60_000)
    t.same(await idsOf(store, readerOf(ALICE)), ['a', 'e', 'b', 'starting'])
  })

  holds('an entry says all that a list shows', async (t, { store }) => {
    await store.claim(at('x'), { userId: ALICE, agentId: 'writer', guest: false, now: NOW })
    await store.settle(at('x'), ALICE, 0, 'confirmed')
    await store.rename(at('x'), ALICE, 'A name')
    await store.archive(at('x'), ALICE, { archived: true })
    await grant(store, user(BOB), 'write', at('x'))
    const entry = {
      threadId: 'x',
      owner: ALICE,
      provisional: false,
      granted: null,
      agentId: 'writer',
      name: 'A name',
      archived: true,
      createdAt: NOW,
      updatedAt: NOW,
    }
    const window = { ...FIRST, includeArchived: true }
    t.same(await store.listed('', readerOf(ALICE), window), [entry])
    t.same(await store.listed('', readerOf(BOB), window), [{ ...entry, granted: 'write' }])
    t.same(await store.listed('', 'everybody', window), [entry])
  })

  holds('an entry says that no run is confirmed, to the owner, to others and in everybody’s list', async (t, { store }) => {
    await claim(store, ALICE, at('x'))
    await grant(store, user(BOB), 'read', at('x'))
    const lists = async () => {
      const readers = [readerOf(ALICE), readerOf(BOB), 'everybody'] as const
      return Promise.all(readers.map(async (reader) => (await store.listed('', reader, FIRST)).map((one) => one.provisional)))
    }
    t.same(await lists(), [[true], [true], [true]])
    await store.settle(at('x'), ALICE, 0, 'confirmed')
    t.same(await lists(), [[false], [false], [false]])
  })

  holds('threads that were used at the same time are in the order of their ids, on whatever pages', async (t, { store }) => {
    const ids = ['B', 'a', 'a ', 'aa', 'b', '\u00e9', '\uff5e', '\u{1f9f5}']
    for (const threadId of [...ids].reverse()) await own(store, ALICE, at(threadId))
    await own(store, ALICE, at('before'), NOW - 1)
    for (const limit of [1, 2, 3, 8, 9, 10])
      t.same(await idsOf(store, readerOf(ALICE), {}, limit), [...ids, 'before'], `by ${limit}`)
  })

  holds('what was granted is listed among one’s own, once, with the widest right', async (t, { store }) => {
    for (const [n, threadId] of ['a', 'b', 'c', 'd'].entries()) await own(store, n % 2 === 0 ? ALICE : BOB, at(threadId), NOW + n)
    await grant(store, user(BOB), 'read', at('a'))
    await grant(store, group(TEAM), 'write', at('a'))
    await grant(store, group(TEAM), 'read', at('c'))
    await grant(store, group(TEAM), 'read', at('d'))
    const seen = async (...groups: string[]) =>
      (await pagesOf(store, readerOf(BOB, ...groups), {}, 2)).map(({ threadId, granted }) => [threadId, granted])
    t.same(await seen(TEAM, 'corp:other'), [
      ['d', 'read'],
      ['c', 'read'],
      ['b', null],
      ['a', 'write'],
    ])
    t.same(await seen(), [
      ['d', null],
      ['b', null],
      ['a', 'read'],
    ])
    await store.bury(at('c'), ALICE, NOW, 'deleted')
    await store.ungrant(at('a'), ALICE, group(TEAM))
    t.same(await seen(TEAM), [
      ['d', 'read'],
      ['b', null],
      ['a', 'read'],
    ])
    t.same((await store.listed('other', readerOf(BOB, TEAM), FIRST)).length, 0)
  })

  holds('archived threads are left out unless they are asked for', async (t, { store }) => {
    for (const threadId of ['a', 'b', 'c']) await own(store, ALICE, at(threadId))
    await store.archive(at('b'), ALICE, { archived: true })
    await grant(store, user(BOB), 'read', at('b'))
    t.same(await idsOf(store, readerOf(ALICE), {}, 1), ['a', 'c'])
    t.same(await idsOf(store, readerOf(ALICE), { includeArchived: true }, 1), ['a', 'b', 'c'])
    t.same(await idsOf(store, readerOf(BOB)), [])
    t.same(await idsOf(store, readerOf(BOB), { includeArchived: true }), ['b'])
    t.same(await idsOf(store, 'everybody'), ['a', 'c'])
    await store.archive(at('b'), ALICE, { archived: false })
    t.same(await idsOf(store, readerOf(ALICE)), ['a', 'b', 'c'])
  })

  holds('a list of one agent’s threads has no other’s, nor one of a like name', async (t, { store }) => {
    for (const [threadId, agentId] of [
      ['a', 'writer'],
      ['b', 'Writer'],
      ['c', ''],
      ['d', 'writer'],
    ] as const)
      await store.claim(at(threadId), { userId: ALICE, agentId, guest: false, now: NOW })
    await grant(store, user(BOB), 'read', at('d'))
    t.same(await idsOf(store, readerOf(ALICE), { agentId: 'writer' }, 1), ['a', 'd'])
    t.same(await idsOf(store, readerOf(ALICE), { agentId: '' }), ['c'])
    t.same(await idsOf(store, readerOf(BOB), { agentId: 'writer' }), ['d'])
    t.same(await idsOf(store, readerOf(BOB), { agentId: 'Writer' }), [])
    t.same(await idsOf(store, 'everybody', { agentId: 'Writer' }), ['b'])
  })

  holds('everybody’s list has every live thread, those whose owner was taken included', async (t, { store }) => {
    for (const [n, userId] of [ALICE, BOB, ALICE, BOB].entries()) await own(store, userId, at(`t-${n}`), NOW + n)
    await store.bury(at('t-1'), BOB, NOW, 'deleted')
    await store.withhold(at('t-2'), NOW)
    await grant(store, user(BOB), 'read', at('t-0'))
    const seen = (await pagesOf(store, 'everybody', {}, 1)).map(({ threadId, owner, granted }) => [threadId, owner, granted])
    t.same(seen, [
      ['t-3', BOB, null],
      ['t-2', NOBODY, null],
      ['t-0', ALICE, null],
    ])
  })
}
