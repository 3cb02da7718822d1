/** Imports into a real store: what is existed already stays as it is, whatever a file says. */
import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import { NOBODY } from '../../src/store/port/thread.ts'
import { importLines, key, own, ownersIn, startStore } from './store.ts'

const HEADER = 'thread,user'
const DELETED = 'thread,user,used,deleted'

void test('rows are added as the file says', async (t) => {
  const store = await startStore(t)
  const { report } = await importLines(store, [
    'thread,user,agent,name,archived,created,used',
    't-1,corp:alice,helper,Plans,true,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z',
  ])
  t.match(report, { read: 1, added: 1, same: 0, conflicts: 0, invalid: 0, complete: true })
  t.match(await store.thread(key('t-1')), {
    row: {
      owner: 'corp:alice',
      agentId: 'helper',
      name: 'Plans',
      archived: true,
      createdAt: Date.parse('2026-01-01T00:00:00Z'),
      lastUsedAt: Date.parse('2026-01-02T00:00:00Z'),
      deletedAt: null,
      provisional: false,
    },
  })
})

void test('the same file again finds everything there', async (t) => {
  const store = await startStore(t)
  const lines = ['thread,user,deleted', 'a,corp:alice,', 'b,nobody,', 'c,corp:bob,2026-01-01T00:00:00Z']
  t.match((await importLines(store, lines)).report, { added: 3 })
  const before = await ownersIn(store)
  t.match((await importLines(store, lines)).report, { added: 0, same: 3, conflicts: 0 })
  t.same(await ownersIn(store), before)
})

void test('an owner that is there is never replaced', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:bob')
  const { report, problems } = await importLines(store, [HEADER, 'a,corp:alice', 'b,corp:alice'])
  t.match(report, { added: 1, conflicts: 1 })
  t.match(problems, [
    { kind: 'conflict', line: 2, thread: 'a', user: 'corp:alice', with: ['corp:bob'], reason: 'it belongs to corp:bob' },
  ])
  t.same(await ownersIn(store), ['a=corp:bob', 'b=corp:alice'])
})

void test('an owner that was taken away is not given back', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:alice')
  await store.withhold(key('a'), 1)
  const { problems } = await importLines(store, [HEADER, 'a,corp:alice'])
  t.match(problems, [
    {
      kind: 'conflict',
      reason: 'no user may use it (owner revoked, or imported as "nobody"): threadwarden threads assign gives it an owner',
    },
  ])
  t.same(await ownersIn(store), [`a=${NOBODY}`])
})

void test('a deleted thread stays deleted, also where the file names who deleted it', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:alice')
  await store.bury(key('a'), 'corp:alice', 1, 'unknown')
  const { problems } = await importLines(store, [HEADER, 'a,corp:alice'])
  t.match(problems, [{ kind: 'conflict', with: ['corp:alice'], reason: 'it was deleted by its owner corp:alice' }])
  t.same(await ownersIn(store), ['a=corp:alice!'])
})

void test('a thread that others ran under observe stays without an owner; one that its owner alone ran does not', async (t) => {
  const store = await startStore(t)
  await store.observe(key('a'), 'corp:bob', '', 'run', 1)
  await store.observe(key('b'), 'corp:alice', '', 'run', 1)
  const { problems } = await importLines(store, [HEADER, 'a,corp:alice', 'b,corp:alice', 'c,nobody', 'a,corp:alice'])
  t.match(problems, [{ kind: 'conflict', thread: 'a', with: ['corp:bob'] }])
  t.same(await ownersIn(store), ['b=corp:alice', `c=${NOBODY}`])
})

void test('a thread that two lines give to different users gets neither, and each line is told', async (t) => {
  const store = await startStore(t)
  const { report, problems } = await importLines(store, [HEADER, 'a,corp:alice', 'b,corp:alice', 'a,corp:bob'])
  t.match(report, { added: 1, conflicts: 1, read: 3 })
  t.match(problems, [
    { kind: 'conflict', line: 2, thread: 'a', user: 'corp:alice' },
    { kind: 'conflict', line: 4, thread: 'a', user: 'corp:bob' },
  ])
  t.same(await ownersIn(store), ['b=corp:alice'])
})

void test('such lines are found over more than a batch', async (t) => {
  const store = await startStore(t)
  const many = Array.from({ length: 1200 }, (_one, at) => `t-${at},corp:alice`)
  const { report } = await importLines(store, [HEADER, ...many, 't-0,corp:bob', 't-1199,corp:bob', 't-5,corp:alice'])
  t.match(report, { read: 1203, added: 1198, conflicts: 2, repeated: 1 })
})

void test('a dry run says the same, and changes nothing', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:bob')
  const lines = ['thread,user,deleted', 'a,corp:alice,', 'b,corp:alice,', 'c,nobody,', 'd,corp:alice,2026-01-01T00:00:00Z']
  const before = await ownersIn(store)
  const dry = await importLines(store, lines, { dryRun: true })
  t.same(await ownersIn(store), before)
  t.same(dry, await importLines(store, lines))
})

void test('a deleted thread of a file is a tombstone from the first', async (t) => {
  const store = await startStore(t)
  const { report } = await importLines(store, [DELETED, 'a,corp:alice,2026-01-01T00:00:00Z,2026-01-05T00:00:00Z'])
  t.match(report, { added: 1 })
  t.match((await store.thread(key('a')))?.row, { owner: 'corp:alice', deletedAt: Date.parse('2026-01-05T00:00:00Z') })
  const claim = { userId: 'corp:bob', agentId: '', guest: false, now: 1 }
  t.same(await store.claim(key('a'), claim), { outcome: 'foreign' })
  t.equal(await store.prune({ deletedBefore: Date.now() }, 10), 0, 'nobody said that the upstream has forgotten it')
})

void test('a deleted thread of a file that is in use here stays in use', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:alice')
  const { problems } = await importLines(store, [DELETED, 'a,corp:alice,2026-01-01T00:00:00Z,2026-01-05T00:00:00Z'])
  t.match(problems, [{ kind: 'conflict', reason: 'the file says that it was deleted, but it is in use' }])
  t.same(await ownersIn(store), ['a=corp:alice'])
})

void test('a deleted thread of somebody else is not taken for the same', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:bob')
  await store.bury(key('a'), 'corp:bob', 1, 'unknown')
  await own(store, 'b', 'corp:eve')
  await store.erase('corp:eve', 1, 10)
  const line = 'corp:alice,2026-01-01T00:00:00Z,2026-01-05T00:00:00Z'
  const { report, problems } = await importLines(store, [DELETED, `a,${line}`, `b,${line}`])
  t.match(report, { added: 0, same: 0, conflicts: 2 })
  t.match(problems, [{ with: ['corp:bob'] }, { reason: 'it was deleted, and its owner was erased' }])
})

void test('an import that was killed between a row and its tombstone is finished by the next one', async (t) => {
  const store = await startStore(t)
  const lines = [DELETED, 'a,corp:alice,2026-01-01T00:00:00Z,2026-01-05T00:00:00Z']
  const killed = importLines({ ...store, bury: () => Promise.reject(new Error('killed')) }, lines)
  await t.rejects(killed, { message: 'killed' })
  t.same(await ownersIn(store), ['a=corp:alice'], 'it is nobody else’s meanwhile')
  await importLines(store, lines, { dryRun: true })
  t.same(await ownersIn(store), ['a=corp:alice'], 'a dry run does not finish it')
  t.match((await importLines(store, lines)).report, { same: 1, conflicts: 0 })
  t.same(await ownersIn(store), ['a=corp:alice!'])
})

void test('nobody stands for an owner that was taken away: the thread can be claimed by nobody', async (t) => {
  const store = await startStore(t)
  await own(store, 'b', 'corp:bob')
  await store.observe(key('c'), 'corp:bob', '', 'run', 1)
  const { report, problems } = await importLines(store, [HEADER, 'a,nobody', 'b,nobody', 'c,nobody'])
  t.match(report, { added: 1, conflicts: 2 })
  t.match(problems, [
    { thread: 'b', user: 'nobody', with: ['corp:bob'] },
    { thread: 'c', with: ['corp:bob'], reason: /run by corp:bob under enforcement: observe/ },
  ])
  const claim = { userId: 'corp:alice', agentId: '', guest: false, now: 1 }
  t.same(await store.claim(key('a'), claim), { outcome: 'foreign' })
})

void test('an owner who came between the look and the writing keeps the thread', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:bob')
  const before = { ...store, thread: () => Promise.resolve(null) }
  t.match((await importLines(before, [HEADER, 'a,nobody'])).problems, [{ thread: 'a', with: ['corp:bob'] }])
  t.same(await ownersIn(store), ['a=corp:bob'])
})

void test('a store that fails for a moment is asked again; one that goes on failing ends the import, which can go on', async (t) => {
  const store = await startStore(t)
  const many = [HEADER, ...Array.from({ length: 1200 }, (_one, at) => `t-${at},corp:alice`)]
  let calls = 0
  const flaky = {
    ...store,
    import: ((rows, options) => {
      calls += 1
      return calls === 2 || calls > 3 ? Promise.reject(new StoreUnavailable('away')) : store.import(rows, options)
    }) as typeof store.import,
  }
  await t.rejects(importLines(flaky, many), { name: 'StoreUnavailable' })
  t.equal((await ownersIn(store)).length, 1000)
  t.match((await importLines(store, many)).report, { added: 200, same: 1000, complete: true })
})

void test('the signal ends it after a batch, and the same import goes on', async (t) => {
  const store = await startStore(t)
  const many = [HEADER, ...Array.from({ length: 1200 }, (_one, at) => `t-${at},corp:alice`)]
  const told = new AbortController()
  const { report } = await importLines(store, many, { signal: told.signal, onSettled: () => told.abort() })
  t.match(report, { added: 500, complete: false })
  t.match((await importLines(store, many)).report, { added: 700, same: 500, complete: true })
})

void test('nothing is taken of a file that cannot be read to its end', async (t) => {
  const store = await startStore(t)
  await t.rejects(importLines(store, [HEADER, 'a,corp:alice', 'b,"corp:bob']), { name: 'SourceFault' })
  t.same(await ownersIn(store), [])
})
