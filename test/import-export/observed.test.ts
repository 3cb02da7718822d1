/** What was seen under observe makes an owner where one user alone ran a thread, and only when it is confirmed. */
import { test } from 'tap'
import { confirmObserved } from '../../src/tools/import-export/takeover.ts'
import type { Store } from '../../src/store/port/store.ts'
import { key, optionsFor, own, ownersIn, startStore } from './store.ts'

async function confirm(store: Store, dryRun = false, scope?: string) {
  const { options, problems } = optionsFor({ dryRun })
  const tally = { added: 0, same: 0, conflicts: 0 }
  return { taken: await confirmObserved(store, scope, tally, options), problems }
}

void test('a thread that one user alone ran becomes theirs, with its times and agent', async (t) => {
  const store = await startStore(t)
  await store.observe(key('a'), 'corp:alice', 'helper', 'run', 1000)
  await store.observe(key('a'), 'corp:alice', 'helper', 'run', 100_000)
  await store.observe(key('a'), 'corp:bob', '', 'other', 2000)
  t.match((await confirm(store)).taken, { added: 1, conflicts: 0, interrupted: false })
  t.match((await store.thread(key('a')))?.row, { owner: 'corp:alice', agentId: 'helper', createdAt: 1000, lastUsedAt: 100_000 })
})

void test('one that several ran is a conflict, told with all of them, and left', async (t) => {
  const store = await startStore(t)
  await store.observe(key('a'), 'corp:bob', '', 'run', 1)
  await store.observe(key('a'), 'corp:alice', '', 'run', 2)
  const { taken, problems } = await confirm(store)
  t.match(taken, { added: 0, conflicts: 1 })
  t.match(problems, [{ kind: 'conflict', thread: 'a', with: ['corp:bob', 'corp:alice'] }])
  t.same(await ownersIn(store), [])
})

void test('threads with an owner are none of it', async (t) => {
  const store = await startStore(t)
  await store.observe(key('a'), 'corp:alice', '', 'run', 1)
  await own(store, 'b', 'corp:bob')
  await store.observe(key('b'), 'corp:alice', '', 'run', 1)
  await confirm(store)
  t.same(await ownersIn(store), ['a=corp:alice', 'b=corp:bob'])
})

void test('a dry run changes nothing', async (t) => {
  const store = await startStore(t)
  await store.observe(key('a'), 'corp:alice', '', 'run', 1)
  t.match((await confirm(store, true)).taken, { added: 1 })
  t.same(await ownersIn(store), [])
})

void test('a thread becomes theirs where it was seen, of one upstream or of all', async (t) => {
  const store = await startStore(t)
  const at = (scope: string, threadId: string) => ({ scope, threadId })
  for (const scope of ['', 'legal', 'research']) {
    await store.observe(at(scope, 'a'), 'corp:alice', '', 'run', 1)
    for (const user of ['corp:alice', 'corp:bob']) await store.observe(at(scope, 'b'), user, '', 'run', 1)
  }
  const owned = async () => (await store.threads({}, null, 10)).map(({ scope, threadId }) => `${scope}/${threadId}`)
  const legal = await confirm(store, false, 'legal')
  t.match(legal, { taken: { added: 1, conflicts: 1 }, problems: [{ thread: 'b', scope: 'legal' }] })
  t.same(await owned(), ['legal/a'])
  t.match((await confirm(store)).taken, { added: 2, conflicts: 3 })
  t.same(await owned(), ['/a', 'legal/a', 'research/a'])
})

void test('it goes over more than a page, with conflicts in between', async (t) => {
  const store = await startStore(t)
  for (let at = 0; at < 1100; at += 1) {
    await store.observe(key(`t-${at}`), 'corp:alice', '', 'run', 1)
    if (at % 100 === 0) await store.observe(key(`t-${at}`), 'corp:bob', '', 'run', 1)
  }
  t.match((await confirm(store)).taken, { added: 1089, conflicts: 11 })
  t.match((await confirm(store)).taken, { added: 0, conflicts: 11 })
})
