/** The store: opened and let go, never made and never changed. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { examined } from './examination.ts'

function somewhere(t: Parameters<typeof examined>[0]): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  return join(folder, 'data', 'ownership.db')
}

void test('a store that is not there yet is not made', async (t) => {
  const file = somewhere(t)
  const { of } = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(of('store.file'), { level: 'ok', message: /does not exist yet: the gateway creates it/ })
  t.match(of('store.durable'), { level: 'unknown', message: /the folder .* does not exist yet/ })
  t.notOk(existsSync(dirname(file)))
})

void test('a store that a gateway has open is looked at, and neither of them notices', async (t) => {
  const file = somewhere(t)
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  const empty = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(empty.of('store.file'), { level: 'ok', message: /no thread has an owner yet/ })
  const claimed = await store.claim(
    { scope: '', threadId: 't1' },
    { userId: 'corp:alice', agentId: 'default', guest: false, now: Date.now() },
  )
  t.equal(claimed.outcome, 'new')
  const full = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(full.of('store.file'), { level: 'ok', message: /it has owners of threads/ })
  t.equal(
    (await store.claim({ scope: '', threadId: 't2' }, { userId: 'corp:bob', agentId: 'default', guest: false, now: Date.now() }))
      .outcome,
    'new',
  )
})

void test('a store at rest is the same file afterwards, with nothing beside it', async (t) => {
  const file = somewhere(t)
  await (await openSqliteStore(file)).close()
  const before = readFileSync(file)
  await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.ok(readFileSync(file).equals(before))
  t.notOk(existsSync(`${file}-wal`) || existsSync(`${file}-shm`))
})

void test('an empty file is no store yet, and stays empty', async (t) => {
  const file = somewhere(t)
  mkdirSync(dirname(file))
  writeFileSync(file, '')
  const { of } = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(of('store.file'), { level: 'ok' })
  t.equal(readFileSync(file).length, 0)
})

void test('what is no database, or another one, is a problem', async (t) => {
  const file = somewhere(t)
  mkdirSync(dirname(file))
  writeFileSync(file, 'this is a text of more than sixteen bytes, and of no database at all\n'.repeat(20))
  const text = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(text.of('store.file'), { level: 'problem', message: /cannot be opened.*not a database/, remedy: /ownership\.store/ })
  const other = somewhere(t)
  mkdirSync(dirname(other))
  const database = new Database(other)
  database.exec('CREATE TABLE cats (name TEXT); PRAGMA user_version = 1')
  database.close()
  t.match((await examined(t, { 'ownership.store': `sqlite:${other}` })).of('store.file'), {
    level: 'problem',
    message: /no such table/,
  })
})

void test('a store of a newer program is a problem', async (t) => {
  const file = somewhere(t)
  await (await openSqliteStore(file)).close()
  const database = new Database(file)
  database.pragma('user_version = 99')
  database.close()
  const { of } = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(of('store.file'), { level: 'problem', message: /written by a newer version: its schema is 99/, remedy: /backup/ })
})

void test('a store below what is no folder is a problem', async (t) => {
  const file = somewhere(t)
  writeFileSync(dirname(file), '')
  const { of } = await examined(t, { 'ownership.store': `sqlite:${file}` })
  t.match(of('store.file'), { level: 'problem', message: /is not a writable folder/, remedy: /volume/ })
})

for (const [mounts, level, message] of [
  ['1 0 8:1 / / rw - ext4 /dev/sda1 rw', 'ok', /is on durable storage/],
  ['1 0 0:1 / / rw - overlay overlay rw', 'problem', /is lost with the container: then no thread has an owner/],
  ['1 0 0:1 / / rw - tmpfs tmpfs rw', 'problem', /is lost with the memory of the machine/],
  ['', 'unknown', /does not show its mounts/],
] as const) {
  void test(`on ${mounts === '' ? 'a machine without mounts' : mounts.split(' ').at(-3)} it is ${level}`, async (t) => {
    const file = somewhere(t)
    await (await openSqliteStore(file)).close()
    const { of } = await examined(t, { 'ownership.store': `sqlite:${file}` }, { machine: { mounts } })
    t.match(of('store.durable'), { level, message })
  })
}
