/**
 * What the SQLite store remembers of threads: it answers without looking at their rows, and never with what is no longer so,
 * whoever has changed it, in this process or another, and whatever was put back.
 */
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import type { Connection } from '../../src/store/sqlite/connection.ts'
import { SqliteFile } from '../../src/store/sqlite/file.ts'
import { invalidationsOf } from '../../src/store/sqlite/invalidations.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { sqliteAccessCache } from '../../src/store/sqlite/access.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { ALICE, at, BOB, CAROL, claim, grant, group, KEY, NOW, own, readerOf, accessTo, user } from './contract/under-test.ts'
import { openPair } from './sqlite-pair.ts'

const UNKNOWN = { row: null, runners: [] }
const rowOf = (owner: string, granted: 'read' | 'write' | null = null) => ({ owner, deleted: false, provisional: false, granted })

void test('a thread that its owner may use is answered from memory', async (t) => {
  const { store, file } = await openPair(t)
  await own(store, ALICE)
  await accessTo(store, readerOf(ALICE))
  // Written past everything that counts changes, on the quiet: what is answered then was remembered.
  const opened = await SqliteFile.open(file)
  t.teardown(() => opened.close())
  const remembered = sqliteAccessCache(opened, 10)
  const facts = rowOf(ALICE)
  await opened.read((database) => remembered.keep(database, KEY, { row: facts, runners: [] }, readerOf(ALICE)))
  t.same(remembered.find(KEY, readerOf(ALICE)), { row: facts, runners: [] })
  t.equal(remembered.find(KEY, readerOf(BOB)), null, 'nobody else is answered')
  t.equal(remembered.find(at('another'), readerOf(ALICE)), null)
})

void test('what lets nobody use it is not remembered', async (t) => {
  const { file } = await openPair(t)
  const opened = await SqliteFile.open(file)
  t.teardown(() => opened.close())
  const remembered = sqliteAccessCache(opened, 10)
  const facts = [{ ...rowOf(ALICE), deleted: true }, { ...rowOf(ALICE), provisional: true }, rowOf(''), rowOf(BOB)]
  for (const row of facts) {
    await opened.read((database) => remembered.keep(database, KEY, { row, runners: [] }, readerOf(ALICE)))
    t.equal(remembered.find(KEY, readerOf(ALICE)), null)
  }
  await opened.read((database) => remembered.keep(database, KEY, UNKNOWN, readerOf(ALICE)))
  t.equal(remembered.find(KEY, readerOf(ALICE)), null)
})

/** What takes a right away, or gives it to somebody else. */
const CHANGES: readonly (readonly [string, (store: Store) => Promise<unknown>, string | null])[] = [
  ['a transfer', (store) => store.assign(KEY, CAROL, NOW), CAROL],
  ['a deletion', (store) => store.bury(KEY, ALICE, NOW, 'deleted'), null],
  ['withholding', (store) => store.withhold(KEY, NOW), ''],
  ['erasing its owner', (store) => store.erase(ALICE, NOW, 10), null],
  ['giving all of its owner’s', (store) => store.transfer(ALICE, CAROL, 10), CAROL],
]

for (const by of ['this', 'another'] as const) {
  for (const [name, change, owner] of CHANGES) {
    void test(`${name} by ${by} process is seen by the next look-up`, async (t) => {
      const { store, other } = await openPair(t)
      await own(store, ALICE)
      await grant(store, user(BOB), 'write')
      for (const reader of [ALICE, BOB]) await accessTo(store, readerOf(reader))
      await change(by === 'this' ? store : other)
      // What becomes another's keeps the grants that it had.
      for (const reader of name.startsWith('giving') ? [ALICE] : [ALICE, BOB]) {
        const { row } = await accessTo(store, readerOf(reader))
        t.notOk(row !== null && !row.deleted && (row.owner === reader || row.granted !== null), reader)
        if (owner !== null) t.equal(row?.owner, owner)
      }
    })
  }

  void test(`a grant that ${by} process takes back or narrows is seen by the next look-up`, async (t) => {
    const { store, other } = await openPair(t)
    const changing = by === 'this' ? store : other
    await own(store, ALICE)
    await grant(store, user(BOB), 'write')
    await grant(store, group('corp:team'), 'read')
    t.equal((await accessTo(store, readerOf(BOB))).row?.granted, 'write')
    t.equal((await accessTo(store, readerOf(CAROL, 'corp:team'))).row?.granted, 'read')
    await grant(changing, user(BOB), 'read')
    t.equal((await accessTo(store, readerOf(BOB))).row?.granted, 'read')
    await changing.ungrant(KEY, ALICE, user(BOB))
    t.equal((await accessTo(store, readerOf(BOB))).row?.granted, null)
    await changing.ungrant(KEY, ALICE, group('corp:team'))
    t.equal((await accessTo(store, readerOf(CAROL, 'corp:team'))).row?.granted, null)
  })
}

void test('claims of others forget nothing that is still so, and a change behind many of them is seen', async (t) => {
  const { store, other } = await openPair(t)
  await own(store, ALICE)
  for (let n = 0; n < 20; n += 1) {
    await claim(other, BOB, at(`of-others-${n}`))
    t.equal((await accessTo(store, readerOf(ALICE))).row?.owner, ALICE)
  }
  await other.assign(KEY, BOB, NOW)
  t.equal((await accessTo(store, readerOf(ALICE))).row?.owner, BOB)
})

void test('a change of one thread, by this process or another, forgets this thread alone', async (t) => {
  const { store, other, file } = await openPair(t)
  const opened = await SqliteFile.open(file)
  t.teardown(() => opened.close())
  const remembered = sqliteAccessCache(opened, 10)
  const news = invalidationsOf(opened, { onOwn: (changed) => remembered.forget(changed), onAny: () => remembered.askAgain() })
  const keep = async (...keys: readonly ThreadKey[]): Promise<void> => {
    for (const key of keys) {
      remembered.noteUse(key, NOW)
      await opened.read((database) => remembered.keep(database, key, { row: rowOf(ALICE), runners: [] }, readerOf(ALICE)))
    }
  }
  const found = async (): Promise<readonly string[]> => {
    // In a turn of its own: what others have committed is asked once in each.
    await setImmediate()
    remembered.find(KEY, readerOf(ALICE))
    return [KEY, at('kept')].filter((key) => remembered.find(key, readerOf(ALICE)) !== null).map(({ threadId }) => threadId)
  }
  for (const key of [KEY, at('kept')]) await own(store, ALICE, key)
  await keep(KEY, at('kept'))
  await grant(other, user(BOB))
  t.same(await found(), ['kept'], 'by another')
  t.equal(remembered.usedAt(KEY), undefined)
  t.equal(remembered.usedAt(at('kept')), NOW)
  await keep(KEY)
  await news.write(() => ({ result: null, changed: KEY }))
  t.same(await found(), ['kept'], 'by this one')
  await keep(KEY)
  await other.transfer(CAROL, ALICE, 10)
  t.same(await found(), [KEY.threadId, 'kept'], 'what changes nothing')
  await other.transfer(ALICE, BOB, 10)
  t.same(await found(), [], 'many')
})

void test('a backup that is put back under a running gateway is seen, though it counts as many changes', async (t) => {
  const { store, file } = await openPair(t)
  const backup = join(file, '..', 'backup.db')
  const source = new Database(file)
  await source.backup(backup)
  source.close()
  await own(store, ALICE)
  t.equal((await accessTo(store, readerOf(ALICE))).row?.owner, ALICE)
  // As `sqlite3 FILE ".restore BACKUP"` does: page by page into the file that is in use.
  const old = new Database(backup, { readonly: true })
  await old.backup(file)
  old.close()
  t.same(await accessTo(store, readerOf(ALICE)), UNKNOWN)
})

void test('a run on a remembered thread is the owner’s still, and no longer when it is not', async (t) => {
  const { store, other } = await openPair(t)
  await own(store, ALICE)
  const run = (userId: string, now: number) => store.claim(KEY, { userId, agentId: '', guest: false, now })
  const usedAt = async () => (await other.thread(KEY))?.row?.lastUsedAt
  for (let at = 0; at < 3; at += 1) {
    await accessTo(store, readerOf(ALICE))
    t.same(await run(ALICE, NOW + 1000 * at), { outcome: 'own', registration: null })
  }
  t.equal(await usedAt(), NOW, 'it is written down once a minute')
  t.same(await run(ALICE, NOW + 60_000), { outcome: 'own', registration: null })
  t.equal(await usedAt(), NOW + 60_000)
  t.same(await run(BOB, NOW + 60_001), { outcome: 'foreign' })
  await other.assign(KEY, BOB, NOW)
  t.same(await run(ALICE, NOW + 60_002), { outcome: 'foreign' }, 'what another process has changed is known')
  t.same(await run(BOB, NOW + 60_002), { outcome: 'own', registration: null })
  await other.bury(KEY, BOB, NOW, 'deleted')
  t.match(await run(BOB, NOW + 60_003), { outcome: 'new' }, 'a deleted thread is begun anew')
})

void test('a row that went and came again was used when it says, not when the one before it was', async (t) => {
  const { store, other } = await openPair(t)
  const run = (now: number) => store.claim(KEY, { userId: ALICE, agentId: '', guest: false, now })
  for (const changing of [store, other]) {
    await own(store, ALICE)
    await accessTo(store, readerOf(ALICE))
    await run(NOW + 60_000)
    t.equal(await changing.prune({ unusedSince: NOW + 60_001 }, 10), 1)
    await changing.assign(KEY, ALICE, NOW)
    await accessTo(store, readerOf(ALICE))
    t.same(await run(NOW + 90_000), { outcome: 'own', registration: null })
    t.equal((await other.thread(KEY))?.row?.lastUsedAt, NOW + 90_000)
    t.equal(await store.prune({ unusedSince: NOW + 90_001 }, 10), 1)
  }
})

/** The file of a store in which Alice has her thread, and a connection of somebody who writes past it. */
async function openBeside(t: Test) {
  const { store, file } = await openPair(t)
  await own(store, ALICE)
  const opened = await SqliteFile.open(file)
  const another = new Database(file)
  t.teardown(() => (another.close(), opened.close()))
  return { opened, another }
}

/** A transfer by them. */
const TO_BOB = `UPDATE threads SET user_id = '${BOB}'; UPDATE versions SET value = value + 1 WHERE name = 'standing'`

void test('what others commit is asked for once in a turn, and before the next look-up again', async (t) => {
  const { store, file } = await openPair(t)
  await own(store, ALICE)
  const another = new Database(file)
  t.teardown(() => void another.close())
  const run = () => claim(store, ALICE)
  for (const inANewRound of [false, true]) {
    another.exec(`UPDATE threads SET user_id = '${ALICE}'`)
    await accessTo(store, readerOf(ALICE))
    await run()
    await setImmediate()
    const looked = store.accessTo(KEY, readerOf(ALICE))
    t.same(looked, { row: rowOf(ALICE), runners: [] }, 'at once')
    another.exec(TO_BOB)
    // A claim goes by what the decision before it saw: nobody can have been told of the change between them.
    t.equal(await run(), 'own')
    await (inANewRound ? setImmediate() : Promise.resolve())
    t.equal((await accessTo(store, readerOf(ALICE))).row?.owner, BOB)
    t.equal(await run(), 'foreign')
  }
})

void test('whether somebody waits tells nothing of the threads that others asked for', async (t) => {
  const { store } = await openPair(t)
  await own(store, ALICE)
  for (const asked of [KEY, at('of-nobody')]) {
    await accessTo(store, readerOf(ALICE))
    await setImmediate()
    const refused = store.accessTo(asked, readerOf(BOB))
    await Promise.resolve()
    const looked = store.accessTo(KEY, readerOf(ALICE))
    t.ok(looked instanceof Promise)
    await Promise.all([refused, looked])
  }
})

void test('those who come in one round of the event loop ask together, behind the last of them', async (t) => {
  const { opened, another } = await openBeside(t)
  let questions = 0
  const connection = await opened.read((database): Connection => {
    const commits = {
      get: () => {
        questions += 1
        return database.commits.get()
      },
    }
    return { ...database, commits }
  })
  const remembered = sqliteAccessCache({ identity: opened.identity, connected: () => connection }, 10)
  remembered.keep(connection, KEY, { row: rowOf(ALICE), runners: [] }, readerOf(ALICE))
  const find = () => remembered.find(KEY, readerOf(ALICE))?.row?.owner
  for (const changes of [false, false, true]) {
    await setImmediate()
    questions = 0
    t.equal(remembered.turn(), null, 'the first one waits for nobody')
    t.equal(find(), ALICE)
    const found: unknown[] = []
    const others: Promise<unknown>[] = []
    for (let come = 0; come < 5; come += 1) {
      await Promise.resolve()
      const turn = remembered.turn()
      if (turn === null) throw new Error('the others wait')
      others.push(turn.then(() => found.push(find())))
    }
    // The last of them has come, and none of them may go by what was so before it.
    if (changes) another.exec(TO_BOB)
    await Promise.all(others)
    t.same(found, Array(5).fill(changes ? undefined : ALICE))
    t.equal(questions, 2)
  }
})

void test('whoever hears of a change is answered by what is so now, in whatever turn', async (t) => {
  const { opened, another } = await openBeside(t)
  const remembered = sqliteAccessCache(opened, 10)
  await opened.read((database) => remembered.keep(database, KEY, { row: rowOf(ALICE), runners: [] }, readerOf(ALICE)))
  t.equal(remembered.find(KEY, readerOf(ALICE))?.row?.owner, ALICE)
  another.exec(TO_BOB)
  remembered.askAgain()
  t.equal(remembered.find(KEY, readerOf(ALICE)), null)
  const order: string[] = []
  const news = invalidationsOf(opened, { onOwn: () => order.push('own'), onAny: () => order.push('first') })
  t.teardown(() => news.stop())
  news.onInvalidation(() => order.push('told'))
  await news.write(() => ({ result: null, changed: KEY }))
  t.same(order, ['own', 'first', 'told'])
})

void test('a file that was away and is back, with a change that was made meanwhile, is looked at anew', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const [file, away] = [join(folder, 'ownership.db'), join(folder, 'away')]
  mkdirSync(away)
  const move = (from: string, to: string): void => {
    for (const end of ['', '-wal', '-shm']) if (existsSync(`${from}${end}`)) renameSync(`${from}${end}`, `${to}${end}`)
  }
  // Its connection has seen no commit of another's, and counts from where every new one begins.
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  await own(store, ALICE)
  t.equal((await accessTo(store, readerOf(ALICE))).row?.owner, ALICE)
  move(file, join(away, 'ownership.db'))
  await until(async () => (await store.fault()) !== null)
  const other = await openSqliteStore(join(away, 'ownership.db'))
  await other.assign(KEY, BOB, NOW)
  await other.close()
  move(join(away, 'ownership.db'), file)
  await until(async () => (await store.fault()) === null)
  t.equal((await store.accessTo(KEY, readerOf(ALICE))).row?.owner, BOB)
})
