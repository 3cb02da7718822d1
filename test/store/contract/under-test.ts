/** What the contract of every store is run against, and what its parts have in common. */
import { test, type Test } from 'tap'
import type { Grantee, Reader, Right } from '../../../src/core/decide/sharing.ts'

import type { RowFacts, ThreadAccess } from '../../../src/store/port/access.ts'
import type { StoredGrant } from '../../../src/store/port/grants.ts'
import type { Store } from '../../../src/store/port/store.ts'
import type { ThreadKey } from '../../../src/store/port/thread.ts'

/** A store of its own for one test, with nothing in it. */
export interface StoreUnderTest {
  readonly store: Store
  /** Another connection to the same data, as another process would have it. It is closed with the first. */
  readonly connect: () => Promise<Store>
}

/** Opens one; everything of it goes when the test is over. */
export type Open = (t: Test) => Promise<StoreUnderTest>

/** Says what a store promises, with the test that shows it. */
export type Holds = (promise: string, body: (t: Test, parts: StoreUnderTest) => Promise<void>) => void

/** Makes the tests of one store. */
export function holdsFor(name: string, open: Open): Holds {
  return (promise, body) => void test(`${name}: ${promise}`, async (t) => body(t, await open(t)))
}

export const NOW = 1_700_000_000_000
export const ALICE = 'corp:alice'
export const BOB = 'corp:bob'
export const CAROL = 'corp:carol'
export const KEY: ThreadKey = { scope: '', threadId: 't-1' }

/** Ids that something or other takes for the same, or reads as something else. */
export const LOOKALIKES: readonly string[] = [
  'Thread',
  'thread',
  'THREAD',
  'thread ',
  ' thread',
  'caf\u00e9',
  'cafe\u0301',
  '\ufb01n',
  'fin',
  'stra\u00dfe',
  'strasse',
  '\u{1f9f5}',
  '\ufe0f',
  '\uff21',
  '1',
  '01',
  '1.0',
  "a'b",
  'a"b',
  'a\\b',
  '%',
  '_',
  '["thread"]',
  '{}',
  'null',
]

/** The key of a thread in the first scope. */
export const at = (threadId: string): ThreadKey => ({ scope: '', threadId })

/** A reader with groups. */
export const readerOf = (userId: string, ...groups: readonly string[]): Reader => ({ userId, groups })

/** Claims a thread as its user; how it went. */
export async function claim(store: Store, userId: string, key = KEY, now = NOW): Promise<string> {
  return (await store.claim(key, { userId, agentId: 'agent', guest: false, now })).outcome
}

/** Claims a thread for somebody else's run. */
export function claimAsGuest(store: Store, owner: string, key = KEY, now = NOW) {
  return store.claim(key, { userId: owner, agentId: 'agent', guest: true, now })
}

/** Makes a thread a user's for good. */
export async function own(store: Store, userId: string, key = KEY, now = NOW): Promise<void> {
  await claim(store, userId, key, now)
  await store.settle(key, userId, 0, 'confirmed')
}

/** Grants a right on a thread, as an operator. */
export function grant(store: Store, to: Grantee, right: Right = 'read', key = KEY): Promise<string> {
  return store.grant(key, null, grantOf(to, right))
}

/** A grant by an operator. */
export function grantOf(to: Grantee, right: Right = 'read', grantedAt = NOW): StoredGrant {
  return { ...to, right, grantedBy: 'operator', grantedAt }
}

export const user = (id: string): Grantee => ({ kind: 'user', id })
export const group = (id: string): Grantee => ({ kind: 'group', id })

/** What is known of a thread, told alike by both questions. */
export async function accessTo(store: Store, reader: Reader, key = KEY): Promise<ThreadAccess> {
  const alone = await store.accessTo(key, reader)
  const among = (await store.accessToSeveral(key.scope, [key.threadId], reader)).get(key.threadId) ?? { row: null, runners: [] }
  if (JSON.stringify(sorted(whatCounts(alone, reader))) !== JSON.stringify(sorted(whatCounts(among, reader))))
    throw new Error(`one question says ${JSON.stringify(alone)}, the other ${JSON.stringify(among)}`)
  return alone
}

/** Of what is known of a thread, that which every store tells: who was seen on one may be left out where the reader may use it. */
export function whatCounts(known: ThreadAccess, { userId }: Reader): ThreadAccess {
  const { row } = known
  const isTheirs = row !== null && !row.deleted && (row.owner === userId || row.granted !== null)
  return isTheirs ? { row, runners: [] } : known
}

/** The row of a thread as it stands to a reader, by default to somebody whom it does not concern. */
export async function row(store: Store, key = KEY, reader = readerOf('corp:somebody')): Promise<RowFacts | null> {
  return (await accessTo(store, reader, key)).row
}

/** Works in steps until nothing is left. @returns how much each step did */
export async function steps(step: () => Promise<number>): Promise<readonly number[]> {
  const done: number[] = []
  for (;;) {
    const count = await step()
    if (count === 0) return done
    done.push(count)
  }
}

/** Strings in the order of their bytes. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function sorted({ row: facts, runners }: ThreadAccess): unknown {
  return [facts === null ? null : [facts.owner, facts.deleted, facts.provisional, facts.granted], runners]
}
