/** A file that is damaged while it is in use: what rests on the damaged part does not answer, and `fault` says so until it is mended. */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import { findDamage } from '../../src/store/sqlite/integrity.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { ALICE, BOB, NOW, readerOf } from './contract/under-test.ts'
import { damage, filled, LAST } from './damage.ts'
import { openStoreProcess } from './store-process.ts'

void test('what rests on the damage does not answer, `fault` says so, and it answers when the file is mended', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  await filled(file, ALICE)
  const mend = damage(file)
  // In a process of its own: a file that the test opens beside a connection of its own would lose its locks.
  const store = await openStoreProcess(t, file)
  await t.rejects(async () => store.call('accessTo', LAST, readerOf(ALICE)), StoreUnavailable)
  await t.rejects(store.call('claim', LAST, { userId: BOB, agentId: '', guest: false, now: NOW }), {
    name: 'StoreUnavailable',
    message: /malformed/,
  })
  t.match(await store.call('fault'), /the ownership store failed/)
  t.type(await store.call('revocations'), Array, 'what rests on another part goes on')
  t.match(await store.call('fault'), /the ownership store failed/, 'and that proves nothing')
  mend()
  await until(async () => (await store.call('fault')) === null)
  t.equal((await store.call('accessTo', LAST, readerOf(ALICE))).row?.owner, ALICE)
})

void test('a file whose head is damaged is taken up again when it is mended', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  await filled(file, ALICE)
  const before = readFileSync(file)
  const store = await openStoreProcess(t, file)
  truncateSync(file, 100)
  writeFileSync(file, 'this is no database, and long enough to be seen as none\n'.repeat(20), { flag: 'r+' })
  await t.rejects(async () => store.call('accessTo', LAST, readerOf(ALICE)), StoreUnavailable)
  t.match(await store.call('fault'), /the ownership store failed/)
  writeFileSync(file, before, { flag: 'r+' })
  await until(async () => (await store.call('fault')) === null)
  t.equal((await store.call('accessTo', LAST, readerOf(ALICE))).row?.owner, ALICE)
})

void test('a file is looked through in a thread of its own', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  await filled(file, ALICE)
  t.equal(await findDamage(file, 'quick'), null)
  t.equal(await findDamage(file, 'whole'), null)
  damage(file)
  t.type(await findDamage(file, 'quick'), 'string')
  t.type(await findDamage(file, 'whole'), 'string')
  t.match(await findDamage(join(folder, 'missing.db'), 'quick'), /unable to open/)
})
