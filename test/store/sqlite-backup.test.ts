/** The backup: a copy of one moment while gateways write, whole or not there at all. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import { backup } from '../../src/store/sqlite/backup.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ALICE, at, BOB, claim, grant, NOW, own, readerOf, row, user } from './contract/under-test.ts'
import { openStoreProcess } from './store-process.ts'
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts'

const ROWS = 3000
const CAROL = 'corp:carol-who-is-erased'

/** A store with rows that take many pages, its file, and a folder for copies. */
async function started(t: Test): Promise<{ readonly store: Store; readonly file: string; readonly folder: string }> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const copies = join(folder, 'copies')
  mkdirSync(copies)
  const store = await openSqliteStore(file)
  t.teardown(async () => {
    await store.close()
    remove()
  })
  const rows = Array.from({ length: ROWS }, (_, n) => ({
    ...at(`t-${n}`),
    owner: ALICE,
    agentId: 'agent',
    name: 'a name that takes its place '.repeat(20),
    archived: false,
    createdAt: NOW,
    lastUsedAt: NOW,
  }))
  await store.import(rows, { dryRun: false, settleConflicts: false })
  return { store, file, folder: copies }
}

void test('a copy has all that was there, and is a store', async (t) => {
  const { store, file, folder } = await started(t)
  await grant(store, user(BOB), 'write', at('t-7'))
  await store.revoke({ kind: 'token', tokenId: 'j', revokedAt: NOW })
  const secret = await store.secret()
  const target = join(folder, 'copy.db')
  const seen: [number, number][] = []
  const made = await backup(file, target, { onProgress: (copied, total) => seen.push([copied, total]) })
  t.same(made, { bytes: statSync(target).size, schema: SCHEMA_VERSION })
  t.same(readdirSync(folder), ['copy.db'], 'one file, and nothing beside it')
  t.equal(statSync(target).mode & 0o077, 0, 'nobody else may read it')
  t.ok(seen.length > 1)
  t.ok(seen.every(([copied, total], n) => copied <= total && copied >= (seen[n - 1]?.[0] ?? 0)))
  const copy = await openSqliteStore(target)
  t.same(await copy.stats(), await store.stats())
  t.same(await copy.secret(), secret)
  t.equal((await row(copy, at('t-7'), readerOf(BOB)))?.granted, 'write')
  t.equal((await copy.revocations()).length, 1)
  t.equal(await claim(copy, BOB, at('t-0')), 'foreign')
  await copy.close()
})

void test('it is of one moment, while gateways go on writing', async (t) => {
  const { store, file, folder } = await started(t)
  const other = await openStoreProcess(t, file)
  const target = join(folder, 'copy.db')
  let count = 0
  const writing: Promise<unknown>[] = []
  await backup(file, target, {
    onProgress() {
      // One in this process, and one in another: each comes after the beginning.
      writing.push(claim(store, BOB, at(`later-${(count += 1)}`)))
      if (count === 1) writing.push(other.call('claim', at('elsewhere'), { userId: BOB, agentId: '', guest: false, now: NOW }))
    },
  })
  await Promise.all(writing)
  t.ok(count > 1)
  t.equal((await store.stats()).threads, ROWS + count + 1)
  const copy = await openSqliteStore(target)
  t.equal((await copy.stats()).threads, ROWS)
  await copy.close()
})

void test('what is there is not overwritten, unless that is said, and then by a whole copy at once', async (t) => {
  const { store, file, folder } = await started(t)
  const target = join(folder, 'copy.db')
  writeFileSync(target, 'something dear')
  await t.rejects(backup(file, target), { name: 'BackupFailed', message: /copy\.db already exists/ })
  t.equal(readFileSync(target, 'utf8'), 'something dear')
  await backup(file, target, { overwrite: true })
  await own(store, BOB, at('more'))
  await backup(file, target, { overwrite: true })
  const copy = await openSqliteStore(target)
  t.equal((await copy.stats()).threads, ROWS + 1)
  await t.rejects(backup(file, target, { overwrite: true }), /copy\.db-wal exists: a database with that name is in use/)
  await copy.close()
})

void test('the store itself is no target, whatever its name', async (t) => {
  const { file } = await started(t)
  const before = readFileSync(file)
  await t.rejects(backup(file, file, { overwrite: true }), { name: 'BackupFailed', message: /is the store itself/ })
  await t.rejects(backup(file, join(file, '..', 'copies', '..', 'ownership.db'), { overwrite: true }), /is the store itself/)
  t.ok(readFileSync(file).equals(before))
})

void test('a backup that fails leaves nothing', async (t) => {
  const { file, folder } = await started(t)
  const target = join(folder, 'copy.db')
  await t.rejects(backup(join(folder, 'missing.db'), target), { name: 'BackupFailed', message: /missing\.db does not exist/ })
  await t.rejects(backup(file, join(folder, 'none', 'copy.db')), {
    name: 'BackupFailed',
    message: /^the folder .*none does not exist: create it/,
  })
  writeFileSync(join(folder, 'empty.db'), '')
  await t.rejects(backup(join(folder, 'empty.db'), target), /is no store/)
  writeFileSync(join(folder, 'text.db'), 'this is no database, and long enough to be seen as none\n'.repeat(20))
  await t.rejects(backup(join(folder, 'text.db'), target), { name: 'BackupFailed', message: /not a database/ })
  const stopped = new AbortController()
  const stopping = backup(file, target, { signal: stopped.signal, onProgress: () => stopped.abort() })
  await t.rejects(stopping, { name: 'AbortError' })
  t.notOk(existsSync(target))
  t.same(readdirSync(folder).sort(), ['empty.db', 'text.db'])
})

void test('a damaged store has no backup', async (t) => {
  const { store, file, folder } = await started(t)
  await store.close()
  const whole = readFileSync(file)
  whole.fill(0xa5, 40 * 4096, 60 * 4096)
  const damaged = join(folder, 'damaged.db')
  writeFileSync(damaged, whole)
  await t.rejects(backup(damaged, join(folder, 'copy.db')), { name: 'BackupFailed', message: /is damaged/ })
  t.same(readdirSync(folder), ['damaged.db'])
})

void test('what was erased is in no page of the file, nor of a copy', async (t) => {
  const { store, file, folder } = await started(t)
  // Gone before the erasure: a shared thread that was deleted, and a grant that was taken back.
  await own(store, CAROL, at('hers'))
  await grant(store, user(BOB), 'read', at('hers'))
  await store.bury(at('hers'), CAROL, NOW, 'deleted')
  await store.prune({ deletedBefore: NOW + 1 }, 10)
  await grant(store, user(CAROL), 'write', at('t-7'))
  await store.ungrant(at('t-7'), null, user(CAROL))
  await own(store, CAROL, at('hers-too'))
  while ((await store.erase(CAROL, NOW, 100)) > 0);
  const target = join(folder, 'copy.db')
  await backup(file, target, {})
  t.notOk(readFileSync(target).includes(CAROL), 'of the copy')
  await store.close()
  t.notOk(readFileSync(file).includes(CAROL), 'of the file, whose log is gone by now')
})
