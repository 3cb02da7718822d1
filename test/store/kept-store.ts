/**
 * A store with every kind of row, as a version of this program wrote it once (test/fixtures): what it answers, and how it goes on.
 * The version that wrote it answered the same.
 */
import type { ImportOutcome } from '../../src/store/port/administration.ts'
import type { RunOutcome } from '../../src/store/port/claims.ts'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { ALICE, at, BOB, CAROL, NOW, readerOf } from './contract/under-test.ts'

const TEAM = 'corp:team'
const DAY = 86_400_000

const IDS: readonly string[] = [
  'owned',
  'archived',
  'shared',
  'unconfirmed',
  'two-runs',
  'deleted',
  'deleted-upstream',
  'reviving',
  'deleting',
  'withheld',
  'assigned',
  'seen',
  'conflict',
  'never',
]
const KEYS: readonly ThreadKey[] = [...IDS.map(at), { scope: 'legal', threadId: 'owned' }]

const claimAt = (store: Store, key: ThreadKey, userId: string, now: number) =>
  store.claim(key, { userId, agentId: 'agent', guest: false, now })

/** Makes a row of every kind. */
export async function fill(store: Store): Promise<void> {
  const own = async (key: ThreadKey, userId = ALICE): Promise<void> => {
    await claimAt(store, key, userId, NOW)
    await store.settle(key, userId, 0, 'confirmed')
  }
  for (const id of ['owned', 'archived', 'shared', 'deleted', 'deleted-upstream', 'reviving', 'deleting', 'withheld'])
    await own(at(id))
  await own({ scope: 'legal', threadId: 'owned' }, BOB)
  await store.rename(at('owned'), ALICE, 'a name')
  await store.archive(at('archived'), ALICE, { archived: true })
  const given = { grantedBy: ALICE, grantedAt: NOW + 1 }
  await store.grant(at('shared'), ALICE, { kind: 'user', id: BOB, right: 'write', ...given })
  await store.grant(at('shared'), null, { kind: 'group', id: TEAM, right: 'read', ...given, grantedBy: 'operator' })
  await claimAt(store, at('unconfirmed'), BOB, NOW + 2)
  for (const now of [3, 4]) await claimAt(store, at('two-runs'), CAROL, NOW + now)
  await store.bury(at('deleted'), ALICE, NOW + 5, 'unknown')
  for (const id of ['deleted-upstream', 'reviving']) await store.bury(at(id), ALICE, NOW + 6, 'deleted')
  await claimAt(store, at('reviving'), ALICE, NOW + 7)
  await store.beginDeletion(at('deleting'), ALICE)
  await store.withhold(at('withheld'), NOW + 8)
  await store.assign(at('assigned'), CAROL, NOW + 9)
  await store.observe(at('seen'), ALICE, 'agent', 'run', NOW + 10)
  for (const user of [BOB, CAROL]) await store.observe(at('conflict'), user, '', 'run', NOW + 11)
  await store.observe(at('owned'), BOB, 'agent', 'other', NOW + 12)
  await store.revoke({ kind: 'token', tokenId: 'token-1', revokedAt: NOW + 13 })
  await store.revoke({ kind: 'user', userId: BOB, before: NOW, revokedAt: NOW + 14 })
  await store.revoke({ kind: 'user', userId: CAROL, before: null, revokedAt: NOW + 15 })
  await store.secret()
}

/** All that the port answers without a change. */
export async function answersOf(store: Store): Promise<unknown> {
  const users = [ALICE, BOB, CAROL, 'corp:dave']
  const readers = users.flatMap((userId) => [readerOf(userId), readerOf(userId, TEAM)])
  const window = { agentId: null, includeArchived: true, after: null, limit: 100 }
  const threads = []
  for (const key of KEYS) {
    const access = []
    for (const reader of readers) access.push(await store.accessTo(key, reader))
    threads.push({ key, thread: await store.thread(key), grants: await store.grants(key, null), access })
  }
  const lists = []
  for (const reader of readers)
    lists.push({
      reader,
      several: [...(await store.accessToSeveral('', IDS, reader))].sort(([one], [other]) => (one < other ? -1 : 1)),
      naming: [...((await store.accessOfReader('', reader, 100)) ?? new Map()).keys()].sort(),
      listed: await store.listed('', reader, window),
    })
  const people = []
  for (const userId of users) people.push(await store.userData(userId))
  return {
    threads,
    lists,
    people,
    everybody: await store.listed('', 'everybody', { ...window, agentId: 'agent', includeArchived: false }),
    rows: await store.threads({}, null, 100),
    deleted: await store.threads({ deleted: 'only' }, null, 100),
    received: await store.grantedTo({ kind: 'group', id: TEAM }, null, 100),
    stats: [await store.stats(), await store.stats('legal')],
    prunable: [await store.prunable({ deletedBefore: NOW + DAY }), await store.prunable({ unusedSince: NOW + 1 })],
    unowned: await store.unowned(),
    observed: await store.observed(null, 100),
    revocations: [await store.revocations(), await store.revocationsVersion()],
    empty: [await store.isEmpty(''), await store.isEmpty('legal'), await store.isEmpty('other')],
    secret: Buffer.from(await store.secret()).toString('hex'),
  }
}

/** What becomes of runs, deletions and rows that were under way, a day and more later. */
export async function continuationOf(store: Store): Promise<unknown> {
  const later = NOW + 3 * DAY
  const settle = (id: string, user: string, registration: number, outcome: RunOutcome) =>
    store.settle(at(id), user, registration, outcome)
  const deletion = (await store.beginDeletion(at('deleting'), ALICE)) ?? ''
  const imported = (id: string) => ({
    ...at(id),
    owner: ALICE,
    agentId: '',
    name: null,
    archived: false,
    createdAt: later,
    lastUsedAt: later,
  })
  const imports: readonly ImportOutcome[] = await store.import(
    ['owned', 'seen', 'conflict', 'deleted', 'withheld', 'new'].map(imported),
    { dryRun: true, settleConflicts: false },
  )
  return {
    imports,
    settled: [
      await settle('two-runs', CAROL, 1, 'not-started'),
      await settle('two-runs', CAROL, 0, 'not-started'),
      await settle('two-runs', CAROL, 0, 'not-started'),
      await settle('unconfirmed', BOB, 0, 'confirmed'),
      await settle('reviving', ALICE, 0, 'confirmed'),
      await settle('reviving', ALICE, 1, 'not-started'),
    ],
    revived: [await claimAt(store, at('reviving'), ALICE, later), await claimAt(store, at('deleted'), ALICE, later)],
    foreign: await claimAt(store, at('owned'), BOB, later),
    ended: await store.endDeletion(at('deleting'), ALICE, deletion, later, 'deleted'),
    transferred: await store.transfer(ALICE, BOB, 100),
    prunable: await store.prunable({ deletedBefore: later + 1 }),
    pruned: await store.prune({ deletedBefore: later + 1 }, 100),
    erased: await store.erase(CAROL, later, 100),
    rows: await store.threads({}, null, 100),
  }
}
