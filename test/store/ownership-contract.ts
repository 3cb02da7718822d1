/**
 * What the gateway rests on in every ownership store, whichever database is behind it (design "Claims"): first claim wins,
 * a row goes only when every run on it certainly did not start, a deleted thread is nobody else's for ever. A store's own
 * test file hands in a factory and runs all of this.
 */
import { test, type Test } from 'tap'
import { StoreUnavailable, type OwnershipStore, type RunOutcome, type ThreadKey } from '../../src/store/port.ts'

/** A store of its own for one test, with nothing in it. */
export interface StoreUnderTest {
  readonly store: OwnershipStore
  /** Another connection to the same data, as another process would have it. */
  readonly connect: () => OwnershipStore
  /** Values of a row, read past the store. */
  readonly row: (key: ThreadKey) => { readonly name: string | null; readonly lastUsedAt: number } | undefined
  /** Closes everything and takes the data away. */
  readonly remove: () => Promise<void>
}

type Make = () => StoreUnderTest
type Holds = (promise: string, body: (t: Test, parts: StoreUnderTest) => Promise<void>) => void

const NOW = 1_700_000_000_000
const ALICE = 'corp:alice'
const BOB = 'corp:bob'
const KEY: ThreadKey = { scope: '', threadId: 't-1' }

const claim = async (store: OwnershipStore, userId: string, key = KEY, now = NOW): Promise<string> =>
  (await store.claim(key, userId, 'agent', now)).outcome
/** The owner, told alike by both questions; undefined for none. */
const owner = async (store: OwnershipStore, key = KEY) => {
  const among = (await store.owners(key.scope, [key.threadId])).get(key.threadId)
  const alone = await store.owner(key)
  if (JSON.stringify(alone) !== JSON.stringify(among ?? null)) throw new Error('one question says another owner than the other')
  return among
}
/** Settles runs of a thread's first life. */
const settle = (store: OwnershipStore, ...outcomes: readonly RunOutcome[]) =>
  Promise.all(outcomes.map((outcome) => store.settle(KEY, ALICE, 0, outcome)))
/** Settles runs after the first revival. */
const settleRevival = (store: OwnershipStore, ...outcomes: readonly RunOutcome[]) =>
  Promise.all(outcomes.map((outcome) => store.settle(KEY, ALICE, 1, outcome)))

/** Runs the contract against the stores that `make` gives. */
export function ownershipContract(name: string, make: Make): void {
  const holds: Holds = (promise, body) =>
    void test(`${name}: ${promise}`, async (t) => {
      const parts = make()
      t.teardown(() => parts.remove())
      await body(t, parts)
    })
  claims(holds)
  releases(holds)
  tombstones(holds)
  identity(holds)
  notes(holds)
}

function claims(holds: Holds): void {
  holds('the first claim owns the thread, and every later one of another user is told whose it is', async (t, { store }) => {
    t.equal(await owner(store), undefined, 'no row')
    t.equal(await claim(store, ALICE), 'new')
    t.same(await store.claim(KEY, BOB, 'agent', NOW), { outcome: 'foreign', record: { owner: ALICE, deleted: false } })
    t.equal(await claim(store, ALICE), 'own')
    await settle(store, 'stays')
    t.equal(await claim(store, BOB), 'foreign')
    t.equal(await claim(store, ALICE), 'own')
    t.same(await owner(store), { owner: ALICE, deleted: false })
  })

  holds('one of many claims at once wins', async (t, { store, connect }) => {
    const stores = [store, connect(), connect()]
    const users = Array.from({ length: 30 }, (_, at) => `corp:user-${at}`)
    const outcomes = await Promise.all(users.map((user, at) => claim(stores[at % 3] ?? store, user)))
    t.equal(outcomes.filter((outcome) => outcome === 'new').length, 1)
    t.equal(outcomes.filter((outcome) => outcome === 'foreign').length, 29)
    t.equal((await owner(store))?.owner, users[outcomes.indexOf('new')])
  })

  holds('what one connection claims, another sees', async (t, { store, connect }) => {
    const other = connect()
    await claim(store, ALICE)
    t.same(await owner(other), { owner: ALICE, deleted: false })
    t.equal(await claim(other, BOB), 'foreign')
    t.equal(await other.isEmpty(), false)
    await other.settle(KEY, ALICE, 0, 'not-started')
    t.equal(await owner(store), undefined)
  })
}

function releases(holds: Holds): void {
  holds('a run that did not start gives the thread back', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await store.settle(KEY, ALICE, 0, 'not-started'), true, 'and is told so')
    t.equal(await owner(store), undefined)
    t.equal(await claim(store, BOB), 'new')
  })

  holds('a run that started, or may have, keeps it', async (t, { store }) => {
    await claim(store, ALICE)
    t.equal(await store.settle(KEY, ALICE, 0, 'stays'), false)
    t.same(await owner(store), { owner: ALICE, deleted: false })
    await claim(store, ALICE)
    await settle(store, 'not-started', 'not-started')
    t.same(await owner(store), { owner: ALICE, deleted: false }, 'whatever later runs do')
  })

  for (const outcomes of [
    ['stays', 'not-started', 'not-started'],
    ['not-started', 'stays', 'not-started'],
    ['not-started', 'not-started', 'stays'],
  ] as const) {
    holds(`of three runs that ended as ${outcomes.join(', ')}, one was enough`, async (t, { store }) => {
      for (const expected of ['new', 'own', 'own']) t.equal(await claim(store, ALICE), expected)
      for (const outcome of outcomes) await settle(store, outcome)
      t.same(await owner(store), { owner: ALICE, deleted: false })
      t.equal(await claim(store, BOB), 'foreign')
    })
  }

  holds('the thread is given back with the last run that failed, and not before', async (t, { store }) => {
    await claim(store, ALICE)
    await claim(store, ALICE)
    await settle(store, 'not-started')
    t.equal(await claim(store, BOB), 'foreign', 'one is still under way')
    await claim(store, ALICE)
    t.equal(await store.settle(KEY, ALICE, 0, 'not-started'), false)
    t.equal(await claim(store, BOB), 'foreign', 'and one that came later')
    await settle(store, 'not-started')
    t.equal(await owner(store), undefined)
  })

  holds('nobody settles what is not theirs', async (t, { store }) => {
    await claim(store, ALICE)
    await store.settle(KEY, BOB, 0, 'not-started')
    await store.settle({ ...KEY, scope: 'other' }, ALICE, 0, 'not-started')
    t.equal(await claim(store, BOB), 'foreign')
    await store.settle(KEY, BOB, 0, 'stays')
    await settle(store, 'not-started')
    t.equal(await owner(store), undefined, 'nor keeps it')
    await settle(store, 'stays')
    t.equal(await owner(store), undefined, 'and a settled run makes no row')
  })
}

function tombstones(holds: Holds): void {
  const bury = async (store: OwnershipStore): Promise<void> => {
    await claim(store, ALICE)
    await settle(store, 'stays')
    await store.bury(KEY, ALICE, NOW)
  }

  holds('a deleted thread stays foreign to others', async (t, { store }) => {
    await bury(store)
    t.same(await owner(store), { owner: ALICE, deleted: true })
    t.same(await store.claim(KEY, BOB, 'agent', NOW), { outcome: 'foreign', record: { owner: ALICE, deleted: true } })
    t.equal(await store.isEmpty(), false)
  })

  holds('the run of its owner revives it', async (t, { store }) => {
    await bury(store)
    t.equal(await claim(store, ALICE), 'new')
    t.equal(await claim(store, BOB), 'foreign', 'for nobody else')
    await settleRevival(store, 'stays')
    t.same(await owner(store), { owner: ALICE, deleted: false })
    t.equal(await claim(store, ALICE), 'own')
  })

  holds('a revival whose run did not start is a tombstone again, never a thread without an owner', async (t, { store }) => {
    await bury(store)
    await claim(store, ALICE)
    await claim(store, ALICE)
    await settleRevival(store, 'not-started', 'not-started')
    t.same(await owner(store), { owner: ALICE, deleted: true })
    t.equal(await claim(store, BOB), 'foreign')
  })

  holds('a run that was registered before the deletion does not undo it by failing', async (t, { store }) => {
    await claim(store, ALICE)
    await store.bury(KEY, ALICE, NOW)
    await settle(store, 'not-started')
    t.same(await owner(store), { owner: ALICE, deleted: true })
  })

  holds('a run from before the deletion does not undo it by starting late', async (t, { store }) => {
    await claim(store, ALICE)
    await store.bury(KEY, ALICE, NOW)
    await settle(store, 'stays')
    t.same(await owner(store), { owner: ALICE, deleted: true })
  })

  for (const late of ['not-started', 'stays'] as const) {
    holds(`a run from before the deletion that ends late (${late}) settles nothing of a revival`, async (t, { store }) => {
      await claim(store, ALICE)
      await store.bury(KEY, ALICE, NOW)
      t.match(await store.claim(KEY, ALICE, 'agent', NOW), { outcome: 'new', registration: 1 })
      await settle(store, late)
      t.same(await owner(store), { owner: ALICE, deleted: true }, 'still waiting for the run that revives it')
      await settleRevival(store, 'stays')
      t.same(await owner(store), { owner: ALICE, deleted: false })
    })
  }

  holds('a run on a settled thread registers nowhere', async (t, { store }) => {
    t.match(await store.claim(KEY, ALICE, 'agent', NOW), { outcome: 'new', registration: 0 })
    t.match(await store.claim(KEY, ALICE, 'agent', NOW), { outcome: 'own', registration: 0 })
    await settle(store, 'stays')
    t.match(await store.claim(KEY, ALICE, 'agent', NOW), { outcome: 'own', registration: null })
  })

  holds('only the owner can delete, and only what is there', async (t, { store }) => {
    await store.bury(KEY, ALICE, NOW)
    t.equal(await store.isEmpty(), true)
    await claim(store, ALICE)
    await store.bury(KEY, BOB, NOW)
    t.same(await owner(store), { owner: ALICE, deleted: false })
  })
}

function identity(holds: Holds): void {
  const ids = [
    'Thread',
    'thread',
    'THREAD',
    'thread ',
    ' thread',
    'caf\u00e9',
    'cafe\u0301',
    '\u{1f9f5}',
    '\ufe0f',
    '1',
    '01',
    '1.0',
    "a'b",
    'a"b',
    '%',
    '_',
    '["thread"]',
  ]

  holds('thread ids compare byte for byte', async (t, { store }) => {
    for (const [at, threadId] of ids.entries())
      t.equal(await claim(store, `corp:user-${at}`, { scope: '', threadId }), 'new', threadId)
    const found = await store.owners('', ids)
    t.same([...found.keys()].sort(), [...ids].sort())
    for (const [at, threadId] of ids.entries()) {
      t.equal(found.get(threadId)?.owner, `corp:user-${at}`, threadId)
      t.match(await store.owner({ scope: '', threadId }), { owner: `corp:user-${at}` }, threadId)
      t.equal(await store.owner({ scope: '', threadId: `${threadId}~` }), null, 'the next one in order is another')
      t.equal(await store.owner({ scope: ' ', threadId }), null)
    }
  })

  holds('user ids compare byte for byte', async (t, { store }) => {
    for (const [at, userId] of ids.entries()) {
      const key = { scope: '', threadId: `t-${at}` }
      await claim(store, userId, key)
      const own: string[] = []
      for (const other of ids) if ((await claim(store, other, key)) === 'own') own.push(other)
      t.same(own, [userId])
    }
  })

  holds('scopes are apart', async (t, { store }) => {
    t.equal(await claim(store, ALICE, { scope: '', threadId: 'x' }), 'new')
    t.equal(await claim(store, BOB, { scope: 'other', threadId: 'x' }), 'new')
    t.same(await owner(store, { scope: 'other', threadId: 'x' }), { owner: BOB, deleted: false })
    t.equal((await store.owners('third', ['x'])).size, 0)
  })

  holds('a thousand ids are one question', async (t, { store }) => {
    const all = Array.from({ length: 1000 }, (_, at) => `thread-${at}`)
    const known = all.filter((_, at) => at % 10 === 0)
    for (const threadId of known) await claim(store, ALICE, { scope: '', threadId })
    const found = await store.owners('', all)
    t.same([...found.keys()].sort(), [...known].sort())
    t.equal((await store.owners('', [])).size, 0, 'and none is an answer too')
    t.equal((await store.owners('', ['thread-0', 'thread-0'])).size, 1, 'and one twice is one')
  })
}

function notes(holds: Holds): void {
  holds('the time of use is noted at most once a minute', async (t, { store, row }) => {
    await claim(store, ALICE)
    await settle(store, 'stays')
    t.equal(row(KEY)?.lastUsedAt, NOW)
    await claim(store, ALICE, KEY, NOW + 59_999)
    t.equal(row(KEY)?.lastUsedAt, NOW)
    await claim(store, ALICE, KEY, NOW + 60_000)
    t.equal(row(KEY)?.lastUsedAt, NOW + 60_000)
    await claim(store, BOB, KEY, NOW + 600_000)
    t.equal(row(KEY)?.lastUsedAt, NOW + 60_000, 'and never for another')
  })

  holds("the name is the owner's to change", async (t, { store, row }) => {
    await claim(store, ALICE)
    t.equal(row(KEY)?.name, null)
    await store.rename(KEY, ALICE, 'Ünïcode \u{1f9f5}')
    await store.rename(KEY, BOB, 'mine')
    t.equal(row(KEY)?.name, 'Ünïcode \u{1f9f5}')
    await store.rename(KEY, ALICE, null)
    t.equal(row(KEY)?.name, null)
    await store.rename({ scope: '', threadId: 'nobody' }, ALICE, 'x')
    t.equal(row({ scope: '', threadId: 'nobody' }), undefined, 'a name makes no row')
  })

  holds('a store is empty until a row is there', async (t, { store }) => {
    t.equal(await store.isEmpty(), true)
    await store.secret()
    await store.owners('', ['a'])
    t.equal(await store.isEmpty(), true)
    await claim(store, ALICE)
    t.equal(await store.isEmpty(), false)
    await settle(store, 'not-started')
    t.equal(await store.isEmpty(), true)
  })

  holds('the secret is 32 bytes, the same for all connections', async (t, { store, connect }) => {
    const secrets = await Promise.all([store, connect(), connect()].map((one) => one.secret()))
    t.equal(secrets[0]?.length, 32)
    t.ok(secrets.every((secret) => Buffer.from(secret).equals(Buffer.from(secrets[0] ?? []))))
    t.not(Buffer.from(secrets[0] ?? []).toString('hex'), '0'.repeat(64))
  })

  holds('a store that cannot answer rejects: nothing is known, nothing is allowed', async (t, { connect }) => {
    const store = connect()
    await store.close()
    await t.rejects(store.owners('', ['a']), StoreUnavailable)
    await t.rejects(store.owner(KEY), StoreUnavailable)
    await t.rejects(store.claim(KEY, ALICE, 'agent', NOW), StoreUnavailable)
    await t.rejects(store.settle(KEY, ALICE, 0, 'stays'), StoreUnavailable)
    await t.rejects(store.bury(KEY, ALICE, NOW), StoreUnavailable)
    await t.rejects(store.rename(KEY, ALICE, null), StoreUnavailable)
    await t.rejects(store.isEmpty(), StoreUnavailable)
    await t.rejects(store.secret(), StoreUnavailable)
  })
}
