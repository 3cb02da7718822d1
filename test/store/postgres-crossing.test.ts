/** Over several connections of PostgreSQL, what takes a thread or its grants away and what gives them cannot cross. */
import t, { type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { ALICE, at, BOB, CAROL, claim, grantOf, group, NOW, own, user } from './contract/under-test.ts'
import { openStoreOn, settingsOf } from './postgres-stores.ts'

const ROUNDS = 20

const { url, admin } = await startPostgres(t)

/** Several connections to the same data. */
async function stores(test: Test): Promise<readonly Store[]> {
  return Promise.all(Array.from({ length: 3 }, () => openStoreOn(test, settingsOf(url))))
}

/** Grants on threads that have no grants: on tombstones and on nobody's. */
const strays = () =>
  admin(
    `SELECT threads.thread_id FROM threadwarden.grants JOIN threadwarden.threads USING (scope, thread_id)
     WHERE deleted_at IS NOT NULL OR user_id = '' OR (kind = 'user' AND grantee = user_id)`,
  )

const TAKES: Record<string, (store: Store, key: ThreadKey) => Promise<unknown>> = {
  'a deletion': (store, key) => store.bury(key, ALICE, NOW, 'deleted'),
  'a taking of the owner': (store, key) => store.withhold(key, NOW),
  'an erasure': (store) => store.erase(ALICE, NOW, 10),
}

for (const [name, take] of Object.entries(TAKES)) {
  void t.test(`${name} takes every grant along, also one that is being made`, async (test) => {
    const [one, other, third] = (await stores(test)) as [Store, Store, Store]
    for (let round = 0; round < ROUNDS; round += 1) {
      const key = at(`${name} ${round}`)
      await own(one, ALICE, key)
      await one.grant(key, ALICE, grantOf(user(CAROL)))
      await Promise.all([
        take(one, key),
        other.grant(key, ALICE, grantOf(user(BOB))),
        third.grant(key, null, grantOf(group('corp:team'), 'write')),
      ])
    }
    test.same(await strays(), [])
  })
}

void t.test('a transfer to somebody leaves them no grant on what is theirs', async (test) => {
  const [one, other] = (await stores(test)) as [Store, Store]
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = at(`transfer ${round}`)
    await own(one, ALICE, key)
    await Promise.all([one.transfer(ALICE, BOB, 10), other.grant(key, ALICE, grantOf(user(BOB)))])
    test.equal(await other.grant(key, ALICE, grantOf(user(CAROL))), 'not-owner')
  }
  test.same(await strays(), [])
})

void t.test('of a hundred grants at once a thread has no more than it may', async (test) => {
  const [one, other, third] = (await stores(test)) as [Store, Store, Store]
  const key = at('many grants')
  await own(one, ALICE, key)
  const outcomes = await Promise.all(
    Array.from({ length: 110 }, (_, n) => [one, other, third][n % 3]!.grant(key, ALICE, grantOf(user(`corp:u${n}`)))),
  )
  test.equal(outcomes.filter((outcome) => outcome === 'done').length, 100)
  test.equal(outcomes.filter((outcome) => outcome === 'too-many').length, 10)
  test.equal((await one.grants(key, ALICE))?.length, 100)
})

void t.test('runs that register and end at once leave a row for as long as one of them is there', async (test) => {
  const [one, other, third] = (await stores(test)) as [Store, Store, Store]
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = at(`runs ${round}`)
    await claim(one, ALICE, key)
    const run = async (store: Store): Promise<void> => {
      const claimed = await store.claim(key, { userId: ALICE, agentId: 'a', guest: false, now: NOW })
      if (claimed.outcome === 'foreign' || claimed.registration === null) throw new Error(`lost: ${JSON.stringify(claimed)}`)
      test.equal(
        await store.claim(key, { userId: BOB, agentId: 'a', guest: false, now: NOW }).then((one) => one.outcome),
        'foreign',
      )
      await store.settle(key, ALICE, claimed.registration, 'not-started')
    }
    await Promise.all([run(other), run(third), run(other), run(third)])
    test.equal(await one.settle(key, ALICE, 0, 'not-started'), true, 'the first was the last')
    test.equal(await claim(other, BOB, key), 'new')
  }
})

void t.test('a last run that ends while another begins leaves a row to it, or none', async (test) => {
  const [one, other] = (await stores(test)) as [Store, Store]
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = at(`last ${round}`)
    await claim(one, ALICE, key)
    const [released, next] = await Promise.all([
      one.settle(key, ALICE, 0, 'not-started'),
      other.claim(key, { userId: ALICE, agentId: 'a', guest: false, now: NOW }),
    ])
    test.same(next, { outcome: released ? 'new' : 'own', registration: 0 })
    test.equal(await other.settle(key, ALICE, 0, 'not-started'), true)
    test.equal((await other.thread(key))?.row ?? null, null)
  }
})

void t.test('imports of the same threads at once add each of them once', async (test) => {
  const all = await stores(test)
  const keys = Array.from({ length: 200 }, (_, n) => `imported ${n}`)
  const rows = (owner: string, ids: readonly string[]) =>
    ids.map((id) => ({ ...at(id), owner, agentId: '', name: null, archived: false, createdAt: NOW, lastUsedAt: NOW }))
  const outcomes = await Promise.all([
    all[0]!.import(rows(ALICE, keys), { dryRun: false, settleConflicts: false }),
    all[1]!.import(rows(BOB, keys.toReversed()), { dryRun: false, settleConflicts: false }),
    ...keys.slice(0, 20).map((id) => claim(all[2]!, CAROL, at(id))),
  ])
  const [byAlice, byBob, ...claims] = outcomes as [{ outcome: string }[], { outcome: string }[], ...string[]]
  const added = [...byAlice, ...byBob].filter(({ outcome }) => outcome === 'added').length
  test.equal(added + claims.filter((outcome) => outcome === 'new').length, keys.length)
})
