/** The table as operators see it: rows, how much there is, and all that is held of a user. */
import type { RowFilter } from '../../../src/store/port/administration.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { NOBODY } from '../../../src/store/port/thread.ts'
import { ALICE, at, BOB, CAROL, claim, grant, grantOf, group, KEY, NOW, own, user, type Holds } from './under-test.ts'

/** The keys of all rows that a filter names, read in pages of a size. */
async function idsOf(store: Store, filter: RowFilter, size = 100): Promise<readonly string[]> {
  const ids: string[] = []
  for (let page = await store.threads(filter, null, size); page.length > 0;) {
    ids.push(...page.map(({ scope, threadId }) => `${scope}/${threadId}`))
    page = await store.threads(filter, page.at(-1) ?? null, size)
  }
  return ids
}

/** The part of the contract. */
export function administrationContract(holds: Holds): void {
  holds('a thread is told whole', async (t, { store }) => {
    t.equal(await store.thread(KEY), null)
    await store.claim(KEY, { userId: ALICE, agentId: 'writer', guest: false, now: NOW })
    await store.rename(KEY, ALICE, 'A name')
    await grant(store, user(BOB), 'write')
    await store.observe(KEY, CAROL, 'agent', 'run', NOW)
    const row = {
      ...KEY,
      owner: ALICE,
      agentId: 'writer',
      name: 'A name',
      archived: false,
      createdAt: NOW,
      lastUsedAt: NOW,
      deletedAt: null,
      provisional: true,
    }
    t.same(await store.thread(KEY), { row, grants: [grantOf(user(BOB), 'write')], runners: [CAROL] })
    await store.settle(KEY, ALICE, 0, 'confirmed')
    await store.bury(KEY, ALICE, NOW + 5, 'deleted')
    t.same(await store.thread(KEY), { row: { ...row, provisional: false, deletedAt: NOW + 5 }, grants: [], runners: [CAROL] })
  })

  holds('rows are told in the order of their keys, page by page, those that a filter names', async (t, { store }) => {
    const places = [
      ['', 'B'],
      ['', 'a'],
      ['', 'a '],
      ['', 'b'],
      ['S', 'z'],
      ['s', 'A'],
      ['s', 'a'],
    ] as const
    for (const [n, [scope, threadId]] of [...places.entries()].reverse()) {
      const userId = n % 2 === 0 ? ALICE : BOB
      await store.claim({ scope, threadId }, { userId, agentId: n < 4 ? 'one' : 'two', guest: false, now: NOW + n })
    }
    const all = places.map(([scope, threadId]) => `${scope}/${threadId}`)
    for (const size of [1, 2, 7, 8]) t.same(await idsOf(store, {}, size), all)
    await store.bury(at('a'), BOB, NOW, 'deleted')
    await store.bury({ scope: 's', threadId: 'a' }, ALICE, NOW, 'deleted')
    t.same(await idsOf(store, { deleted: 'too' }), all)
    t.same(await idsOf(store, { deleted: 'only' }, 1), ['/a', 's/a'])
    t.same(await idsOf(store, { deleted: 'no' }, 2), ['/B', '/a ', '/b', 'S/z', 's/A'])
    for (const size of [1, 100]) t.same(await idsOf(store, { owner: ALICE }, size), ['/B', '/a ', 'S/z', 's/a'])
    t.same(await idsOf(store, { owner: ALICE, deleted: 'no', agentId: 'one' }, 1), ['/B', '/a '])
    t.same(await idsOf(store, { agentId: 'ONE' }), [])
    for (const size of [1, 100]) t.same(await idsOf(store, { scope: 's' }, size), ['s/A', 's/a'])
    t.same(await idsOf(store, { scope: '', owner: ALICE }, 1), ['/B', '/a '])
    t.same(await idsOf(store, { scope: 'other' }), [])
    await store.withhold({ scope: 'S', threadId: 'z' }, NOW)
    t.same(await idsOf(store, { owner: NOBODY }), ['S/z'])
  })

  holds('it is told how much there is', async (t, { store }) => {
    const nothing = {
      threads: 0,
      deleted: 0,
      provisional: 0,
      withheld: 0,
      owners: 0,
      grants: 0,
      observed: 0,
      conflicts: 0,
      revocations: 0,
    }
    t.same(await store.stats(), nothing)
    for (const id of ['a', 'b', 'c']) await own(store, ALICE, at(id))
    await own(store, BOB, at('d'))
    await claim(store, BOB, at('starting'))
    await own(store, CAROL, at('gone'))
    await store.bury(at('gone'), CAROL, NOW, 'deleted')
    await own(store, CAROL, at('erased'))
    await store.erase(CAROL, NOW, 10)
    await store.withhold(at('c'), NOW)
    await grant(store, user(BOB), 'read', at('a'))
    await grant(store, group(BOB), 'read', at('a'))
    await store.observe(at('seen'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('both'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('both'), BOB, 'agent', 'run', NOW)
    await store.observe(at('a'), BOB, 'agent', 'run', NOW)
    await store.revoke({ kind: 'token', tokenId: 'j', revokedAt: NOW })
    t.same(
      await store.stats(),
      { threads: 5, deleted: 2, provisional: 1, withheld: 1, owners: 2, grants: 2, observed: 2, conflicts: 1, revocations: 1 },
      'live threads, those of nobody’s included, and who owns them',
    )
  })

  holds(
    'unconfirmed claims are counted from the oldest on, those of revived threads by the time of the revival',
    async (t, { store }) => {
      t.same(await store.unconfirmed(), { count: 0, oldest: null })
      const run = (id: string, now: number) => store.claim(at(id), { userId: ALICE, agentId: 'agent', guest: false, now })
      await own(store, ALICE, at('settled'))
      await own(store, ALICE, at('revived'))
      await store.bury(at('revived'), ALICE, NOW, 'deleted')
      await run('revived', NOW + 30)
      await run('second', NOW + 20)
      await run('first', NOW + 10)
      await run('first', NOW + 40)
      t.same(await store.unconfirmed(), { count: 3, oldest: NOW + 10 }, 'another run on it makes a claim no younger')
      for (const _run of [1, 2]) await store.settle(at('first'), ALICE, 0, 'not-started')
      t.same(await store.unconfirmed(), { count: 2, oldest: NOW + 20 })
      await store.settle(at('second'), ALICE, 0, 'confirmed')
      t.same(await store.unconfirmed(), { count: 1, oldest: NOW + 30 })
    },
  )

  holds('it is told how much of it is in one scope; revocations are in none', async (t, { store }) => {
    const there = (threadId: string) => ({ scope: 's', threadId })
    await own(store, ALICE, at('elsewhere'))
    await grant(store, user(BOB), 'read', at('elsewhere'))
    await store.observe(at('seen'), CAROL, 'agent', 'run', NOW)
    for (const id of ['a', 'b', 'gone', 'withheld']) await own(store, ALICE, there(id))
    await claim(store, BOB, there('starting'))
    await store.bury(there('gone'), ALICE, NOW, 'deleted')
    await store.withhold(there('withheld'), NOW)
    await grant(store, user(BOB), 'read', there('a'))
    await grant(store, group(BOB), 'read', there('a'))
    for (const id of ['seen', 'both']) await store.observe(there(id), ALICE, 'agent', 'run', NOW)
    await store.observe(there('both'), BOB, 'agent', 'run', NOW)
    await store.revoke({ kind: 'token', tokenId: 'j', revokedAt: NOW })
    const counts = { threads: 4, deleted: 1, provisional: 1, withheld: 1, owners: 2, grants: 2, observed: 2, conflicts: 1 }
    t.same(await store.stats('s'), { ...counts, revocations: 1 })
    t.match(await store.stats(''), { threads: 1, deleted: 0, owners: 1, grants: 1, observed: 1, conflicts: 0, revocations: 1 })
    t.match(await store.stats(), { threads: 5, owners: 2, grants: 3, observed: 3, conflicts: 1, revocations: 1 })
    t.match(await store.stats('other'), { threads: 0, grants: 0, observed: 0, revocations: 1 })
  })

  holds('all that is held of a user is told, and nothing of others', async (t, { store }) => {
    await own(store, ALICE, at('mine'))
    await own(store, ALICE, at('gone'))
    await store.bury(at('gone'), ALICE, NOW + 1, 'deleted')
    await own(store, BOB, at('bobs'))
    await own(store, CAROL, at('carols'))
    await grant(store, user(CAROL), 'read', at('mine'))
    await grant(store, user(ALICE), 'write', at('bobs'))
    await grant(store, group(ALICE), 'write', at('carols'))
    await store.grant(at('carols'), null, { ...grantOf(user(BOB)), grantedBy: ALICE })
    await store.observe(at('seen'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('seen'), BOB, 'agent', 'run', NOW)
    await store.observe(at('seen-2'), BOB, 'agent', 'run', NOW)
    await store.revoke({ kind: 'user', userId: ALICE, before: NOW, revokedAt: NOW })
    await store.revoke({ kind: 'user', userId: BOB, before: null, revokedAt: NOW })
    await store.revoke({ kind: 'token', tokenId: ALICE, revokedAt: NOW })
    const data = await store.userData(ALICE)
    t.same(
      data.threads.map(({ threadId, owner, deletedAt }) => [threadId, owner, deletedAt]),
      [
        ['gone', ALICE, NOW + 1],
        ['mine', ALICE, null],
      ],
    )
    t.same(
      data.granted,
      [
        { ...at('carols'), ...grantOf(user(BOB)), grantedBy: ALICE },
        { ...at('mine'), ...grantOf(user(CAROL)) },
      ],
      'what they granted, and what was granted on their threads',
    )
    t.same(data.received, [{ ...at('bobs'), ...grantOf(user(ALICE), 'write') }])
    t.same(data.observed, [{ ...at('seen'), agentId: 'agent', firstUsedAt: NOW, lastUsedAt: NOW }])
    t.same(data.revocations, [{ kind: 'user', userId: ALICE, before: NOW, revokedAt: NOW }])
    await store.withhold(at('mine'), NOW)
    t.same((await store.userData(NOBODY)).threads, [], 'and nobody is no user')
  })
}
