/**
 * Searches for threads, and counts them: the server gets the ids of the threads that the caller may read as a condition, so
 * that filters, sort, offset and limit mean what they mean to the server (docs/contributing/invariants.md, 3).
 */
import { listingFor, listsForeign, type IsListed, type StandingFacts } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Rules } from '../../core/decide/rules.ts'
import { isObject, type Json, type JsonObject } from '../../core/json/read.ts'
import { refuse } from '../../core/reasons.ts'
import { isThreadId, isUuid } from '../../core/route/ids.ts'
import type { ListStore, ListWindow } from '../../store/port/lists.ts'
import type { AnswerMemory } from '../lists/answer-memory.ts'
import { readBytes, writtenAnew, type Rewritten } from '../lists/rewriting.ts'
import { stillListed } from '../lists/still-listed.ts'
import type { OwnerRecords, RecordsByThread } from '../pipeline/authorization.ts'
import { turn } from '../pipeline/event-loop-turns.ts'
import type { Authorized, Payload } from '../pipeline/stages.ts'
import type { Forwarder } from '../upstream/forward.ts'
import { LONGEST_SEARCH, SEARCH } from '../upstream/thread-pages.ts'
import { jsonOf, type UpstreamAnswer } from '../upstream/upstream.ts'

export interface SearchParts {
  readonly store: ListStore
  readonly records: Pick<OwnerRecords, 'records' | 'recordsOf'>
  readonly scope: string
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly forwarder: Pick<Forwarder, 'ask'>
}

export interface ThreadSearch {
  search(request: Authorized, memory: AnswerMemory): Promise<Rewritten>
  count(request: Authorized, memory: AnswerMemory): Promise<Rewritten>
}

const MAX_PAGE_BYTES = 32 * 1024 * 1024

/** The most ids that the server gets as a condition: it compares each of its threads with them. */
const MOST_THREADS = 10_000

/** Ids whose owners are asked for at once. Other requests are served in between. */
const AT_ONCE = 500

const PAGINATION = ['x-pagination-total', 'x-pagination-next']

const LIST = SEARCH.route

export function makeThreadSearch(parts: SearchParts): ThreadSearch {
  const { store, records, scope, rules, facts, forwarder } = parts

  /** The threads that the caller may read, of those that are asked for; null for too many. */
  const readable = async (principal: Principal, asked: ReadonlySet<string> | null): Promise<readonly string[] | null> => {
    const isListed = listingFor(principal, rules, facts, LIST)
    const isForeign = listsForeign(isListed)
    const known = isForeign ? null : await records.recordsOf(scope, principal)
    const candidates = isForeign ? await everybodys() : known === null ? null : known.ids()
    if (candidates === null) return null
    // The server refuses a whole search for one id that is no UUID, which an imported thread may have.
    const ids = candidates.filter((id) => isUuid(id) && (asked === null || asked.has(id)))
    return listedOf(ids, principal, isListed, known)
  }

  /** @param known null where the store is asked about these threads */
  const listedOf = async (
    ids: readonly string[],
    principal: Principal,
    isListed: IsListed,
    known: RecordsByThread | null,
  ): Promise<readonly string[]> => {
    const listed: string[] = []
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      if (at > 0) await turn()
      const some = ids.slice(at, at + AT_ONCE)
      const owners = known ?? (await records.records(scope, some, principal))
      for (const id of some) if (isListed(id, owners.get(id))) listed.push(id)
    }
    return listed
  }

  /** The ids of all threads; null for too many. */
  const everybodys = async (): Promise<readonly string[] | null> => {
    const ids: string[] = []
    let after: ListWindow['after'] = null
    while (ids.length <= MOST_THREADS) {
      const rows: Awaited<ReturnType<ListStore['listed']>> = await store.listed(scope, 'everybody', {
        agentId: null,
        includeArchived: true,
        after,
        limit: LONGEST_SEARCH,
      })
      for (const { threadId } of rows) ids.push(threadId)
      after = rows.at(-1) ?? null
      if (after === null || rows.length < LONGEST_SEARCH) return ids
    }
    return null
  }

  /** Asks the server for threads with these ids. Its answer may hold no other: then it does not heed the condition. */
  const ask = async (request: Authorized, query: JsonObject, ids: readonly string[], memory: AnswerMemory) => {
    const payload = payloadOf({ ...query, ids })
    const answer = await forwarder.ask(request, { payload, descriptor: SEARCH })
    const read = await readBytes(answer, MAX_PAGE_BYTES, 'upstream-list-unreadable', memory)
    if (read.outcome !== 'read') return read
    const allowed = new Set(ids)
    const page = jsonOf(read.bytes)
    const threads = Array.isArray(page) ? (page as readonly Json[]) : [null]
    if (!threads.every((one): one is JsonObject => isObject(one) && allowed.has(one['thread_id'] as string))) {
      return refuse('upstream-list-unreadable')
    }
    return { outcome: 'read', threads, headers: (answer as UpstreamAnswer).headers } as const
  }

  const observed = async (request: Authorized, memory: AnswerMemory): Promise<Rewritten> => {
    const { permit, exchange, payload } = request
    const answer = await forwarder.ask(request, { payload })
    const read = await readBytes(answer, MAX_PAGE_BYTES, 'upstream-list-unreadable', memory)
    if (read.outcome !== 'read') return read
    const page = jsonOf(read.bytes)
    const ids = (Array.isArray(page) ? (page as readonly Json[]) : []).flatMap((one) =>
      isObject(one) && typeof one['thread_id'] === 'string' ? [one['thread_id']] : [],
    )
    const isListed = listingFor(permit.principal, rules, facts, LIST)
    const own = new Set(await listedOf(ids.filter(isThreadId), permit.principal, isListed, null))
    exchange.record.hidden += ids.filter((id) => !own.has(id)).length
    return { outcome: 'rewritten', body: read.bytes, headers: paginationOf((answer as UpstreamAnswer).headers), tellsOf: ids }
  }

  return {
    async search(request, memory) {
      if (facts.enforcement === 'observe') return observed(request, memory)
      const { permit, exchange } = request
      const query = queryOf(request.payload)
      if (query === null) return refuse('body-not-object')
      const listedAt = exchange.snapshot.mark()
      const ids = await readable(permit.principal, askedFor(query))
      if (ids === null) return refuse('threads-too-many')
      // The server takes an empty list of ids for no condition.
      if (ids.length === 0) return { ...written([]), headers: { 'x-pagination-total': String(offsetOf(query)) } }
      const { select } = query
      const isSelecting = Array.isArray(select) && !(select as readonly Json[]).includes('thread_id')
      const asked = isSelecting ? { ...query, select: [...(select as readonly Json[]), 'thread_id'] } : query
      const page = await ask(request, asked, ids, memory)
      if (page.outcome !== 'read') return page
      const threads = await stillListed(exchange.snapshot, permit, page.threads, (one) => one['thread_id'] as string, listedAt)
      if (threads === null) return refuse('store-unavailable')
      const shown = isSelecting ? threads.map(({ thread_id: _named, ...rest }) => rest) : threads
      const tellsOf = threads.map((one) => one['thread_id'] as string)
      const made = written(shown)
      return made.outcome === 'rewritten' ? { ...made, headers: paginationOf(page.headers), tellsOf } : made
    },

    async count(request, memory) {
      const { permit, exchange, payload } = request
      if (facts.enforcement === 'observe') return readCount(await forwarder.ask(request, { payload }), memory)
      const query = queryOf(payload)
      if (query === null) return refuse('body-not-object')
      const listedAt = exchange.snapshot.mark()
      const ids = await readable(permit.principal, null)
      if (ids === null) return refuse('threads-too-many')
      const found: string[] = []
      for (let offset = 0; ids.length > 0 && offset < ids.length; offset += LONGEST_SEARCH) {
        const page = await ask(request, { ...query, select: ['thread_id'], limit: LONGEST_SEARCH, offset }, ids, memory)
        if (page.outcome !== 'read') return page
        for (const one of page.threads) found.push(one['thread_id'] as string)
        if (page.threads.length < LONGEST_SEARCH) break
      }
      const threads = await stillListed(exchange.snapshot, permit, found, (id) => id, listedAt)
      return threads === null ? refuse('store-unavailable') : written(threads.length)
    },
  }
}

async function readCount(answer: Awaited<ReturnType<Forwarder['ask']>>, memory: AnswerMemory): Promise<Rewritten> {
  const read = await readBytes(answer, MAX_PAGE_BYTES, 'upstream-list-unreadable', memory)
  return read.outcome === 'read' ? { outcome: 'rewritten', body: read.bytes } : read
}

/** The body was read and checked. Null for a list of ids that the server would not take as one: it could ignore it. */
function queryOf(payload: Payload): JsonObject | null {
  const query = payload.kind === 'json' ? jsonOf(Buffer.concat(piecesOf(payload.bytes))) : undefined
  if (!isObject(query)) return null
  const { ids = null, offset = 0 } = query
  const isList = ids === null || (Array.isArray(ids) && (ids as readonly Json[]).every((id) => typeof id === 'string'))
  return isList && typeof offset === 'number' ? query : null
}

function piecesOf(bytes: Buffer | readonly Uint8Array[]): readonly Uint8Array[] {
  return Buffer.isBuffer(bytes) ? [bytes] : bytes
}

/** Null without such a condition: the server takes an empty list for none. */
function askedFor({ ids }: JsonObject): ReadonlySet<string> | null {
  return Array.isArray(ids) && ids.length > 0 ? new Set(ids as readonly string[]) : null
}

function offsetOf({ offset }: JsonObject): number {
  return typeof offset === 'number' ? offset : 0
}

function payloadOf(body: JsonObject): Payload {
  return { kind: 'json', bytes: [Buffer.from(JSON.stringify(body))], name: undefined, archived: undefined, claimed: null }
}

function written(value: unknown): Rewritten {
  return writtenAnew(value, 'upstream-list-unreadable')
}

function paginationOf(headers: UpstreamAnswer['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(PAGINATION.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : [])))
}
