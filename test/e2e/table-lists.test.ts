/**
 * A runtime whose runner has no lists of threads, as those of applications' own have none, behind a gateway that lists them
 * from its table: the real runtime with such a runner, the real client core with its drawer of threads, in all four
 * combinations of transports.
 */
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { ChatCore, DrawerContext } from '../../testing/support/chat-core.ts'
import { owners } from '../../testing/support/rows.ts'
import type { StackOptions } from '../../testing/support/stack.ts'
import { until } from '../../testing/support/until.ts'
import { startScene, type Row, type Scene } from './scene.ts'

const ROWS: readonly Row[] = [
  { client: 'rest', upstream: 'multi-route' },
  { client: 'single', upstream: 'multi-route' },
  { client: 'rest', upstream: 'single-route' },
  { client: 'single', upstream: 'single-route' },
]

/** `table` is what the ready configuration says. */
const listing = (lists: string): StackOptions => ({
  runtime: { runner: 'without-lists' },
  ...(lists === 'table' ? { deployment: { name: 'runner-without-read-routes' } } : { config: { ownership: { lists } } }),
})

/** Begins threads, the last one last. */
async function begin(page: ChatCore, count: number): Promise<string[]> {
  const threads: string[] = []
  for (let at = 0; at < count; at += 1) {
    const thread = crypto.randomUUID()
    threads.push(thread)
    await page.say(thread, `hello ${at}`)
  }
  return threads
}

/** What the drawer shows when its reader has scrolled to the end, page by page. */
async function scrolled(page: ChatCore, context: DrawerContext): Promise<{ readonly ids: string[]; readonly pages: number }> {
  return page.drawer(async (store) => {
    let pages = 1
    while (store.getState().nextCursor !== null) {
      store.fetchNextPage()
      await until(() => !store.getState().isFetchingNextPage)
      const { fetchMoreError } = store.getState()
      if (fetchMoreError !== null) throw fetchMoreError
      pages += 1
    }
    return { ids: store.getState().threads.map(({ id }) => id), pages }
  }, context)
}

/** Grants bob a thread for reading, as an operator would. */
async function share(t: Test, { stack }: Scene, threadId: string): Promise<void> {
  const bob = owners(stack.gateway.folder)
    .map((row) => row.split('='))
    .find(([, owner]) => owner?.endsWith('bob'))?.[1]
  const store = await openSqliteStore(join(stack.gateway.folder, 'ownership.db'))
  const grant = { kind: 'user', id: bob ?? '', right: 'read', grantedBy: 'operator', grantedAt: Date.now() } as const
  t.equal(await store.grant({ scope: '', threadId }, null, grant), 'done')
  await store.close()
}

for (const row of ROWS) {
  for (const lists of ['auto', 'table'] as const) {
    void test(`${lists}: a drawer of threads, client ${row.client}, ${row.upstream} runtime without lists`, async (t) => {
      const scene = await startScene(t, row, listing(lists))
      const [alice, bob] = await Promise.all([scene.open('alice'), scene.open('bob')])
      for (const { core } of [alice, bob]) {
        t.equal(core.runtimeTransport, row.client)
        t.match(core.threadEndpoints, { list: true, inspect: false, mutations: true }, 'the drawer may ask')
      }
      t.strictSame(await alice.threads(), [])
      const hers = await begin(alice, 5)
      const his = await begin(bob, 2)
      t.strictSame([...(await alice.threads())].toSorted(), hers.toSorted())
      t.strictSame([...(await bob.threads())].toSorted(), his.toSorted())

      const walked = await scrolled(alice, { limit: 2 })
      t.strictSame(walked.ids.toSorted(), hers.toSorted(), 'each once')
      t.equal(walked.pages, 3)
      t.strictSame((await scrolled(alice, { limit: 5 })).pages, 1)

      const [first = '', second = '', third = ''] = hers
      await alice.drawer((store) => store.renameThread(first, 'Holidays'))
      const names = await alice.drawer((store) => Promise.resolve(store.getState().threads.map(({ id, name }) => [id, name])))
      t.strictSame(new Map(names as [string, string | null][]).get(first), 'Holidays')
      await alice.drawer((store) => store.archiveThread(second))
      t.notOk((await alice.threads()).includes(second), 'archived threads are out of the way')
      const all = await scrolled(alice, { includeArchived: true, limit: 2 })
      t.strictSame(all.ids.toSorted(), hers.toSorted())
      await alice.drawer((store) => store.unarchiveThread(second), { includeArchived: true })
      t.ok((await alice.threads()).includes(second))
      await alice.drawer((store) => store.deleteThread(third))
      t.notOk((await scrolled(alice, { includeArchived: true })).ids.includes(third))
      t.strictSame(await (await scene.open('alice')).replay(third), [], 'and a page that opens it is empty')

      await share(t, scene, first)
      t.strictSame([...(await bob.threads())].toSorted(), [...his, first].toSorted(), 'what was shared with him, too')
      t.strictSame(await bob.change(second), {
        rename: 'Request failed: 403',
        archive: 'Request failed: 403',
        unarchive: 'Request failed: 403',
        delete: 'Request failed: 403',
      })
      t.equal((await bob.change(first)).delete, 'Request failed: 403', 'reading is not deleting')
      t.strictSame([...(await alice.threads())].toSorted(), [first, second, hers[3], hers[4]].toSorted())
      t.strictSame([...alice.errors, ...bob.errors], [])
    })
  }
}

for (const row of ROWS) {
  void test(`upstream: the same drawer gets the runtime’s 422, client ${row.client}, ${row.upstream} runtime`, async (t) => {
    const scene = await startScene(t, row, listing('upstream'))
    const alice = await scene.open('alice')
    t.match(alice.core.threadEndpoints, { list: false, mutations: false })
    await begin(alice, 1)
    await t.rejects(alice.threads(), { message: 'Failed to fetch threads: 422' })
  })
}

void test('auto before the runtime’s own runner, which has lists: they are the runtime’s', async (t) => {
  const options: StackOptions = { config: { ownership: { lists: 'auto' } } }
  const scene = await startScene(t, { client: 'rest', upstream: 'multi-route' }, options)
  const alice = await scene.open('alice')
  t.match(alice.core.threadEndpoints, { list: true, inspect: true, mutations: false })
  const [thread = ''] = await begin(alice, 1)
  t.strictSame(await alice.threads(), [thread])
  t.equal((await alice.change(thread)).rename, 'Request failed: 422')
  t.ok(
    scene.stack.runtime.requests.some(({ url }) => url.includes('/threads?')),
    'it was asked',
  )
})
