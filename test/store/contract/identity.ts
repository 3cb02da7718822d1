/** Ids compare byte for byte: of threads, users, groups and scopes. */
import {
  ALICE,
  at,
  BOB,
  byBytes,
  claim,
  grant,
  group,
  LOOKALIKES,
  own,
  readerOf,
  row,
  accessTo,
  user,
  type Holds,
} from './under-test.ts'

/** The part of the contract. */
export function identityContract(holds: Holds): void {
  holds('thread ids compare byte for byte', async (t, { store }) => {
    for (const [n, threadId] of LOOKALIKES.entries()) t.equal(await claim(store, `corp:user-${n}`, at(threadId)), 'new', threadId)
    const reader = readerOf(ALICE)
    const found = await store.accessToSeveral('', LOOKALIKES, reader)
    t.same([...found.keys()].sort(), [...LOOKALIKES].sort())
    for (const [n, threadId] of LOOKALIKES.entries()) {
      t.equal(found.get(threadId)?.row?.owner, `corp:user-${n}`, threadId)
      t.equal((await row(store, at(threadId)))?.owner, `corp:user-${n}`, threadId)
      t.equal(await row(store, at(`${threadId}~`)), null, 'the next one in order is another')
      t.equal(await row(store, { scope: ' ', threadId }), null)
    }
    const all = await store.threads({}, null, 100)
    t.same(
      all.map(({ threadId }) => threadId),
      [...LOOKALIKES].sort(byBytes),
      'and they are in the order of their bytes',
    )
  })

  holds('user ids compare byte for byte', async (t, { store }) => {
    for (const [n, userId] of LOOKALIKES.entries()) {
      await claim(store, userId, at(`t-${n}`))
      const owned: string[] = []
      for (const other of LOOKALIKES) if ((await claim(store, other, at(`t-${n}`))) === 'own') owned.push(other)
      t.same(owned, [userId])
      const listed = await store.threads({ owner: userId }, null, 100)
      t.same(
        listed.map(({ threadId }) => threadId),
        [`t-${n}`],
      )
    }
  })

  holds('grantees compare byte for byte, and a group is no user', async (t, { store }) => {
    for (const [n, id] of LOOKALIKES.entries()) {
      const key = at(`t-${n}`)
      await own(store, ALICE, key)
      await grant(store, user(id), 'read', key)
      const others = LOOKALIKES.filter((other) => other !== id)
      t.equal((await accessTo(store, readerOf(id), key)).row?.granted, 'read', id)
      for (const other of others) t.equal((await store.accessTo(key, readerOf(other))).row?.granted, null, other)
      t.equal((await accessTo(store, readerOf('corp:x', ...LOOKALIKES), key)).row?.granted, null)
      await grant(store, group(id), 'write', key)
      t.equal((await accessTo(store, readerOf('corp:x', id), key)).row?.granted, 'write', id)
      t.equal((await accessTo(store, readerOf('corp:x', ...others), key)).row?.granted, null)
      t.equal((await accessTo(store, readerOf(id), key)).row?.granted, 'read')
    }
    for (const [n, id] of LOOKALIKES.entries()) {
      t.same(
        (await store.grantedTo(user(id), null, 100)).map(({ threadId }) => threadId),
        [`t-${n}`],
      )
      t.same(
        (await store.grantedTo(group(id), null, 100)).map(({ threadId }) => threadId),
        [`t-${n}`],
      )
    }
  })

  holds('who was seen compares byte for byte', async (t, { store }) => {
    for (const [n, id] of LOOKALIKES.entries()) await store.observe(at('seen'), id, 'agent', 'run', n)
    t.same((await accessTo(store, readerOf(ALICE), at('seen'))).runners, LOOKALIKES)
    t.equal((await store.thread(at('seen ')))?.row, undefined)
  })

  holds('scopes are apart', async (t, { store }) => {
    const [one, other] = [at('x'), { scope: 'other', threadId: 'x' }]
    t.equal(await claim(store, ALICE, one), 'new')
    t.equal(await claim(store, BOB, other), 'new')
    t.equal((await row(store, other))?.owner, BOB)
    await grant(store, user('corp:carol'), 'write', one)
    t.equal((await row(store, other, readerOf('corp:carol')))?.granted, null)
    t.equal((await store.accessToSeveral('third', ['x'], readerOf(ALICE))).size, 0)
    await store.assign(one, 'corp:carol', 1)
    t.equal((await row(store, other))?.owner, BOB)
  })
}
