/** Gateways that start at the same moment on a new file: the later one waits for the earlier, and does not fail its start. */
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { holdLock } from './lock-holder.ts'

void test('a file that another process is making is waited for', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const release = await holdLock(t, file)
  let opened = false
  const opening = openSqliteStore(file).finally(() => (opened = true))
  // It has looked several times by then.
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.equal(opened, false)
  await release()
  const store = await opening
  t.equal(await store.isEmpty(''), true)
  await store.close()
})

void test('a file that stays locked is a start error with its path', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  await holdLock(t, file)
  await t.rejects(openSqliteStore(file, { retry: 50 }), { name: 'StoreUnavailable', message: /ownership\.db .*is locked/ })
})
