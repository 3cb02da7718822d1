/** A file that is moved away or replaced while it is in use: it is never made anew, and taken up again when it is back. */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { inspectSqlite } from '../../src/store/inspect.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { ALICE, at, BOB, claim, own, row } from './contract/under-test.ts'

const OWNED = { owner: ALICE, deleted: false, provisional: false, granted: null }

/** A store with a thread of Alice's, and its file. */
async function started(t: Test): Promise<{ readonly store: Store; readonly file: string; readonly folder: string }> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const store = await openSqliteStore(file)
  t.teardown(async () => {
    await store.close()
    remove()
  })
  await own(store, ALICE)
  return { store, file, folder }
}

/** A file of a store at rest, with a thread of Bob's. */
async function other(folder: string): Promise<string> {
  const file = join(folder, 'other.db')
  const store = await openSqliteStore(file)
  await own(store, BOB, at('bobs'))
  await store.close()
  return file
}

const isFaulty = (store: Store, why: RegExp) => until(async () => why.test((await store.fault()) ?? ''))
const isFine = (store: Store) => until(async () => (await store.fault()) === null)

void test('a file that was moved away is a fault, is not made anew, and is taken up again when it is back', async (t) => {
  const { store, file } = await started(t)
  renameSync(file, `${file}.away`)
  await t.rejects(claim(store, BOB, at('new')), StoreUnavailable)
  await t.rejects(claim(store, BOB), StoreUnavailable, 'and again')
  await isFaulty(store, /its file is missing/)
  await t.rejects(row(store), StoreUnavailable, 'nothing is known, not even what was')
  t.notOk(existsSync(file))
  t.ok(existsSync(`${file}-wal`), 'what was not yet written into it is still there')
  renameSync(`${file}.away`, file)
  await isFine(store)
  t.same(await row(store), OWNED)
  t.equal(await claim(store, BOB), 'foreign')
  t.equal(await claim(store, BOB, at('new')), 'new')
})

void test('a read notices it, too', async (t) => {
  const { store, file } = await started(t)
  renameSync(file, `${file}.away`)
  await until(() =>
    row(store).then(
      () => false,
      (error: unknown) => error instanceof StoreUnavailable,
    ),
  )
  renameSync(`${file}.away`, file)
  await until(() =>
    row(store).then(
      (facts) => facts?.owner === ALICE,
      () => false,
    ),
  )
  t.pass('and when it is back')
})

void test('an empty file in its place is a fault: in it every thread would be nobody’s', async (t) => {
  const { store, file } = await started(t)
  renameSync(file, `${file}.away`)
  for (const end of ['-wal', '-shm']) renameSync(`${file}${end}`, `${file}.away${end}`)
  writeFileSync(file, '')
  await t.rejects(claim(store, BOB), StoreUnavailable)
  await isFaulty(store, /its file is empty/)
  await t.rejects(claim(store, BOB), StoreUnavailable)
  for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
  for (const end of ['', '-wal', '-shm']) if (existsSync(`${file}.away${end}`)) renameSync(`${file}.away${end}`, `${file}${end}`)
  await isFine(store)
  t.same(await row(store), OWNED)
})

void test('another store in its place is taken up, and told of', async (t) => {
  const { store, file, folder } = await started(t)
  const told: unknown[] = []
  store.onInvalidation((key) => told.push(key))
  const replacement = await other(folder)
  for (const end of ['', '-wal', '-shm']) renameSync(`${file}${end}`, `${file}.away${end}`)
  renameSync(replacement, file)
  await until(() => told.includes(null))
  await isFine(store)
  t.equal((await row(store, at('bobs')))?.owner, BOB)
  t.equal(await row(store), null)
  t.equal(await claim(store, ALICE, at('bobs')), 'foreign')
})

void test('another store beside the changes of the old one is not opened: they would be written into it', async (t) => {
  const { store, file, folder } = await started(t)
  renameSync(await other(folder), file)
  await t.rejects(claim(store, ALICE, at('bobs')), StoreUnavailable)
  await isFaulty(store, /was replaced while it was in use.*-wal and -shm/)
  for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`)
  await isFine(store)
  t.equal((await row(store, at('bobs')))?.owner, BOB)
})

void test('a file that is gone, of which the log is left, is not made anew at a start, either', async (t) => {
  const { store, file } = await started(t)
  renameSync(file, `${file}.away`)
  // As after a kill: whoever closes a store takes its log away.
  t.ok(existsSync(`${file}-wal`))
  await t.rejects(openSqliteStore(file), { name: 'StoreUnavailable', message: /but its -wal is there: restore the file/ })
  t.match(inspectSqlite(file, 100), { outcome: 'unusable', message: /restore the file/ })
  t.notOk(existsSync(file))
  renameSync(`${file}.away`, file)
  await isFine(store)
  const again = await openSqliteStore(file)
  t.same(await row(again), OWNED)
  await again.close()
})

void test('the same of a file that a link leads to: its log is beside the file, not beside the link', async (t) => {
  const { store, file, folder } = await started(t)
  mkdirSync(join(folder, 'elsewhere'))
  const link = join(folder, 'elsewhere', 'link.db')
  symlinkSync(join('..', 'ownership.db'), link)
  renameSync(file, `${file}.away`)
  await t.rejects(openSqliteStore(link), { name: 'StoreUnavailable', message: /but its -wal is there: restore the file/ })
  t.notOk(existsSync(file), 'and not made anew through the link')
  renameSync(`${file}.away`, file)
  await isFine(store)
  const linked = await openSqliteStore(link)
  t.same(await row(linked), OWNED)
  const replacement = await other(folder)
  renameSync(replacement, file)
  await isFaulty(linked, /was replaced while it was in use/)
  await linked.close()
})
