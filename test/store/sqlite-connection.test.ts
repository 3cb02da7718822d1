/** How a file is opened. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { sql } from '../../src/store/sql/statement.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { migrate } from '../../src/store/sqlite/schema.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

void test('what is written is on the disk before it is answered, and reading goes on beside writing', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  writeFileSync(file, '')
  const connection = connect(file, migrate)
  t.teardown(() => connection.close())
  t.same(connection.get(sql<{ synchronous: number }>('PRAGMA synchronous')), { synchronous: 2 }, 'FULL')
  t.same(connection.get(sql<{ journal_mode: string }>('PRAGMA journal_mode')), { journal_mode: 'wal' })
  t.end()
})

void test('SQLite itself waits for a lock for a moment only: nothing else goes on meanwhile', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  writeFileSync(file, '')
  const connection = connect(file, migrate)
  t.teardown(() => connection.close())
  const waits = connection.get(sql<{ timeout: number }>('PRAGMA busy_timeout'))?.timeout ?? Infinity
  t.ok(waits <= 50, `${waits} ms`)
  t.end()
})
