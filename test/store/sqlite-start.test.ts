/** Gateways that start at the same moment on a new file: the later one waits for the earlier, and does not fail its start. */
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { makeFolder } from '../support/gateway.ts'

void test('a file that another process is making is waited for', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const other = new Worker(new URL('lock-worker.ts', import.meta.url), { workerData: { file, milliseconds: 200 } })
  t.teardown(() => other.terminate())
  await once(other, 'message')
  const store = openSqliteStore(file)
  t.equal(await store.isEmpty(), true)
  await store.close()
})
