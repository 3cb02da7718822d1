/** All that is a user's: given to another, or forgotten, in steps of a bounded size. */
import { NOBODY } from '../../../src/store/port/thread.ts'
import {
  ALICE,
  at,
  BOB,
  CAROL,
  claim,
  grant,
  grantOf,
  group,
  NOW,
  own,
  readerOf,
  row,
  accessTo,
  steps,
  user,
  type Holds,
} from './under-test.ts'

const GONE = { owner: NOBODY, deleted: true, provisional: false, granted: null }

/** The part of the contract. */
export function userContract(holds: Holds): void {
  holds(
    'a transfer moves every row, live ones and tombstones, in steps that are no larger than was said',
    async (t, { store }) => {
      for (let n = 0; n < 7; n += 1) await own(store, ALICE, at(`t-${n}`))
      await own(store, ALICE, { scope: 's', threadId: 'x' })
      await own(store, CAROL, at('carols'))
      await store.bury(at('t-3'), ALICE, NOW, 'deleted')
      const done = await steps(() => store.transfer(ALICE, BOB, 3))
      t.equal(
        done.reduce((sum, count) => sum + count, 0),
        8,
      )
      t.ok(done.every((count) => count <= 3))
      t.equal(await claim(store, BOB, at('t-0')), 'own')
      t.equal(await claim(store, ALICE, at('t-0')), 'foreign')
      t.same(await row(store, at('t-3')), { owner: BOB, deleted: true, provisional: false, granted: null })
      t.equal((await row(store, { scope: 's', threadId: 'x' }))?.owner, BOB)
      t.equal((await row(store, at('carols')))?.owner, CAROL)
      t.same((await store.userData(ALICE)).threads, [])
    },
  )

  holds('a transfer within one scope leaves what is the user’s elsewhere', async (t, { store }) => {
    for (const scope of ['', 's', 't']) {
      const place = (threadId: string) => ({ scope, threadId })
      for (const id of ['one', 'two']) await own(store, ALICE, place(id))
      await own(store, CAROL, place('carols'))
      await grant(store, user(ALICE), 'read', place('carols'))
      await store.observe(place('seen'), ALICE, 'agent', 'run', NOW)
    }
    const held = async (userId: string) => {
      const { threads, received, observed } = await store.userData(userId)
      return [threads, received, observed].map((keys) => keys.map(({ scope, threadId }) => `${scope}/${threadId}`))
    }
    await steps(() => store.transfer(ALICE, BOB, 2, 's'))
    t.same(await held(BOB), [['s/one', 's/two'], ['s/carols'], ['s/seen']])
    await steps(() => store.transfer(ALICE, BOB, 2, ''))
    t.same(await held(ALICE), [['t/one', 't/two'], ['t/carols'], ['t/seen']])
    t.equal(await store.transfer(ALICE, BOB, 2, 'other'), 0)
  })

  holds('a transfer cuts off what was pending: runs from before it change nothing, and confirm nothing', async (t, { store }) => {
    await claim(store, ALICE, at('starting'))
    await own(store, ALICE, at('reviving'))
    await store.bury(at('reviving'), ALICE, NOW, 'deleted')
    await claim(store, ALICE, at('reviving'))
    await steps(() => store.transfer(ALICE, BOB, 10))
    for (const outcome of ['not-started', 'stays', 'confirmed'] as const) {
      for (const userId of [ALICE, BOB]) {
        await store.settle(at('starting'), userId, 0, outcome)
        await store.settle(at('reviving'), userId, 1, outcome)
      }
    }
    const starting = { owner: BOB, deleted: false, provisional: true, granted: null }
    t.same(await row(store, at('starting')), starting, 'nobody has looked at this one thread')
    t.same(await row(store, at('reviving')), { owner: BOB, deleted: true, provisional: false, granted: null })
    t.match(await store.stats(), { provisional: 1 })
    const run = { userId: BOB, agentId: 'agent', guest: false, now: NOW }
    t.same(await store.claim(at('starting'), run), { outcome: 'own', registration: 1 })
    t.equal(await store.settle(at('starting'), BOB, 1, 'not-started'), false, 'it is kept')
    t.same(await row(store, at('starting')), starting)
    await store.claim(at('starting'), run)
    await store.settle(at('starting'), BOB, 1, 'confirmed')
    t.same(await row(store, at('starting')), { ...starting, provisional: false })
  })

  holds(
    'grants on the threads stay, those to the old owner become the new one’s, and the wider right stays',
    async (t, { store }) => {
      for (const id of ['mine', 'mine-2']) await own(store, ALICE, at(id))
      await grant(store, user(CAROL), 'write', at('mine'))
      await grant(store, group('corp:team'), 'read', at('mine'))
      await grant(store, user(BOB), 'write', at('mine'))
      await grant(store, user(ALICE), 'read', at('mine-2'))
      for (const id of ['c-1', 'c-2', 'c-3', 'c-4']) await own(store, CAROL, at(id))
      await own(store, BOB, at('bobs'))
      for (const [id, alices, bobs] of [
        ['c-1', 'read', undefined],
        ['c-2', 'write', 'read'],
        ['c-3', 'read', 'write'],
        ['bobs', 'write', undefined],
      ] as const) {
        await grant(store, user(ALICE), alices, at(id))
        if (bobs !== undefined) await grant(store, user(BOB), bobs, at(id))
      }
      await grant(store, group(ALICE), 'read', at('c-4'))
      await steps(() => store.transfer(ALICE, BOB, 2))
      t.same(await store.grants(at('mine'), BOB), [grantOf(group('corp:team')), grantOf(user(CAROL), 'write')])
      t.same(await store.grants(at('mine-2'), BOB), [], 'nothing is granted to the owner')
      t.same(await store.grants(at('bobs'), BOB), [])
      t.same(
        (await store.grantedTo(user(BOB), null, 10)).map(({ threadId, right }) => [threadId, right]),
        [
          ['c-1', 'read'],
          ['c-2', 'write'],
          ['c-3', 'write'],
        ],
      )
      t.same(await store.grantedTo(user(ALICE), null, 10), [])
      t.equal((await store.grantedTo(group(ALICE), null, 10)).length, 1, 'a group is no user')
    },
  )

  holds('what was seen of the old owner was the new one’s', async (t, { store }) => {
    await store.observe(at('one'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('two'), CAROL, 'agent', 'run', NOW - 1)
    await store.observe(at('two'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('both'), ALICE, 'first', 'run', NOW)
    await store.observe(at('both'), BOB, 'second', 'run', NOW + 60_000)
    await steps(() => store.transfer(ALICE, BOB, 1))
    t.same((await accessTo(store, readerOf(BOB), at('one'))).runners, [BOB])
    t.same((await accessTo(store, readerOf(BOB), at('two'))).runners, [CAROL, BOB])
    t.same(await store.userData(ALICE), { threads: [], granted: [], received: [], observed: [], revocations: [] })
    const both = { ...at('both'), agentId: 'second', firstUsedAt: NOW, lastUsedAt: NOW + 60_000 }
    t.same((await store.userData(BOB)).observed[0], both)
  })

  holds('nothing moves to the same user, nor to or from nobody', async (t, { store }) => {
    await own(store, ALICE, at('mine'))
    await own(store, ALICE, at('withheld'))
    await store.withhold(at('withheld'), NOW)
    for (const [from, to] of [
      [ALICE, ALICE],
      [NOBODY, BOB],
      [ALICE, NOBODY],
      [CAROL, BOB],
    ] as const)
      t.equal(await store.transfer(from, to, 10), 0)
    t.equal((await row(store, at('mine')))?.owner, ALICE)
    t.equal((await row(store, at('withheld')))?.owner, NOBODY)
  })

  holds('a user’s rows become tombstones of nobody’s, without names and grants', async (t, { store }) => {
    for (const id of ['a', 'b', 'c', 'd']) await own(store, ALICE, at(id))
    await own(store, BOB, at('bobs'))
    await store.rename(at('a'), ALICE, 'something personal')
    await grant(store, user(BOB), 'write', at('a'))
    await store.bury(at('b'), ALICE, NOW - 5, 'deleted')
    await claim(store, ALICE, at('starting'))
    const done = await steps(() => store.erase(ALICE, NOW, 2))
    t.ok(done.every((count) => count <= 2))
    for (const id of ['a', 'b', 'c', 'd', 'starting']) {
      await store.settle(at(id), ALICE, 0, 'not-started')
      t.same(await row(store, at(id), readerOf(BOB)), GONE, id)
      for (const userId of [ALICE, BOB]) t.equal(await claim(store, userId, at(id)), 'foreign')
    }
    const rows = new Map((await store.threads({}, null, 10)).map((one) => [one.threadId, one]))
    t.match(rows.get('a'), { name: null, deletedAt: NOW, provisional: false })
    t.equal(rows.get('b')?.deletedAt, NOW - 5, 'what was deleted was deleted then')
    t.equal(rows.get('bobs')?.owner, BOB)
    t.same(await store.grantedTo(user(BOB), null, 10), [])
  })

  holds('a user’s grants go, those that they gave and those that they were given; a group’s stays', async (t, { store }) => {
    for (const id of ['b-1', 'b-2']) await own(store, BOB, at(id))
    await grant(store, user(ALICE), 'write', at('b-1'))
    await store.grant(at('b-1'), null, { ...grantOf(user(CAROL)), grantedBy: ALICE })
    await grant(store, user(CAROL), 'read', at('b-2'))
    await grant(store, group(ALICE), 'read', at('b-2'))
    await steps(() => store.erase(ALICE, NOW, 1))
    t.same(await store.grants(at('b-1'), BOB), [])
    t.equal((await store.grants(at('b-2'), BOB))?.length, 2)
  })

  holds('where a user was seen, alone or with others, nobody else can claim what is there', async (t, { store }) => {
    await store.observe(at('alone'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('watched'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('watched'), BOB, '', 'other', NOW)
    await store.observe(at('shared'), ALICE, 'agent', 'run', NOW)
    await store.observe(at('shared'), BOB, 'agent', 'run', NOW)
    await own(store, CAROL, at('carols'))
    await store.observe(at('carols'), ALICE, '', 'other', NOW)
    await steps(() => store.erase(ALICE, NOW, 1))
    t.same(await accessTo(store, readerOf(BOB), at('alone')), { row: GONE, runners: [] })
    t.same((await accessTo(store, readerOf(BOB), at('watched'))).row, GONE, 'who only looked did not run it')
    t.same((await accessTo(store, readerOf(BOB), at('shared'))).row, GONE, 'forgetting one of two settles no conflict')
    t.equal((await row(store, at('carols')))?.owner, CAROL)
    t.same((await store.userData(ALICE)).observed, [])
  })

  holds('what was revoked of a user stays so, and nothing else of them is left', async (t, { store }) => {
    await own(store, ALICE, at('a'))
    await store.revoke({ kind: 'user', userId: ALICE, before: null, revokedAt: NOW })
    await steps(() => store.erase(ALICE, NOW, 10))
    const revocations = [{ kind: 'user', userId: ALICE, before: null, revokedAt: NOW }]
    t.same(await store.userData(ALICE), { threads: [], granted: [], received: [], observed: [], revocations })
    t.equal(await store.erase(ALICE, NOW, 10), 0)
    t.equal(await store.erase(NOBODY, NOW, 10), 0, 'and nobody is no user')
  })
}
