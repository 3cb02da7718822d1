/** A write lock that another process holds: who writes waits for it for a while, and nothing else does. */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ALICE, at, BOB, claim, grant, KEY, NOW, own, readerOf, user } from './contract/under-test.ts'
import { holdLock } from './lock-holder.ts'

/** A store with a thread of Alice's, and its file. */
async function started(t: Test, patience?: number): Promise<{ readonly store: Store; readonly file: string }> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const store = await openSqliteStore(file, patience === undefined ? {} : { retry: patience })
  t.teardown(async () => {
    await store.close()
    remove()
  })
  await own(store, ALICE)
  return { store, file }
}

void test('a claim waits for the lock, and reads and runs on own threads go on meanwhile', async (t) => {
  const { store, file } = await started(t)
  const release = await holdLock(t, file)
  let answered = false
  const waiting = claim(store, BOB, at('new')).finally(() => (answered = true))
  t.equal((await store.accessTo(KEY, readerOf(BOB))).row?.owner, ALICE)
  t.equal((await store.listed('', readerOf(ALICE), { agentId: null, includeArchived: true, after: null, limit: 9 })).length, 1)
  t.equal(await claim(store, ALICE, KEY, NOW + 60_000), 'own', 'though its time of use can’t be noted now')
  t.equal(answered, false)
  await release()
  t.equal(await waiting, 'new')
  t.equal((await store.thread(KEY))?.row?.lastUsedAt, NOW)
  await claim(store, ALICE, KEY, NOW + 60_000)
  t.equal((await store.thread(KEY))?.row?.lastUsedAt, NOW + 60_000, 'but the next time')
  t.equal(await store.fault(), null)
})

void test('those that wait are served in the order in which they came', async (t) => {
  const { store, file } = await started(t)
  const release = await holdLock(t, file)
  const users = ['corp:a', 'corp:b', 'corp:c', 'corp:d']
  const waiting = users.map((one) => claim(store, one, at('new')))
  await release()
  t.same(await Promise.all(waiting), ['new', 'foreign', 'foreign', 'foreign'])
})

void test('a lock that is not let go is a store that does not answer, until it is', async (t) => {
  const { store, file } = await started(t, 60)
  const release = await holdLock(t, file)
  const waiting = await Promise.allSettled([claim(store, BOB, at('a')), claim(store, BOB, at('b')), grant(store, user(BOB))])
  for (const one of waiting) {
    t.equal(one.status, 'rejected')
    if (one.status === 'rejected') t.type(one.reason, StoreUnavailable)
  }
  t.match(await store.fault(), /the ownership store failed: database is locked/)
  t.equal((await store.accessTo(KEY, readerOf(BOB))).row?.granted, null)
  await release()
  t.equal(await store.fault(), null)
  t.equal(await claim(store, BOB, at('a')), 'new')
})
