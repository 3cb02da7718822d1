/** A store that cannot answer rejects: nothing is known, nothing is allowed. */
import { StoreUnavailable } from '../../../src/store/port/state.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { ALICE, BOB, grantOf, KEY, NOW, readerOf, user, type Holds } from './under-test.ts'

const WINDOW = { agentId: null, includeArchived: false, after: null, limit: 1 }

/** A call of each method that asks the store something. */
const CALLS: Record<Exclude<keyof Store, 'close' | 'fault' | 'onInvalidation'>, (store: Store) => Promise<unknown>> = {
  accessTo: async (store) => store.accessTo(KEY, readerOf(ALICE)),
  accessToSeveral: (store) => store.accessToSeveral('', ['a'], readerOf(ALICE)),
  accessOfReader: (store) => store.accessOfReader('', readerOf(ALICE), 1),
  claim: (store) => store.claim(KEY, { userId: ALICE, agentId: '', guest: false, now: NOW }),
  settle: (store) => store.settle(KEY, ALICE, 0, 'confirmed'),
  rename: (store) => store.rename(KEY, ALICE, null),
  archive: (store) => store.archive(KEY, ALICE, { archived: true }),
  noteWrite: (store) => store.noteWrite(KEY, NOW),
  beginDeletion: (store) => store.beginDeletion(KEY, ALICE),
  endDeletion: (store) => store.endDeletion(KEY, ALICE, 'deletion', NOW, 'deleted'),
  bury: (store) => store.bury(KEY, ALICE, NOW, 'deleted'),
  listed: (store) => store.listed('', readerOf(ALICE), WINDOW),
  isEmpty: (store) => store.isEmpty(''),
  secret: (store) => store.secret(),
  observe: (store) => store.observe(KEY, ALICE, '', 'run', NOW),
  unowned: (store) => store.unowned(),
  observed: (store) => store.observed(null, 1),
  grants: (store) => store.grants(KEY, null),
  grant: (store) => store.grant(KEY, null, grantOf(user(BOB))),
  ungrant: (store) => store.ungrant(KEY, null, user(BOB)),
  grantedTo: (store) => store.grantedTo(user(BOB), null, 1),
  thread: (store) => store.thread(KEY),
  threads: (store) => store.threads({}, null, 1),
  import: (store) =>
    store.import([{ ...KEY, owner: ALICE, agentId: '', name: null, archived: false, createdAt: NOW, lastUsedAt: NOW }], {
      dryRun: false,
      settleConflicts: false,
    }),
  assign: (store) => store.assign(KEY, ALICE, NOW),
  transfer: (store) => store.transfer(ALICE, BOB, 1),
  withhold: (store) => store.withhold(KEY, NOW),
  prune: (store) => store.prune({ deletedBefore: NOW }, 1),
  prunable: (store) => store.prunable({ deletedBefore: NOW }),
  stats: (store) => store.stats(),
  unconfirmed: (store) => store.unconfirmed(),
  userData: (store) => store.userData(ALICE),
  erase: (store) => store.erase(ALICE, NOW, 1),
  revoke: (store) => store.revoke({ kind: 'token', tokenId: 'j', revokedAt: NOW }),
  lift: (store) => store.lift({ tokenId: 'j' }),
  revocations: (store) => store.revocations(),
  revocationsVersion: (store) => store.revocationsVersion(),
}

/** The part of the contract. */
export function failureContract(holds: Holds): void {
  holds('a store that cannot answer rejects every call, and says so when it is asked how it is', async (t, { connect }) => {
    const store = await connect()
    t.equal(await store.fault(), null)
    await store.close()
    for (const [name, call] of Object.entries(CALLS)) await t.rejects(call(store), StoreUnavailable, name)
    t.type(await store.fault(), 'string')
  })

  holds('a store that is closed twice, with listeners, is closed', async (t, { connect }) => {
    const store = await connect()
    store.onInvalidation(() => {})
    await store.close()
    await store.close()
    t.type(await store.fault(), 'string')
  })
}
