/** A disk that takes nothing more, or may not be written: reads go on, writes don't, and both recover by themselves. */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { ALICE, at, BOB, claim, KEY, NOW, own, readerOf, row } from './contract/under-test.ts'
import { openStoreProcess, type StoreProcess } from './store-process.ts'

const AS_BOB = { userId: BOB, agentId: 'agent', guest: false, now: NOW }
const OWNED = { owner: ALICE, deleted: false, provisional: false, granted: null }
const isRoot = process.getuid?.() === 0
/** Of a user who may nothing: files that are not to be written can be written by root. */
const NOBODY_UID = 65_534

const hasCommand = (command: string): boolean => spawnSync(command, ['--version']).status === 0

/** Claims threads until one can't be written. */
async function fill(claimOf: (threadId: string) => Promise<unknown>): Promise<Error> {
  for (let n = 0; n < 10_000; n += 1) {
    try {
      await claimOf(`filler-${n}`)
    } catch (error) {
      return error as Error
    }
  }
  throw new Error('the disk takes everything')
}

void test(
  'a file that takes no more: claims fail, own threads can be read, and it recovers by itself',
  { skip: hasCommand('prlimit') ? false : 'there is no prlimit here' },
  async (t) => {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const file = join(folder, 'ownership.db')
    const store = await openStoreProcess(t, file)
    await store.call('assign', KEY, ALICE, NOW)
    const limit = (bytes: number | 'unlimited'): void => {
      const done = spawnSync('prlimit', ['--pid', String(store.pid), `--fsize=${bytes}:`])
      if (done.status !== 0) throw new Error(done.stderr.toString())
    }
    // Writes beyond it fail (EFBIG), as they do on a disk that breaks.
    limit(1000)
    await t.rejects(store.call('claim', at('new'), AS_BOB), { name: 'StoreUnavailable', message: /SQLITE_IOERR_WRITE/ })
    t.same((await store.call('accessTo', KEY, readerOf(BOB))).row, OWNED, 'reads go on')
    t.match(await store.call('fault'), /the ownership store failed/)
    t.match(await store.call('fault'), /the ownership store failed/, 'as long as nothing can be written')
    t.same((await store.call('accessTo', KEY, readerOf(BOB))).row, OWNED)
    limit('unlimited')
    await until(async () => (await store.call('fault')) === null)
    t.same(await store.call('claim', at('after'), AS_BOB), { outcome: 'new', registration: 0 })
  },
)

/** A file system of its own that holds little; undefined where nobody may make one. */
function mountSmall(t: Test): string | undefined {
  const { folder, remove } = makeFolder()
  const place = join(folder, 'small')
  mkdirSync(place)
  const mounted = isRoot && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', place]).status === 0
  t.teardown(() => {
    if (mounted) spawnSync('umount', [place])
    remove()
  })
  return mounted ? place : undefined
}

void test('a disk that is full: claims fail, own threads can be read, and it recovers by itself', async (t) => {
  const place = mountSmall(t)
  if (place === undefined) {
    t.comment('a file system of its own can’t be mounted here')
    return
  }
  const store = await openSqliteStore(join(place, 'ownership.db'))
  await own(store, ALICE)
  const filler = join(place, 'filler')
  t.throws(() => writeFileSync(filler, Buffer.alloc(2 ** 20)), /ENOSPC/)
  const failure = await fill((threadId) => claim(store, BOB, at(threadId)))
  t.match(failure, { name: 'StoreUnavailable', message: /SQLITE_FULL/ })
  t.same(await row(store), OWNED, 'reads go on')
  t.match(await store.fault(), /SQLITE_FULL/)
  t.match(await store.fault(), /SQLITE_FULL/, 'as long as nothing can be written')
  t.equal(await claim(store, ALICE), 'own')
  rmSync(filler)
  t.equal(await store.fault(), null)
  t.equal(await claim(store, BOB, at('after')), 'new')
  await store.close()
})

/** A folder of a user who may nothing else, with the file of a store at rest that has a thread of Alice's. */
async function unprivileged(t: Test): Promise<{ readonly file: string; readonly user: number | undefined }> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const store: Store = await openSqliteStore(file)
  await own(store, ALICE)
  await store.close()
  if (!isRoot) return { file, user: undefined }
  for (const path of [folder, file]) chownSync(path, NOBODY_UID, NOBODY_UID)
  return { file, user: NOBODY_UID }
}

void test('a file that may not be written is a start error with its path', async (t) => {
  const { file, user } = await unprivileged(t)
  chmodSync(file, 0o444)
  await t.rejects(openStoreProcess(t, file, user), {
    name: 'StoreUnavailable',
    message: /ownership\.db cannot be opened for writing: attempt to write a readonly database/,
  })
})

void test('a file that comes back and may not be written: reads go on, and it recovers by itself', async (t) => {
  const { file, user } = await unprivileged(t)
  const store: StoreProcess = await openStoreProcess(t, file, user)
  renameSync(file, `${file}.away`)
  await t.rejects(store.call('claim', at('new'), AS_BOB), StoreUnavailable)
  chmodSync(`${file}.away`, 0o444)
  renameSync(`${file}.away`, file)
  await until(async () => /readonly/.test((await store.call('fault')) ?? ''))
  t.same((await store.call('accessTo', KEY, readerOf(BOB))).row, OWNED, 'reads go on')
  await t.rejects(store.call('claim', at('new'), AS_BOB), { name: 'StoreUnavailable', message: /readonly/ })
  t.same((await store.call('accessTo', KEY, readerOf(BOB))).row, OWNED)
  chmodSync(file, 0o644)
  await until(async () => (await store.call('fault')) === null)
  t.same(await store.call('claim', at('new'), AS_BOB), { outcome: 'new', registration: 0 })
})
