/** News over processes on one SQLite file. */
import { renameSync } from 'node:fs'
import { test, type Test } from 'tap'
import type { Store, ThreadKey } from '../../src/store/port.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { until } from '../support/until.ts'
import { ALICE, BOB, grant, KEY, NOW, own, user } from './contract/under-test.ts'
import { openPair, type SqlitePair } from './sqlite-pair.ts'

async function started(t: Test): Promise<SqlitePair> {
  const pair = await openPair(t)
  await own(pair.store, ALICE)
  return pair
}

function listen(store: Store): (ThreadKey | null)[] {
  const told: (ThreadKey | null)[] = []
  store.onStanding((key) => told.push(key))
  return told
}

void test('a change of one’s own is told at once, once, and with its thread', async (t) => {
  const { store, other } = await started(t)
  const told = listen(store)
  await grant(store, user(BOB))
  t.same(told, [KEY])
  await store.bury(KEY, ALICE, NOW, true)
  t.same(told, [KEY, KEY])
  // It looks at the count several times meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 700))
  t.same(told, [KEY, KEY])
  await other.assign(KEY, BOB, NOW)
  await until(() => told.includes(null))
  t.same(told, [KEY, KEY, null])
})

void test('changes of others between one’s own are not lost', async (t) => {
  const { store, other } = await started(t)
  const told = listen(store)
  await grant(store, user(BOB))
  await other.assign(KEY, BOB, NOW)
  await store.assign({ ...KEY, threadId: 'mine' }, BOB, NOW)
  t.same(told, [KEY, null], 'it has changed more than it knows of')
})

void test('what changes while the file cannot be read is told when it can', async (t) => {
  const { store, file } = await started(t)
  const told = listen(store)
  renameSync(file, `${file}.away`)
  await until(async () => (await store.fault()) !== null)
  renameSync(`${file}.away`, file)
  const late = await openSqliteStore(file)
  await late.assign(KEY, BOB, NOW)
  await late.close()
  await until(() => told.length > 0)
  t.same(told, [null])
})

void test('nothing is told of what was before anybody listened, nor after the end', async (t) => {
  const { store, other } = await started(t)
  await other.assign(KEY, BOB, NOW)
  const first = listen(store)
  const end = store.onStanding(() => first.push(null))
  end()
  await store.assign(KEY, ALICE, NOW)
  t.same(first, [KEY])
  await store.close()
  await other.assign(KEY, BOB, NOW)
  t.same(first, [KEY])
})
