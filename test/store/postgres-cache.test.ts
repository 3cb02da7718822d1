/** The cache in front of PostgreSQL, over two processes' worth of connections on a real server. */
import { test, type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import { startPostgres, type TestDatabase } from '../../testing/support/postgres.ts'
import { until } from '../../testing/support/until.ts'
import { grantOf, group, KEY, NOW, own, readerOf, user } from './contract/under-test.ts'
import { openStoreOn, settingsOf } from './postgres-stores.ts'

const ALICE = 'corp:alice'
const BOB = 'corp:bob'
const TEAM = 'corp:team'

interface Scene {
  /** With a cache. */
  readonly store: Store
  /** Another, without one. */
  readonly other: Store
  readonly database: TestDatabase
  /** Changes the row past every store, so that nobody is told: what says the old is remembered. */
  readonly changeSilently: (owner: string) => Promise<unknown>
  /** Asks as the owner until the store answers from what it remembers. Whoever else may use the thread is answered so, too. */
  readonly warm: () => Promise<void>
}

async function sceneOf(t: Test): Promise<Scene> {
  const database = await startPostgres(t)
  const settings = settingsOf(database.url)
  const store = await openStoreOn(t, settings, { cache: 100 })
  const other = await openStoreOn(t, settings)
  const changeSilently = (owner: string) => database.admin('UPDATE threadwarden.threads SET user_id = $1', [owner])
  await own(other, ALICE)
  return {
    store,
    other,
    database,
    changeSilently,
    async warm() {
      await until(async () => {
        await changeSilently(ALICE)
        await ownerOf(store, ALICE)
        // To her it is not her thread now, and is not remembered as one.
        await changeSilently('corp:nobody')
        return (await ownerOf(store, ALICE)) === ALICE
      })
      await changeSilently(ALICE)
    },
  }
}

const ownerOf = async (store: Store, userId: string, ...groups: readonly string[]) =>
  (await store.accessTo(KEY, readerOf(userId, ...groups))).row?.owner

void test('the owner is remembered; whoever else asks has the database asked each time', async (t) => {
  const { store, changeSilently, warm } = await sceneOf(t)
  await warm()
  await changeSilently('corp:somebody')
  t.equal(await ownerOf(store, ALICE), ALICE, 'remembered')
  t.equal(await ownerOf(store, BOB), 'corp:somebody', 'asked')
  await changeSilently('corp:else')
  t.equal(await ownerOf(store, BOB), 'corp:else', 'and asked again')
})

void test('so are those whom the thread was granted to, by name or by group', async (t) => {
  const { store, other, changeSilently, warm } = await sceneOf(t)
  await other.grant(KEY, ALICE, grantOf(user(BOB), 'write'))
  await other.grant(KEY, ALICE, grantOf(group(TEAM)))
  await warm()
  await changeSilently('corp:somebody')
  t.match(await store.accessTo(KEY, readerOf(BOB)), { row: { owner: ALICE, granted: 'write' } })
  t.match(await store.accessTo(KEY, readerOf('corp:carol', TEAM)), { row: { owner: ALICE, granted: 'read' } })
  t.equal(await ownerOf(store, 'corp:carol', 'corp:others'), 'corp:somebody')
})

void test('a thread that is missing, provisional or deleted, or was seen with others, is never remembered', async (t) => {
  const { store, other, database, warm } = await sceneOf(t)
  const key = { scope: '', threadId: 'another' }
  const change = (assignment: string) =>
    database.admin(`UPDATE threadwarden.threads SET ${assignment} WHERE thread_id = 'another'`)
  const threadAccess = () => store.accessTo(key, readerOf(ALICE))
  const warmed = async () => {
    for (let times = 0; times < 5; times += 1) await threadAccess()
  }
  // The feed has to be heard, or the cache would not answer at all.
  await warm()
  t.equal((await threadAccess()).row, null)
  await other.claim(key, { userId: ALICE, agentId: 'a', guest: false, now: NOW })
  t.match(await threadAccess(), { row: { owner: ALICE } }, 'a claim is seen at once')
  await warmed()
  await other.settle(key, ALICE, 0, 'not-started')
  t.equal((await threadAccess()).row, null, 'and so is its end')
  await other.claim(key, { userId: ALICE, agentId: 'a', guest: false, now: NOW })
  await warmed()
  t.match(await threadAccess(), { row: { provisional: true } })
  await other.settle(key, ALICE, 0, 'confirmed')
  t.match(await threadAccess(), { row: { provisional: false } }, 'and that its run was confirmed')
  await other.bury(key, ALICE, NOW, 'deleted')
  await other.prune({ deletedBefore: NOW + 1 }, 10)
  await own(other, ALICE, key)
  await change('deleted_at = 1')
  await warmed()
  await change('deleted_at = NULL')
  t.match(await threadAccess(), { row: { deleted: false } }, 'a tombstone')
  await other.bury(key, ALICE, NOW, 'deleted')
  await other.assign(key, ALICE, NOW)
  await other.observe(key, BOB, 'a', 'run', NOW)
  await warmed()
  await change("user_id = 'corp:somebody'")
  t.match(await threadAccess(), { row: { owner: 'corp:somebody' }, runners: [BOB] }, 'what others were seen on')
})

for (const [name, take] of [
  ['a transfer', (other: Store) => other.transfer(ALICE, BOB, 10)],
  ['an assignment', (other: Store) => other.assign(KEY, BOB, NOW)],
  ['a taking of the owner', (other: Store) => other.withhold(KEY, NOW)],
  ['a deletion', (other: Store) => other.bury(KEY, ALICE, NOW, 'unknown')],
  ['an erasure', (other: Store) => other.erase(ALICE, NOW, 10)],
  ['a pruning', (other: Store) => other.prune({ unusedSince: NOW + 1 }, 10)],
] as const) {
  void test(`${name} by another process is seen`, async (t) => {
    const { store, other, warm } = await sceneOf(t)
    await warm()
    await take(other)
    await until(async () => {
      const { row } = await store.accessTo(KEY, readerOf(ALICE))
      return row?.owner !== ALICE || row.deleted
    })
  })
}

void test('a grant, a wider one and its end by another process are seen', async (t) => {
  const { store, other, warm } = await sceneOf(t)
  const granted = async () => (await store.accessTo(KEY, readerOf(BOB))).row?.granted
  await warm()
  await other.grant(KEY, ALICE, grantOf(user(BOB)))
  await until(async () => (await granted()) === 'read')
  await warm()
  await other.grant(KEY, ALICE, grantOf(user(BOB), 'write'))
  await until(async () => (await granted()) === 'write')
  await warm()
  await other.ungrant(KEY, ALICE, user(BOB))
  await until(async () => (await granted()) === null)
})

void test("a change of this process's own is seen at once", async (t) => {
  const { store, warm } = await sceneOf(t)
  await warm()
  await store.assign(KEY, BOB, NOW)
  t.equal(await ownerOf(store, ALICE), BOB)
})

void test('what is remembered is not used without the connection that listens', async (t) => {
  const { store, database, changeSilently, warm } = await sceneOf(t)
  await warm()
  // The only session whose last statement is a question for the number, and none of the pool.
  const listening = `SELECT pid FROM pg_stat_activity WHERE application_name = 'threadwarden' AND query LIKE '%versions WHERE name%'`
  const sessions = await database.admin(listening)
  t.ok(sessions.length > 0)
  await database.admin(`SELECT pg_terminate_backend(pid) FROM (${listening}) AS sessions`)
  await changeSilently('corp:somebody')
  await until(async () => (await ownerOf(store, ALICE)) === 'corp:somebody')
  await changeSilently(ALICE)
  await warm()
  t.pass('and is again, once it is back')
})

void test('changes whose notifications are lost are found out all the same', async (t) => {
  const { store, database, warm } = await sceneOf(t)
  await warm()
  // As another process would do it whose notification gets lost on the way: it counts, and nothing is told.
  await database.admin(
    `WITH given AS (UPDATE threadwarden.threads SET user_id = 'corp:somebody')
     UPDATE threadwarden.versions SET value = value + 1 WHERE name = 'standing'`,
  )
  await until(async () => (await ownerOf(store, ALICE)) === 'corp:somebody')
  await database.admin("UPDATE threadwarden.threads SET user_id = 'corp:alice'")
  await warm()
  t.pass('and it remembers again')
})
