/** Every change of access is reported within a second, on every connection. Claims and noted writes report nothing. */
import type { Store } from '../../../src/store/port/store.ts'
import type { ThreadKey } from '../../../src/store/port/thread.ts'
import { until } from '../../../testing/support/until.ts'
import { ALICE, at, BOB, CAROL, claim, grant, grantOf, group, NOW, own, user, type Holds } from './under-test.ts'

/** The news of a store as they come, an id each; null for whatever thread may have changed. */
function listen(store: Store): (string | null)[] {
  const told: (string | null)[] = []
  store.onInvalidation((key) => told.push(key === null ? null : key.threadId))
  return told
}

/** A change of access, with a thread whose access it changes. */
const CHANGES: Record<string, (store: Store, key: ThreadKey) => Promise<unknown>> = {
  'a grant': (store, key) => store.grant(key, ALICE, grantOf(user(BOB))),
  'a wider grant': (store, key) => store.grant(key, ALICE, grantOf(user(BOB), 'write')),
  'the end of a grant': (store, key) => store.ungrant(key, ALICE, user(BOB)),
  'a grant to a group': (store, key) => store.grant(key, ALICE, grantOf(group('corp:team'))),
  'a taking of the owner': (store, key) => store.withhold(key, NOW),
  'an assignment': (store, key) => store.assign(key, ALICE, NOW),
  'a transfer': (store) => store.transfer(ALICE, CAROL, 100),
  'another transfer': (store) => store.transfer(CAROL, ALICE, 100),
  'a deletion': (store, key) => store.bury(key, ALICE, NOW, 'deleted'),
  'an assignment of a tombstone': (store, key) => store.assign(key, ALICE, NOW, ALICE),
  'an erasure': (store) => store.erase(ALICE, NOW, 100),
  'an assignment of what was erased': (store, key) => store.assign(key, ALICE, NOW, ''),
  'a pruning': (store) => store.prune({ unusedSince: NOW + 1 }, 100),
}

/** The part of the contract. */
export function invalidationContract(holds: Holds): void {
  holds('every change of access is reported on the connection that made it, and on others', async (t, { store, connect }) => {
    const other = await connect()
    const key = at('changed')
    await own(store, ALICE, key)
    const [here, there] = [listen(store), listen(other)]
    for (const [name, change] of Object.entries(CHANGES)) {
      here.length = 0
      there.length = 0
      await change(store, key)
      await until(() => [here, there].every((told) => told.includes('changed') || told.includes(null)))
      t.pass(name)
    }
  })

  holds('an import over what was seen is told', async (t, { store, connect }) => {
    const told = listen(await connect())
    await store.observe(at('seen'), ALICE, 'agent', 'run', NOW)
    const row = { ...at('seen'), owner: BOB, agentId: '', name: null, archived: false, createdAt: NOW, lastUsedAt: NOW }
    await store.import([row], { dryRun: false, settleConflicts: true })
    await until(() => told.includes('seen') || told.includes(null))
    t.pass('it was')
  })

  holds('claims, their ends and notes are told of nowhere', async (t, { store, connect }) => {
    const other = await connect()
    await own(store, ALICE, at('shared'))
    const [here, there] = [listen(store), listen(other)]
    // Whatever a connection has to tell first, it has told then.
    await grant(store, user(BOB), 'read', at('shared'))
    await until(() => here.length > 0 && there.length > 0)
    await claim(store, ALICE, at('quiet'))
    await claim(store, BOB, at('quiet'))
    await store.settle(at('quiet'), ALICE, 0, 'confirmed')
    await store.rename(at('quiet'), ALICE, 'name')
    await store.archive(at('quiet'), ALICE, { archived: true })
    await store.observe(at('quiet'), BOB, '', 'other', NOW)
    await store.claim(at('gone'), { userId: ALICE, agentId: '', guest: false, now: NOW })
    await store.settle(at('gone'), ALICE, 0, 'not-started')
    here.length = 0
    there.length = 0
    await store.grant(at('quiet'), BOB, grantOf(user(CAROL)))
    await store.ungrant(at('shared'), ALICE, user(CAROL))
    await grant(store, user(BOB), 'write', at('shared'))
    await until(() => here.length > 0 && there.length > 0)
    t.notOk([...here, ...there].includes('quiet'))
    t.notOk([...here, ...there].includes('gone'))
  })

  holds('every listener is told until it ends, each on its own', async (t, { store }) => {
    await own(store, ALICE, at('shared'))
    const told: number[] = []
    const ends = [1, 2].map((name) => store.onInvalidation(() => told.push(name)))
    await grant(store, user(BOB), 'read', at('shared'))
    await until(() => told.includes(1) && told.includes(2))
    ends[0]?.()
    ends[0]?.()
    told.length = 0
    await grant(store, user(BOB), 'write', at('shared'))
    await until(() => told.includes(2))
    t.notOk(told.includes(1))
    ends[1]?.()
    told.length = 0
    await grant(store, user(BOB), 'read', at('shared'))
    const again = listen(store)
    await grant(store, user(BOB), 'write', at('shared'))
    await until(() => again.length > 0)
    t.same(told, [])
  })
}
