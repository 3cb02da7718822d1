/** What is noted beside the owner: the time of use, the name, the archive; and the secret of the store. */
import type { ThreadRow } from '../../../src/store/port/administration.ts'
import type { Store } from '../../../src/store/port/store.ts'
import { ALICE, at, BOB, claim, KEY, NOW, own, readerOf, type Holds } from './under-test.ts'

const rowOf = async (store: Store, key = KEY): Promise<ThreadRow | null> => (await store.thread(key))?.row ?? null

/** The part of the contract. */
export function noteContract(holds: Holds): void {
  holds('the time of use is noted at most once a minute', async (t, { store }) => {
    await own(store, ALICE)
    const used = async () => (await rowOf(store))?.lastUsedAt
    t.equal(await used(), NOW)
    await claim(store, ALICE, KEY, NOW + 59_999)
    t.equal(await used(), NOW)
    await claim(store, ALICE, KEY, NOW + 60_000)
    t.equal(await used(), NOW + 60_000)
    await claim(store, BOB, KEY, NOW + 600_000)
    t.equal(await used(), NOW + 60_000, 'and never for another')
    t.equal((await rowOf(store))?.createdAt, NOW)
  })

  holds('a name is its owner’s to give, to a live thread', async (t, { store }) => {
    await own(store, ALICE)
    const name = async () => (await rowOf(store))?.name
    t.equal(await name(), null)
    t.equal(await store.rename(KEY, ALICE, 'Ünïcode \u{1f9f5}'), true)
    t.equal(await store.rename(KEY, BOB, 'mine'), false)
    t.equal(await name(), 'Ünïcode \u{1f9f5}')
    t.equal(await store.rename(KEY, ALICE, null), true)
    t.equal(await name(), null)
    t.equal(await store.rename(at('nobody'), ALICE, 'x'), false)
    t.equal(await rowOf(store, at('nobody')), null, 'a name makes no row')
    await store.bury(KEY, ALICE, NOW, 'deleted')
    t.equal(await store.rename(KEY, ALICE, 'late'), false)
    t.equal(await name(), null)
  })

  holds('a live thread is its owner’s to archive, and to take out again', async (t, { store }) => {
    await own(store, ALICE)
    const archived = async () => (await rowOf(store))?.archived
    t.equal(await archived(), false)
    t.equal(await store.archive(KEY, BOB, { archived: true }), false)
    t.equal(await archived(), false)
    t.equal(await store.archive(KEY, ALICE, { archived: true }), true)
    t.equal(await archived(), true)
    t.equal(await claim(store, ALICE), 'own', 'and it is theirs to run')
    t.equal(await store.archive(KEY, ALICE, { archived: false }), true)
    t.equal(await archived(), false)
    t.equal(await store.archive(at('nobody'), ALICE, { archived: true }), false)
    await store.bury(KEY, ALICE, NOW, 'deleted')
    t.equal(await store.archive(KEY, ALICE, { archived: true }), false)
  })

  holds('a deletion that a run, a deletion or a new owner has overtaken leaves no tombstone', async (t, { store, connect }) => {
    await own(store, ALICE)
    const other = await connect()
    const begin = async () => (await store.beginDeletion(KEY, ALICE)) ?? 'none'
    const end = (deletion: string) => store.endDeletion(KEY, ALICE, deletion, NOW, 'deleted')
    const late = await begin()
    t.equal(await begin(), late, 'one of two that nothing came between')
    t.equal(await store.beginDeletion(KEY, BOB), null)
    t.equal(await claim(other, ALICE), 'own')
    t.equal(await end(late), false, 'a run came between')
    const again = await begin()
    t.equal(await end(again), true)
    t.equal(await end(again), false)
    t.equal(await store.beginDeletion(KEY, ALICE), null, 'it is deleted')
    t.equal(await claim(store, ALICE), 'new')
    await store.settle(KEY, ALICE, 1, 'confirmed')
    t.equal(await end(again), false, 'it lives again')
    const third = await begin()
    await store.assign(KEY, BOB, NOW)
    await store.assign(KEY, ALICE, NOW)
    t.equal(await end(third), false, 'it was another’s meanwhile')
    t.equal((await rowOf(store))?.deletedAt, null)
  })

  holds('a tombstone is forgotten only if no other process can have a run that is executing', async (t, { store, connect }) => {
    const other = await connect()
    const DAY = 24 * 3_600_000
    const forgotten = () => store.prune({ deletedBefore: NOW + 10 * DAY }, 10)
    for (const [runner, later, count] of [
      [store, 0, 1],
      [other, 0, 0],
      [other, 2 * DAY, 1],
    ] as const) {
      await own(store, ALICE)
      t.equal(await claim(runner, ALICE), 'own')
      const deletion = (await store.beginDeletion(KEY, ALICE)) ?? 'none'
      t.equal(await store.endDeletion(KEY, ALICE, deletion, NOW + later, 'deleted'), true)
      t.equal(await forgotten(), count)
      await store.assign(KEY, ALICE, NOW)
      await store.prune({ unusedSince: Number.MAX_SAFE_INTEGER }, 10)
    }
  })

  holds('a tombstone that was written to, or whose deletion was, is not forgotten', async (t, { store, connect }) => {
    const other = await connect()
    const forgotten = () => store.prune({ deletedBefore: NOW + 10 * 24 * 3_600_000 }, 10)
    await store.noteWrite(KEY, NOW)
    t.notOk(await rowOf(store), 'a write makes no row')
    for (const [writer, when] of [
      [store, 'after'],
      [other, 'after'],
      [store, 'between'],
      [other, 'between'],
      [other, 'before'],
    ] as const) {
      await own(store, ALICE)
      if (when === 'before') await writer.noteWrite(KEY, NOW)
      const deletion = (await store.beginDeletion(KEY, ALICE)) ?? 'none'
      if (when === 'between') await writer.noteWrite(KEY, NOW)
      t.equal(await store.endDeletion(KEY, ALICE, deletion, NOW, 'deleted'), true, 'a write undoes no deletion')
      if (when === 'after') await writer.noteWrite(KEY, NOW)
      t.equal(await forgotten(), 0, when)
      await store.assign(KEY, ALICE, NOW)
      await store.prune({ unusedSince: Number.MAX_SAFE_INTEGER }, 10)
    }
    await own(store, ALICE)
    await store.noteWrite(KEY, NOW)
    const deletion = (await store.beginDeletion(KEY, ALICE)) ?? 'none'
    t.equal(await store.endDeletion(KEY, ALICE, deletion, NOW, 'deleted'), true)
    t.equal(await forgotten(), 1, 'this process knows itself whether what it has sent is over')
  })

  holds('a write of another process keeps a tombstone for as long as a run may last', async (t, { store, connect }) => {
    const other = await connect()
    const later = NOW + 2 * 24 * 3_600_000
    await own(store, ALICE)
    await other.noteWrite(KEY, later)
    t.equal((await rowOf(store))?.lastUsedAt, later)
    await other.noteWrite(KEY, later + 1000)
    t.equal((await rowOf(store))?.lastUsedAt, later, 'noted at most once an hour')
    const deletion = (await store.beginDeletion(KEY, ALICE)) ?? 'none'
    t.equal(await store.endDeletion(KEY, ALICE, deletion, later, 'deleted'), true)
    t.equal(await store.prune({ deletedBefore: later + 1 }, 10), 0)
  })

  holds('a store is empty until a row is there', async (t, { store }) => {
    t.equal(await store.isEmpty(''), true)
    await store.secret()
    await store.accessToSeveral('', ['a'], readerOf(ALICE))
    await store.observe(KEY, ALICE, 'agent', 'run', NOW)
    t.equal(await store.isEmpty(''), true)
    await claim(store, ALICE)
    t.equal(await store.isEmpty(''), false)
    await store.settle(KEY, ALICE, 0, 'not-started')
    t.equal(await store.isEmpty(''), true)
  })

  holds('of each scope it is told by itself whether it is empty', async (t, { store }) => {
    await own(store, ALICE, { scope: 's', threadId: 'a' })
    const empty = () => Promise.all(['', 's', 'S', 's2'].map((scope) => store.isEmpty(scope)))
    t.same(await empty(), [true, false, true, true])
    await own(store, ALICE)
    t.same(await empty(), [false, false, true, true])
  })

  holds('the secret is 32 bytes, the same for all connections', async (t, { store, connect }) => {
    const secrets = await Promise.all([store, await connect(), await connect()].map((one) => one.secret()))
    t.equal(secrets[0]?.length, 32)
    t.ok(secrets.every((secret) => Buffer.from(secret).equals(Buffer.from(secrets[0] ?? []))))
    t.not(Buffer.from(secrets[0] ?? []).toString('hex'), '0'.repeat(64))
  })
}
