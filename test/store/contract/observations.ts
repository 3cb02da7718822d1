/** What is seen under `enforcement: observe` makes nobody an owner, and is kept until somebody is. */
import { ALICE, at, BOB, CAROL, claim, KEY, NOW, own, readerOf, accessTo, type Holds } from './under-test.ts'

/** The part of the contract. */
export function observationContract(holds: Holds): void {
  holds('who runs a thread is seen, and owns nothing by it', async (t, { store }) => {
    await store.observe(KEY, ALICE, 'agent', 'run', NOW)
    t.same(await accessTo(store, readerOf(ALICE)), { row: null, runners: [ALICE] })
    t.same(await store.thread(KEY), { row: null, grants: [], runners: [ALICE] })
    t.equal(await store.isEmpty(''), true)
  })

  holds('of a thread that nobody ran and nobody owns nothing is noted', async (t, { store }) => {
    await store.observe(KEY, ALICE, '', 'other', NOW)
    await store.observe(KEY, BOB, 'agent', 'run', NOW + 1)
    t.same((await accessTo(store, readerOf(ALICE))).runners, [BOB])
    t.same((await store.userData(ALICE)).observed, [])
    await store.observe(KEY, ALICE, '', 'other', NOW + 2)
    t.equal((await store.userData(ALICE)).observed.length, 1, 'once it was run, who looks is noted')
    t.same((await accessTo(store, readerOf(ALICE))).runners, [BOB], 'and is no runner')
    await own(store, CAROL, at('owned'))
    await store.observe(at('owned'), ALICE, '', 'other', NOW)
    t.equal((await store.userData(ALICE)).observed.length, 2)
  })

  holds('who looked first and ran then is a runner', async (t, { store }) => {
    await store.observe(KEY, ALICE, 'agent', 'run', NOW + 5)
    await store.observe(KEY, BOB, '', 'other', NOW + 6)
    await store.observe(KEY, BOB, 'agent', 'run', NOW + 7)
    t.same((await accessTo(store, readerOf(ALICE))).runners, [ALICE, BOB])
    await store.observe(KEY, BOB, '', 'other', NOW + 600_000)
    t.same((await accessTo(store, readerOf(ALICE))).runners, [ALICE, BOB], 'and stays one')
  })

  holds('the time of use is noted at most once a minute, and the agent that was named last', async (t, { store }) => {
    const seen = async () => (await store.userData(ALICE)).observed[0]
    await store.observe(KEY, ALICE, 'one', 'run', NOW)
    await store.observe(KEY, ALICE, 'two', 'run', NOW + 59_999)
    t.same(await seen(), { ...KEY, agentId: 'one', firstUsedAt: NOW, lastUsedAt: NOW })
    await store.observe(KEY, ALICE, 'two', 'run', NOW + 60_000)
    t.same(await seen(), { ...KEY, agentId: 'two', firstUsedAt: NOW, lastUsedAt: NOW + 60_000 })
    await store.observe(KEY, ALICE, '', 'run', NOW + 120_000)
    t.same(await seen(), { ...KEY, agentId: 'two', firstUsedAt: NOW, lastUsedAt: NOW + 120_000 })
  })

  holds('threads that were run and have no row are counted, and told in the order of their keys', async (t, { store }) => {
    t.equal(await store.unowned(), 0)
    for (const [n, threadId] of ['b', 'B', 'a'].entries()) await store.observe(at(threadId), ALICE, 'agent', 'run', NOW + n)
    await store.observe({ scope: 's', threadId: 'A' }, BOB, 'other', 'run', NOW)
    await store.observe(at('a'), BOB, 'second', 'run', NOW + 100_000)
    await store.observe(at('a'), CAROL, '', 'other', NOW + 200_000)
    await store.observe(at('owned'), ALICE, 'agent', 'run', NOW)
    await claim(store, ALICE, at('owned'))
    t.equal(await store.unowned(), 4)
    const all = [
      { ...at('B'), runners: [ALICE], agentId: 'agent', firstUsedAt: NOW + 1, lastUsedAt: NOW + 1 },
      { ...at('a'), runners: [ALICE, BOB], agentId: 'agent', firstUsedAt: NOW + 2, lastUsedAt: NOW + 100_000 },
      { ...at('b'), runners: [ALICE], agentId: 'agent', firstUsedAt: NOW, lastUsedAt: NOW },
      { scope: 's', threadId: 'A', runners: [BOB], agentId: 'other', firstUsedAt: NOW, lastUsedAt: NOW },
    ]
    t.same(await store.observed(null, 10), all, 'the agent is that of the first runner, the times are the runners’')
    for (const size of [1, 3]) {
      const seen = []
      for (let page = await store.observed(null, size); page.length > 0;) {
        seen.push(...page)
        page = await store.observed(page.at(-1) ?? null, size)
      }
      t.same(seen, all)
    }
    const { observed, conflicts } = await store.stats()
    t.same([observed, conflicts], [4, 1])
  })

  holds('of many sights at once none is lost', async (t, { store, connect }) => {
    const stores = [store, await connect()]
    const users = Array.from({ length: 20 }, (_, n) => `corp:user-${String(n).padStart(2, '0')}`)
    await Promise.all(users.map((userId, n) => (stores[n % 2] ?? store).observe(KEY, userId, 'agent', 'run', NOW)))
    t.same((await accessTo(store, readerOf(ALICE))).runners, users)
  })
}
