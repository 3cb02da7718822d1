/** The thread list: walks the upstream's pages, keeps threads that the caller may read (docs/contributing/invariants.md, 3). */
import { listingFor, listsForeign, type IsListed, type Permit, type StandingFacts } from '../../core/decide/decide.ts'
import { isThreadId } from '../../core/route/ids.ts'
import { parsedInSteps } from '../../core/json/pieces.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { refuse } from '../../core/reasons.ts'
import type { Rules } from '../../core/decide/rules.ts'
import {
  gather,
  isJoinCode,
  limitIn,
  readThreadPage,
  startIn,
  THREADS,
  threadPageIn,
  type Gathering,
  type PageThread,
  type Place,
  type Showing,
  type ThreadPage,
} from '../../core/wire/thread-page.ts'
import { stillListed } from './still-listed.ts'
import type { AnswerMemory } from './answer-memory.ts'
import type { CursorSeal } from './cursor.ts'
import type { Forwarder } from '../upstream/forward.ts'
import type { OwnerRecords, RecordsByThread } from '../pipeline/authorization.ts'
import { readBytes, writtenAnew, writtenInTurns, type Rewritten } from './rewriting.ts'
import { firstTurn, inTurns, turn } from '../pipeline/event-loop-turns.ts'
import type { UpstreamAnswer, UpstreamFailure } from '../upstream/upstream.ts'
import type { Authorized, Mark } from '../pipeline/stages.ts'

export interface ThreadListParts {
  readonly records: Pick<OwnerRecords, 'records' | 'recordsOf'>
  readonly scope: string
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly forwarder: Forwarder
  readonly seal: CursorSeal
}

/** Its caller releases `memory`. */
export type ThreadList = (request: Authorized, memory: AnswerMemory) => Promise<Rewritten>

export const MAX_PAGE_BYTES = 32 * 1024 * 1024

const MAX_PAGES = 20

const LONG_PAGE = 16 * 1024

/** Other requests are served in between. */
const AT_ONCE = 100

type Query = readonly (readonly [string, string])[]

interface Listing {
  readonly query: Query
  /** A cursor is valid only for these. */
  readonly bound: readonly unknown[]
  readonly limit: number
  readonly start: Place
  readonly isListed: IsListed
  readonly listedAt: Mark
}

/** The threads that a caller could read. */
interface Known {
  /** Null: the store is asked about each thread. */
  readonly threads: RecordsByThread | null
  /** More than the store gives at once: it is not asked for all of them again. */
  readonly isTooMany: boolean
}

interface KnownPage {
  readonly bytes: Buffer
  readonly known: Known
}

/** In order. */
type Reading = (threads: readonly PageThread[]) => Promise<readonly Showing[]>

export function makeThreadList(parts: ThreadListParts): ThreadList {
  const { records, scope, rules, facts } = parts

  /** @param known null where the store is asked about each thread */
  const readingOf = ({ principal }: Permit, isListed: IsListed, known: RecordsByThread | null): Reading => {
    return async (threads) => {
      const asked = (): readonly string[] => threads.map(({ id }) => id).filter(isThreadId)
      const owners = known ?? (await records.records(scope, asked(), principal))
      return threads.map(({ id }) => {
        const record = owners.get(id)
        if (!isListed(id, record)) return false
        return record !== null && record.owner !== principal.id && record.granted !== undefined ? 'without-owner' : true
      })
    }
  }

  /** Where the caller's threads may be few among many, the store is asked once for all of them; again for each page: a grant may have come. */
  const knownFor = async ({ principal }: Permit, isListed: IsListed, bytes: Buffer, isTooMany: boolean): Promise<Known> => {
    if (bytes.length <= LONG_PAGE || isTooMany) return { threads: null, isTooMany }
    const threads = listsForeign(isListed) ? null : await records.recordsOf(scope, principal)
    return { threads, isTooMany: threads === null }
  }

  /** Under `observe`: the upstream's list without join codes, and how many threads enforcing would have hidden. */
  const observed: ThreadList = async (request, memory) => {
    const listedAt = request.exchange.snapshot.mark()
    const answer = await parts.forwarder.ask(request)
    if (answer.outcome === 'answered' && answer.status !== 200) return { outcome: 'passthrough', answer }
    const read = await readBytes(answer, MAX_PAGE_BYTES, 'upstream-list-unreadable', memory)
    if (read.outcome !== 'read') return read
    await firstTurn(read.bytes.length)
    return observedIn(request, read.bytes, listedAt)
  }

  /** Runs after `firstTurn`, in a frame of its own. */
  const observedIn = async ({ permit, exchange }: Authorized, bytes: Buffer, listedAt: Mark): Promise<Rewritten> => {
    const value = await inTurns(parsedInSteps(bytes, THREADS))
    const page = value === undefined ? null : readThreadPage(value)
    if (page === null) return refuse('upstream-list-unreadable')
    const reading = readingOf(permit, listingFor(permit.principal, rules, facts), null)
    for (let at = 0; at < page.threads.length; at += AT_ONCE) {
      exchange.record.hidden += (await reading(page.threads.slice(at, at + AT_ONCE))).filter((how) => how === false).length
      await turn()
    }
    // The list is given whole or not at all: this caller may no longer see what an enforcing configuration would hide.
    const still = await stillListed(exchange.snapshot, permit, page.threads, ({ id }) => id, listedAt)
    if (still?.length !== page.threads.length) return refuse('rules-changed')
    const passing = Object.entries(value as JsonObject).filter(([name]) => facts.userScoped || !isJoinCode(name))
    return telling(Object.fromEntries(passing), page.threads, bytes.length)
  }

  const readPage = async (request: Authorized, query: Query, cursor: string | null, memory: AnswerMemory) =>
    readBytes(await fetchPage(parts.forwarder, request, query, cursor), MAX_PAGE_BYTES, 'upstream-list-unreadable', memory)

  const filtered: ThreadList = async (request, memory) => {
    const { permit, exchange } = request
    const query = permit.descriptor.query.filter(([name]) => name !== 'limit' && name !== 'cursor')
    const bound = [permit.principal.id, query]
    const limit = limitIn(permit.descriptor.query)
    if (limit === null) return refuse('query-limit-invalid')
    const start = readStart(permit, parts.seal, bound)
    if (start === null) return refuse('query-cursor-invalid')
    const isListed = listingFor(permit.principal, rules, facts)
    const list = { query, bound, limit, start, isListed, listedAt: exchange.snapshot.mark() }
    const read = await readPage(request, query, start.page, memory)
    if (read.outcome !== 'read') return read
    const { bytes } = read
    const known = await knownFor(permit, isListed, bytes, false)
    await firstTurn(bytes.length)
    return listedFrom(request, memory, list, { bytes, known })
  }

  /** Runs after `firstTurn`, in a frame of its own. @param first the page where the list starts */
  const listedFrom = async (request: Authorized, memory: AnswerMemory, list: Listing, first: KnownPage): Promise<Rewritten> => {
    const { permit, exchange } = request
    const { query, bound, limit, isListed } = list
    const gathering: Gathering = { items: [], limit }
    let joinCodes: ThreadPage['joinCodes'] = {}
    let { bytes, known } = first
    let longest = 0
    let place = list.start
    let next: Place | null
    for (let pages = 1; ; pages += 1) {
      longest = Math.max(longest, bytes.length)
      const { threads: own } = known
      const page = await inTurns(threadPageIn(bytes, (id) => own === null || own.get(id) !== null))
      if (page === null) return refuse('upstream-list-unreadable')
      if (pages === 1 && facts.userScoped) joinCodes = page.joinCodes
      const from = startIn(page.threads, place)
      const before = gathering.items.length
      const full = await gatherFrom(
        page.threads.filter(({ at }) => at >= from),
        readingOf(permit, isListed, own),
        gathering,
      )
      if (gathering.items.length > before) memory.keeps(bytes.length)
      if (full !== null) {
        next = { page: place.page, offset: full.at, ...between(gathering, full) }
        break
      }
      next = page.next === null ? null : { page: page.next, offset: 0 }
      if (next === null || pages === MAX_PAGES) break
      place = next
      const read = await readPage(request, query, place.page, memory)
      if (read.outcome !== 'read') return read
      bytes = read.bytes
      known = await knownFor(permit, isListed, bytes, known.isTooMany)
    }
    // Nothing of the caller's is left as far as the walk went: a cursor would only reveal that others' threads follow.
    // Null on the last page, as the runtime writes it.
    const nextCursor = next === null ? null : parts.seal.seal(next, bound)
    const threads = await stillListed(exchange.snapshot, permit, gathering.items, ({ id }) => id as string, list.listedAt)
    if (threads === null) return refuse('store-unavailable')
    return telling({ threads, nextCursor, ...joinCodes }, threads as readonly { readonly id: string }[], longest)
  }

  return facts.enforcement === 'observe' ? observed : filtered
}

async function telling(list: JsonObject, threads: readonly { readonly id: string }[], longest: number): Promise<Rewritten> {
  const write = longest > LONG_PAGE ? writtenInTurns : writtenAnew
  const written = await write(list, 'upstream-list-unreadable')
  return written.outcome === 'rewritten' ? { ...written, tellsOf: threads.map(({ id }) => id) } : written
}

async function gatherFrom(threads: readonly PageThread[], reading: Reading, gathering: Gathering): Promise<PageThread | null> {
  for (let at = 0; at < threads.length; at += AT_ONCE) {
    if (at > 0) await turn()
    const some = threads.slice(at, at + AT_ONCE)
    const full = gather(some, await reading(some), gathering)
    if (full !== null) return full
  }
  return null
}

function between({ items }: Gathering, next: PageThread): Pick<Place, 'between'> {
  const last = items.at(-1)?.['id']
  return typeof last === 'string' ? { between: [last, next.id] } : {}
}

function fetchPage(
  forwarder: Forwarder,
  request: Authorized,
  query: Query,
  cursor: string | null,
): Promise<UpstreamAnswer | UpstreamFailure> {
  const withCursor = cursor === null ? query : [...query, ['cursor', cursor] as const]
  return forwarder.ask(request, { query: withCursor })
}

function readStart(permit: Permit, seal: CursorSeal, bound: readonly unknown[]): Place | null {
  const cursor = new Map(permit.descriptor.query).get('cursor')
  return cursor === undefined ? { page: null, offset: 0 } : seal.open(cursor, bound)
}
