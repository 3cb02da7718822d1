/** What requests ask of the store. */
import { randomUUID } from 'node:crypto'
import type { Reader } from '../../../src/core/decide/sharing.ts'
import type { ListWindow } from '../../../src/store/port/lists.ts'
import type { Store } from '../../../src/store/port/store.ts'
import type { ThreadKey } from '../../../src/store/port/thread.ts'
import { GUEST, HEAVY, missingId, NOW, type Population, type SeededThread } from './population.ts'
import type { Table } from './table.ts'

/** One of them, on a table. */
export interface Operation {
  readonly id: string
  /** As the page says it. */
  readonly title: string
  readonly run: () => Promise<unknown>
  readonly prepare?: () => Promise<unknown>
  /** How many are done at the same time. */
  readonly width: number
}

/** A table with the stores that work on it. */
export interface Workbench {
  readonly table: Table
  readonly operations: readonly Operation[]
  readonly close: () => Promise<void>
}

/** Live threads, by chance, that are asked for one after the other: more than a cache of pages holds. */
const TARGETS = 50_000

/** Of those: what the cache of standings holds. */
const REMEMBERED = 1000

/** Of everybody who asks, with nothing granted to them: most groups are none of this program's. */
const GROUPS = ['corp:staff', 'corp:research', 'corp:everybody']

/** Of some: identity providers put up to so many into a token. */
const MANY_GROUPS = Array.from({ length: 200 }, (_, at) => `corp:team-${at}`)

const MINUTE = 60_000

const FIRST_PAGE: ListWindow = { agentId: null, includeArchived: false, after: null, limit: 50 }

/**
 * Makes the operations.
 * @param random from 0 to below 1
 */
export async function setUp(table: Table, population: Population, random: () => number): Promise<Workbench> {
  // A cache that forgets at once: every look-up asks the database, in the way of those that are remembered.
  const store = await table.open(1)
  const remembering = await table.open(2 * REMEMBERED)
  const targets = targetsIn(population, random)
  const missingIds = targets.map(() => missingId(Math.floor(random() * 2 ** 32)))
  const shared = await store.grantedTo({ kind: 'group', id: GUEST.group }, null, GUEST.ofGroup)
  const operations = [
    ...lookUps(store, targets, missingIds, shared),
    rememberedLookUp(remembering, targets),
    ...claims(store, targets),
    ...pagesOfAnUpstream(store, targets),
    ...(await pagesOfTheTable(store, targets)),
  ]
  return {
    table,
    operations,
    close: async () => {
      await Promise.all([store.close(), remembering.close()])
      await table.close()
    },
  }
}

function targetsIn(population: Population, random: () => number): readonly SeededThread[] {
  const targets: SeededThread[] = []
  while (targets.length < TARGETS) {
    const thread = population.thread(Math.floor(random() * population.total))
    if (thread.deletedAt === null && thread.owner !== HEAVY.userId) targets.push(thread)
  }
  return targets
}

/** One after the other, and from the beginning again; the operations begin in different places, so that none paves the way of another. */
function turning<T>(items: readonly T[], start = 0): () => T {
  let at = Math.floor(start * items.length)
  return () => items[(at = (at + 1) % items.length)]!
}

const keyOf = ({ threadId }: { readonly threadId: string }): ThreadKey => ({ scope: '', threadId })
const readerOf = ({ owner }: SeededThread): Reader => ({ userId: owner, groups: GROUPS })
const STRANGER: Reader = { userId: 'corp:stranger', groups: GROUPS }
const MEMBER: Reader = { userId: 'corp:member', groups: [...GROUPS, GUEST.group] }

/** Whose new threads are: nobody's who is asked for in a list. */
const BEGINNER = 'corp:beginner'

function lookUps(
  store: Store,
  targets: readonly SeededThread[],
  missingIds: readonly string[],
  shared: readonly ThreadKey[],
): Operation[] {
  const [own, foreign, several] = [turning(targets), turning(targets, 1 / 3), turning(targets, 2 / 3)]
  const [granted, missing] = [turning(shared), turning(missingIds)]
  const lookUpOwn = async (target: SeededThread): Promise<unknown> => store.accessTo(keyOf(target), readerOf(target))
  return [
    { id: 'own', title: 'Own thread', width: 1, run: () => lookUpOwn(own()) },
    { id: 'own-8', title: 'Own thread, 8 at a time', width: 8, run: () => lookUpOwn(several()) },
    { id: 'granted', title: 'Thread shared with a group', width: 1, run: async () => store.accessTo(granted(), MEMBER) },
    { id: 'foreign', title: "Another user's thread", width: 1, run: async () => store.accessTo(keyOf(foreign()), STRANGER) },
    {
      id: 'missing',
      title: 'Unowned thread',
      width: 1,
      run: async () => store.accessTo(keyOf({ threadId: missing() }), STRANGER),
    },
  ]
}

function rememberedLookUp(store: Store, targets: readonly SeededThread[]): Operation {
  const remembered = targets.slice(0, REMEMBERED)
  const next = turning(remembered)
  const lookUp = async (target: SeededThread): Promise<unknown> => store.accessTo(keyOf(target), readerOf(target))
  return {
    id: 'own-remembered',
    title: 'Own thread, cached',
    width: 1,
    prepare: async () => {
      for (const target of remembered) await lookUp(target)
    },
    run: () => lookUp(next()),
  }
}

function claims(store: Store, targets: readonly SeededThread[]): Operation[] {
  const [again, later] = [turning(targets, 1 / 2), turning(targets, 1 / 4)]
  const claim = ({ threadId, owner, agentId }: SeededThread, now: number) =>
    store.claim({ scope: '', threadId }, { userId: owner, agentId, guest: false, now })
  let minutes = 0
  const claimNew = async (): Promise<void> => {
    const key = { scope: '', threadId: randomUUID() }
    const claimed = await store.claim(key, { userId: BEGINNER, agentId: 'default', guest: false, now: NOW })
    if (claimed.outcome !== 'new' || claimed.registration === null) throw new Error('a new thread was not claimed')
    await store.settle(key, BEGINNER, claimed.registration, 'confirmed')
  }
  return [
    { id: 'claim-own', title: 'Run on an own thread', width: 1, run: () => claim(again(), 0) },
    {
      id: 'claim-later',
      title: 'Run on an own thread, the first in a minute',
      width: 1,
      run: () => claim(later(), NOW + (minutes += 1) * MINUTE),
    },
    { id: 'claim-new', title: 'Run on a new thread: claimed and confirmed', width: 1, run: claimNew },
  ]
}

function pagesOfAnUpstream(store: Store, targets: readonly SeededThread[]): Operation[] {
  const lookUp = (size: number, groups: readonly string[]): (() => Promise<unknown>) => {
    const pages = Array.from({ length: TARGETS / size }, (_, at) => targets.slice(at * size, (at + 1) * size))
    const next = turning(pages.map((page) => ({ userId: page[0]!.owner, ids: page.map(({ threadId }) => threadId) })))
    return () => {
      const { userId, ids } = next()
      return store.accessToSeveral('', ids, { userId, groups })
    }
  }
  const page = (id: string, title: string, run: () => Promise<unknown>): Operation => ({ id, title, run, width: 1 })
  return [
    page('page-100', '100 threads of a list', lookUp(100, GROUPS)),
    page('page-1000', '1000 threads of a list', lookUp(1000, GROUPS)),
    page('page-10000', '10000 threads of a list', lookUp(10_000, GROUPS)),
    page('page-groups', `100 threads of a list, for a user in ${MANY_GROUPS.length} groups`, lookUp(100, MANY_GROUPS)),
  ]
}

async function pagesOfTheTable(store: Store, targets: readonly SeededThread[]): Promise<Operation[]> {
  const anybody = turning(targets)
  const heavy: Reader = { userId: HEAVY.userId, groups: GROUPS }
  const guest: Reader = { userId: GUEST.userId, groups: [...GROUPS, GUEST.group] }
  const half = await store.listed('', heavy, { ...FIRST_PAGE, limit: HEAVY.threads / 2 })
  const { updatedAt = 0, threadId = '' } = half.at(-1) ?? {}
  const halfway = { ...FIRST_PAGE, after: { updatedAt, threadId } }
  const list = (id: string, title: string, run: () => Promise<unknown>): Operation => ({ id, title, run, width: 1 })
  return [
    list('list-small', 'First page for a user with few threads', () => store.listed('', readerOf(anybody()), FIRST_PAGE)),
    list('list-heavy', `First page for a user with ${HEAVY.threads} threads`, () => store.listed('', heavy, FIRST_PAGE)),
    list('list-halfway', `A page in the middle of those ${HEAVY.threads}`, () => store.listed('', heavy, halfway)),
    list('list-shared', `First page for a user with about ${GUEST.ofUser + GUEST.ofGroup} shared threads`, () =>
      store.listed('', guest, FIRST_PAGE),
    ),
    list('list-everybody', "First page of all users' threads", () => store.listed('', 'everybody', FIRST_PAGE)),
  ]
}
