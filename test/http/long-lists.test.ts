/** Lists of thousands of threads: the same decision for each, the same pages, and others have their turn meanwhile. */
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { call } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { json } from '../../testing/support/upstream.ts'
import { edited } from '../../testing/support/policies.ts'

interface List {
  readonly threads: readonly { readonly id: string }[]
  readonly nextCursor: string | null
}

const COUNT = 10_000
const idOf = (at: number): string => `thread-${String(at).padStart(5, '0')}`
const IDS = Array.from({ length: COUNT }, (_, at) => idOf(at))
/** A list as it comes from an upstream that knows no limit: what looks like the end of an item stands in every hundredth name. */
const nameOf = (at: number): string => (at % 100 === 0 ? '},{"id":"thread-00003"},{' : `Thread ${at}`)
const ALL = json({ threads: IDS.map((id, at) => ({ id, name: nameOf(at), agentId: 'default' })) })
const idsIn = ({ threads }: List): string[] => threads.map(({ id }) => id)

async function list(base: string, token: string, query = ''): Promise<List> {
  const answer = await call(`${base}/threads${query}`, { token })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.json as List
}

/** Whose a thread is. Every seventh is nobody's, and alice owns one of fifty. */
function ownerOf(at: number): string | null {
  if (at % 7 === 0) return null
  return at % 50 === 1 ? 'corp:alice' : 'corp:bob'
}

/** A gateway before it, whose store holds the owners, and grants to alice of two of bob's threads. */
async function owned(t: Parameters<typeof gated>[0], options?: GatedOptions): Promise<GatedUpstream> {
  const gate = await gated(t, ALL, options)
  const store = await openSqliteStore(join(gate.gateway.folder, 'ownership.db'))
  const rows = IDS.flatMap((threadId, at) => {
    const owner = ownerOf(at)
    if (owner === null) return []
    return [{ scope: '', threadId, owner, agentId: 'default', name: null, archived: false, createdAt: 1, lastUsedAt: 1 }]
  })
  await store.import(rows, { dryRun: false, settleConflicts: false })
  for (const at of SHARED) {
    const grant = { kind: 'user', id: 'corp:alice', right: 'read', grantedBy: 'corp:bob', grantedAt: 1 } as const
    await store.grant({ scope: '', threadId: idOf(at) }, null, grant)
  }
  for (const at of DELETED) await store.bury({ scope: '', threadId: idOf(at) }, 'corp:alice', 1, 'deleted')
  await store.close()
  return gate
}

const SHARED = [4444, 9998]
const DELETED = [151, 9951]

/** Operators may read everybody's messages. */
const SUPPORTED = edited(
  '  # The list has exactly',
  '  - name: support\n    routes: [threads/messages]\n    allow: [operator]\n    threads: [foreign]\n\n  # The list has exactly',
)

/** What alice may read, in the order of the upstream. */
const ALICES = IDS.filter((_id, at) => (ownerOf(at) === 'corp:alice' && !DELETED.includes(at)) || SHARED.includes(at))

async function walk(base: string, token: string, query: string): Promise<List[]> {
  const pages = [await list(base, token, query)]
  for (let next = pages[0]!.nextCursor; next !== null; next = pages.at(-1)!.nextCursor)
    pages.push(await list(base, token, `${query}&cursor=${next}`))
  return pages
}

void test('of ten thousand threads each caller gets their own and what was granted, whole and in pages', async (t) => {
  const { base, alice, bob } = await owned(t)
  t.strictSame(idsIn(await list(base, alice)), ALICES)
  for (const limit of [60, 99, 100, 101, ALICES.length - 1, ALICES.length, ALICES.length + 1]) {
    const pages = await walk(base, alice, `?limit=${limit}`)
    t.strictSame(pages.flatMap(idsIn), ALICES, `limit ${limit}`)
    t.equal(pages.length, Math.ceil(ALICES.length / limit), `limit ${limit}`)
  }
  const bobs = IDS.filter((_id, at) => ownerOf(at) === 'corp:bob')
  const first = await list(base, bob)
  t.strictSame(idsIn(first), bobs.slice(0, 1000))
  t.strictSame(idsIn(await list(base, bob, `?cursor=${first.nextCursor ?? ''}`)), bobs.slice(1000, 2000))
})

void test('an item passes as the upstream gives it, whatever its name looks like', async (t) => {
  const { base, bob } = await owned(t)
  const { threads } = await list(base, bob)
  t.strictSame(threads[0], { id: idOf(2), name: 'Thread 2', agentId: 'default' })
  t.strictSame(
    threads.find(({ id }) => id === idOf(100)),
    { id: idOf(100), name: nameOf(100), agentId: 'default' },
  )
})

void test('an operator who may read what is not theirs gets the same page of everybody’s', async (t) => {
  const { base, olga } = await owned(t, { policy: SUPPORTED })
  const everybodys = IDS.filter((_id, at) => ownerOf(at) !== null && !DELETED.includes(at))
  const first = await list(base, olga)
  t.strictSame(idsIn(first), everybodys.slice(0, 1000))
  t.strictSame(idsIn(await list(base, olga, `?limit=150&cursor=${first.nextCursor ?? ''}`)), everybodys.slice(1000, 1150))
})

void test('whoever owns more threads than are told at once is asked of each, with the same answer', async (t) => {
  const gate = await owned(t)
  const store = await openSqliteStore(join(gate.gateway.folder, 'ownership.db'))
  const rows = Array.from({ length: 10_001 }, (_, at) => `elsewhere-${at}`)
  await store.import(
    rows.map((threadId) => ({
      scope: '',
      threadId,
      owner: 'corp:alice',
      agentId: 'default',
      name: null,
      archived: false,
      createdAt: 1,
      lastUsedAt: 1,
    })),
    { dryRun: false, settleConflicts: false },
  )
  await store.close()
  t.strictSame(idsIn(await list(gate.base, gate.alice)), ALICES)
})

void test('under observe all of it passes, and what enforcing would have hidden is counted', async (t) => {
  const { base, alice, gateway } = await owned(t, { config: { enforcement: 'observe', audit: { to: 'stdout' } } })
  t.strictSame(idsIn(await list(base, alice)), IDS)
  t.match(
    gateway.lines.find((line) => 'audit' in line),
    { hidden: COUNT - ALICES.length },
  )
})

void test('others have their turn while a list is read and decided', async (t) => {
  const { base, alice, bob } = await owned(t)
  await list(base, alice)
  // Each step takes longer than the work of one turn may.
  const running = performance.now.bind(performance)
  let steps = 0
  performance.now = () => running() + (steps += 1)
  t.teardown(() => void (performance.now = running))
  let turns = 0
  let over = false
  const turn = (): void => {
    turns += 1
    if (!over) setImmediate(turn)
  }
  // A handful of these are the exchange's own, nine are of the reading and nine of the decisions.
  const listed = list(base, bob)
  setImmediate(turn)
  await listed
  over = true
  t.ok(turns > 18, `${turns} turns`)
})

void test('a thread that became the caller’s while pages were fetched is on the page that was fetched after that', async (t) => {
  const gate = await owned(t)
  const pages = [IDS.slice(0, 200), IDS.slice(200, 400)]
  const late = idOf(211)
  gate.upstream.answer((request, response) => {
    const second = request.target.includes('cursor=second')
    const answer = json({ threads: pages[second ? 1 : 0]!.map((id) => ({ id })), nextCursor: second ? null : 'second' })
    if (!second) return answer(request, response)
    const shared = async (): Promise<void> => {
      const store = await openSqliteStore(join(gate.gateway.folder, 'ownership.db'))
      const grant = { kind: 'user', id: 'corp:alice', right: 'read', grantedBy: 'corp:bob', grantedAt: 1 } as const
      t.equal(await store.grant({ scope: '', threadId: late }, null, grant), 'done')
      await store.close()
    }
    void shared().then(() => answer(request, response))
  })
  t.strictSame(idsIn(await list(gate.base, gate.alice)), [
    ...ALICES.filter((id) => id < idOf(211)),
    late,
    ...ALICES.filter((id) => id > late && id < idOf(400)),
  ])
})
