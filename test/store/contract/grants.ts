/** Grants: given and taken back by whom it is named for, on live threads with an owner, and so many of them at most. */
import { BY_OPERATOR, MAX_GRANTS, MAX_GRANTS_TO_ONE } from '../../../src/core/decide/sharing.ts'
import type { StoredGrant } from '../../../src/store/port/grants.ts'
import type { ThreadKey } from '../../../src/store/port/thread.ts'
import {
  ALICE,
  at,
  BOB,
  CAROL,
  claim,
  grant,
  grantOf,
  group,
  KEY,
  NOW,
  own,
  readerOf,
  row,
  user,
  type Holds,
} from './under-test.ts'

const TEAM = 'corp:team'

/** The part of the contract. */
export function grantContract(holds: Holds): void {
  holds('what was granted is told, the oldest first, until it is taken back', async (t, { store }) => {
    await own(store, ALICE)
    t.same(await store.grants(KEY, ALICE), [])
    const first = { ...grantOf(user(BOB), 'write', NOW), grantedBy: ALICE }
    const second = grantOf(group(TEAM), 'read', NOW + 1)
    t.equal(await store.grant(KEY, ALICE, second), 'done')
    t.equal(await store.grant(KEY, ALICE, first), 'done')
    t.same(await store.grants(KEY, ALICE), [first, second])
    t.same(await store.grants(KEY, null), [first, second])
    t.same((await store.thread(KEY))?.grants, [first, second])
    t.equal(await store.ungrant(KEY, ALICE, user(BOB)), 'done')
    t.equal(await store.ungrant(KEY, ALICE, user(BOB)), 'unchanged')
    t.equal(await store.ungrant(KEY, ALICE, user(TEAM)), 'unchanged', 'a group is no user')
    t.same(await store.grants(KEY, ALICE), [second])
  })

  holds('a second grant takes the place of the first, and the same again is none', async (t, { store }) => {
    await own(store, ALICE)
    const before = grantOf(user(BOB), 'write', NOW)
    await store.grant(KEY, ALICE, before)
    t.equal(await store.grant(KEY, ALICE, grantOf(user(BOB), 'write', NOW + 9)), 'unchanged')
    t.same(await store.grants(KEY, ALICE), [before])
    const narrower = grantOf(user(BOB), 'read', NOW + 9)
    t.equal(await store.grant(KEY, ALICE, narrower), 'done')
    t.same(await store.grants(KEY, ALICE), [narrower])
    t.equal((await row(store, KEY, readerOf(BOB)))?.granted, 'read')
  })

  holds('only the owner that is named grants, takes back and looks; an operator names none', async (t, { store }) => {
    await own(store, ALICE)
    for (const [key, owner] of [
      [KEY, BOB],
      [KEY, ''],
      [at('nobody'), ALICE],
      [at('nobody'), null],
      [{ ...KEY, scope: 'x' }, null],
    ] as const) {
      t.equal(await store.grant(key, owner, grantOf(user(CAROL))), 'not-owner')
      t.equal(await store.ungrant(key, owner, user(CAROL)), 'not-owner')
      t.equal(await store.grants(key, owner), null)
    }
    t.same(await store.grantedTo(user(CAROL), null, 10), [])
    t.equal(await store.grant(KEY, null, grantOf(user(CAROL))), 'done')
    t.equal(await store.ungrant(KEY, null, user(CAROL)), 'done')
  })

  holds('a thread whose owner was taken, or that is deleted, has no grants', async (t, { store }) => {
    await own(store, ALICE)
    await grant(store, user(BOB))
    await store.withhold(KEY, NOW)
    for (const owner of [null, '', ALICE]) {
      t.equal(await store.grant(KEY, owner, grantOf(user(BOB))), 'not-owner')
      t.equal(await store.grants(KEY, owner), null)
    }
    t.equal((await row(store, KEY, readerOf(BOB)))?.granted, null)
    t.same(await store.grantedTo(user(BOB), null, 10), [])
  })

  holds('a thread that no run has confirmed yet can be shared', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await grant(store, user(BOB), 'write'), 'done')
    await store.settle(KEY, ALICE, 0, 'confirmed')
    t.equal((await row(store, KEY, readerOf(BOB)))?.granted, 'write')
  })

  holds('a thread has so many grants and no more', async (t, { store, connect }) => {
    await own(store, ALICE)
    const stores = [store, await connect()]
    const grantees = Array.from({ length: MAX_GRANTS + 10 }, (_, n) => user(`corp:user-${n}`))
    const outcomes = await Promise.all(grantees.map((to, n) => grant(stores[n % 2] ?? store, to)))
    t.equal(outcomes.filter((outcome) => outcome === 'done').length, MAX_GRANTS)
    t.equal(outcomes.filter((outcome) => outcome === 'too-many').length, 10)
    t.equal((await store.grants(KEY, ALICE))?.length, MAX_GRANTS)
    const there = grantees[outcomes.indexOf('done')] ?? user('')
    t.equal(await grant(store, there, 'write'), 'done', 'one in place of another is none more')
    t.equal(await store.ungrant(KEY, ALICE, there), 'done')
    t.equal(await grant(store, grantees[outcomes.indexOf('too-many')] ?? user('')), 'done')
  })

  holds('operators have as many grants on a thread as its owner, and neither takes the other’s room', async (t, { store }) => {
    await own(store, ALICE)
    const to = (name: string, n: number) => user(`corp:${name}-${n}`)
    const give = (who: string, name: string, n: number, right: 'read' | 'write' = 'read') =>
      store.grant(KEY, ALICE, { ...grantOf(to(name, n), right), grantedBy: who })
    for (let n = 0; n < MAX_GRANTS; n += 1) t.equal(await give(ALICE, 'owners', n), 'done')
    t.equal(await give(ALICE, 'owners', MAX_GRANTS), 'too-many')
    t.equal(await give('corp:olga', 'olgas', 0), 'too-many', 'an operator of the policy is a user as others')
    for (let n = 0; n < MAX_GRANTS; n += 1) t.equal(await give(BY_OPERATOR, 'operators', n), 'done')
    t.equal(await give(BY_OPERATOR, 'operators', MAX_GRANTS), 'too-many')
    t.equal(await give(BY_OPERATOR, 'owners', 0, 'write'), 'too-many', 'nor by taking one over')
    t.equal(await give(ALICE, 'operators', 0, 'write'), 'too-many')
    await store.ungrant(KEY, ALICE, to('owners', 1))
    t.equal(await give(ALICE, 'operators', 0, 'write'), 'done', 'it is the owner’s then')
    t.equal(await give(BY_OPERATOR, 'operators', MAX_GRANTS), 'done')
    t.equal((await store.grants(KEY, ALICE))?.length, 2 * MAX_GRANTS)
  })

  holds('one user lets another one, or a group, in on so many threads and no more', async (t, { store }) => {
    const keys = Array.from({ length: MAX_GRANTS_TO_ONE + 2 }, (_, n) => at(`t-${n}`))
    const rows = keys.map((key) => ({
      ...key,
      owner: ALICE,
      agentId: '',
      name: null,
      archived: false,
      createdAt: 1,
      lastUsedAt: 1,
    }))
    await store.import(rows, { dryRun: false, settleConflicts: false })
    const [another = KEY, last = KEY, ...most] = keys
    const give = (key: ThreadKey, to = user(BOB), more: Partial<StoredGrant> = {}) =>
      store.grant(key, ALICE, { ...grantOf(to), grantedBy: ALICE, ...more })
    for (const key of most) t.equal(await give(key), 'done')
    t.equal(await give(another), 'too-many')
    t.equal(await give(most[0] ?? KEY, user(BOB), { right: 'write' }), 'done', 'another right on one of them is none more')
    t.equal(await give(another, user(CAROL)), 'done', 'to somebody else')
    t.equal(await give(another, group(BOB)), 'done', 'to a group of the same name')
    t.equal(await give(another, user(BOB), { grantedBy: CAROL }), 'done', 'by somebody else')
    t.equal(await give(last, user(BOB), { grantedBy: BY_OPERATOR }), 'done', 'by an operator')
    t.equal(await give(last, user(BOB), { right: 'write' }), 'too-many', 'nor in place of one of theirs')
    await store.ungrant(most[0] ?? KEY, ALICE, user(BOB))
    t.equal(await give(last, user(BOB), { right: 'write' }), 'done')
  })

  holds('what was granted to somebody is told in the order of the threads, page by page', async (t, { store }) => {
    const keys = [at('B'), at('a'), at('b'), { scope: 's', threadId: 'A' }]
    for (const key of [...keys].reverse()) {
      await own(store, ALICE, key)
      await grant(store, user(BOB), 'read', key)
      await grant(store, group(BOB), 'write', key)
    }
    for (const size of [1, 2, 4, 5]) {
      const seen = []
      for (let page = await store.grantedTo(user(BOB), null, size); page.length > 0;) {
        seen.push(...page)
        page = await store.grantedTo(user(BOB), page.at(-1) ?? null, size)
      }
      t.same(
        seen,
        keys.map((key) => ({ ...key, ...grantOf(user(BOB)) })),
      )
    }
  })

  holds('a grant and a deletion, an assignment or a taking of the owner cannot cross', async (t, { store, connect }) => {
    const other = await connect()
    const ends = [
      (key: typeof KEY) => other.bury(key, ALICE, NOW, 'deleted'),
      (key: typeof KEY) => other.assign(key, CAROL, NOW),
      (key: typeof KEY) => other.withhold(key, NOW),
    ]
    for (let round = 0; round < 12; round += 1) {
      const key = at(`t-${round}`)
      await own(store, ALICE, key)
      await Promise.all([store.grant(key, ALICE, grantOf(user(BOB), 'write')), ends[round % 3]?.(key)])
      t.same((await store.thread(key))?.grants, [], 'whichever came first, nothing of it is left')
    }
  })
}
