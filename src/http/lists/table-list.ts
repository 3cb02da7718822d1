/** The thread list from the ownership table. Decides as a list from the upstream does (docs/contributing/invariants.md, 3). */
import { listingFor, listsForeign, type IsListed, type Permit, type StandingFacts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { refuse } from '../../core/reasons.ts'
import type { Rules } from '../../core/decide/rules.ts'
import type { Reader } from '../../core/decide/sharing.ts'
import { threadRecord, type TableUse } from '../../core/wire/table-lists.ts'
import { limitIn } from '../../core/wire/thread-page.ts'
import type { ListedThread, ListStore, ListWindow } from '../../store/port/lists.ts'
import { NOBODY } from '../../store/port/thread.ts'
import { stillListed } from './still-listed.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { CursorSeal } from './cursor.ts'
import { readerOf, recordOf, type OwnerRecords } from '../pipeline/authorization.ts'
import { writtenInTurns, type Rewritten } from './rewriting.ts'
import type { ThreadList } from './thread-list.ts'
import type { Authorized } from '../pipeline/stages.ts'

export interface TableListParts {
  readonly store: ListStore
  readonly records: Pick<OwnerRecords, 'records'>
  readonly scope: string
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly seal: CursorSeal
}

export interface TableList {
  /** Its caller releases `memory`. */
  page(request: Pick<Authorized, 'permit' | 'exchange'>, memory: AnswerMemory): Promise<Rewritten>
  goesOn(permit: Permit): boolean
}

type Key = NonNullable<ListWindow['after']>

/** Bounds of one walk: candidates per query at least, and queries per request at most. */
const LEAST_CANDIDATES = 100
const MAX_QUERIES = 20

/** Bytes per thread until it is written, and per character of its texts, which may be written as six. */
const PER_THREAD = 1000
const PER_CHARACTER = 8

function costOf(threads: readonly ListedThread[]): number {
  const characters = threads.reduce(
    (sum, { threadId, agentId, name }) => sum + threadId.length + agentId.length + (name?.length ?? 0),
    0,
  )
  return threads.length * PER_THREAD + characters * PER_CHARACTER
}

/** The owner of a granted thread: every user id has a colon, so this is no user. */
const SHARED = { owner: 'somebody-else', deleted: false, granted: 'read' } as const

export function makeTableList({ store, records, scope, rules, facts, seal }: TableListParts): TableList {
  const candidatesFor = (principal: Principal, isListed: IsListed) => {
    const readsForeign = listsForeign(isListed)
    const whose: Reader | 'everybody' = readsForeign ? 'everybody' : readerOf(principal)
    // Rows of all users' threads lack grants. Grants matter where a thread would be closed to the caller without them.
    const asksForGrants = readsForeign && !isListed('another', SHARED)
    return async (window: ListWindow) => {
      const candidates = await store.listed(scope, whose, window)
      const ids = candidates.map(({ threadId }) => threadId)
      const known = asksForGrants ? await records.records(scope, ids, principal) : null
      return candidates.map((thread) => ({
        thread,
        record:
          known === null ? recordOf({ row: { ...thread, deleted: false }, runners: [] }, 'enforce') : known.get(thread.threadId),
      }))
    }
  }

  const startOf = (permit: Permit): Key | null | 'forged' => {
    const cursor = new Map(permit.descriptor.query).get('cursor')
    if (cursor === undefined) return null
    const place = seal.open(cursor, boundOf(permit))
    if (place === null || place.page === null) return 'forged'
    return { threadId: place.page, updatedAt: place.offset }
  }

  return {
    goesOn: (permit) => {
      const start = startOf(permit)
      return start !== null && start !== 'forged'
    },
    page: async ({ permit, exchange: { snapshot } }, memory) => {
      const { principal, descriptor } = permit
      const query = new Map(descriptor.query)
      const limit = limitIn(descriptor.query)
      if (limit === null) return refuse('query-limit-invalid')
      const start = startOf(permit)
      if (start === 'forged') return refuse('query-cursor-invalid')

      const isListed = listingFor(principal, rules, facts)
      const candidatesIn = candidatesFor(principal, isListed)
      // The runtime accepts only this text as yes.
      const includeArchived = query.get('includeArchived') === 'true'
      const window = { agentId: query.get('agentId') ?? null, includeArchived, limit: Math.max(limit + 1, LEAST_CANDIDATES) }
      const shown: ListedThread[] = []
      const listedAt = snapshot.mark()
      const answer = async (last: Key | undefined): Promise<Rewritten> => {
        const nextCursor = last === undefined ? null : seal.seal({ page: last.threadId, offset: last.updatedAt }, boundOf(permit))
        const threads = await stillListed(snapshot, permit, shown, ({ threadId }) => threadId, listedAt)
        if (threads === null) return refuse('store-unavailable')
        const written = await writtenInTurns({ threads: threads.map(threadRecord), nextCursor }, 'store-unavailable')
        return written.outcome === 'rewritten' ? { ...written, tellsOf: threads.map(({ threadId }) => threadId) } : written
      }
      let after = start
      for (let queries = 0; queries < MAX_QUERIES; queries += 1) {
        const candidates = await candidatesIn({ ...window, after })
        if (!memory.holds(costOf(shown) + costOf(candidates.map(({ thread }) => thread))))
          return refuse('bodies-budget-exhausted')
        for (const { thread, record } of candidates) {
          // A thread whose owner was removed is in no list until it is assigned.
          if (thread.owner === NOBODY || !isListed(thread.threadId, record)) continue
          if (shown.length === limit) return answer(shown.at(-1))
          shown.push(thread)
        }
        const last = candidates.at(-1)?.thread
        if (last === undefined || candidates.length < window.limit) return answer(undefined)
        after = last
      }
      return answer(after ?? undefined)
    },
  }
}

/** A cursor is valid for the user and the query. Cursors of the upstream's lists are bound to something else. */
function boundOf({ principal, descriptor }: Permit): readonly unknown[] {
  return ['table', principal.id, descriptor.query.filter(([name]) => name !== 'limit' && name !== 'cursor')]
}

export async function listFrom(
  use: TableUse,
  table: TableList,
  upstream: ThreadList,
  request: Authorized,
  memory: AnswerMemory,
): Promise<Rewritten> {
  if (use === 'always' || (use === 'where-refused' && table.goesOn(request.permit))) return table.page(request, memory)
  const listed = await upstream(request, memory)
  if (use === 'never' || listed.outcome !== 'passthrough' || listed.answer.status !== 422) return listed
  listed.answer.body.destroy()
  return table.page(request, memory)
}
