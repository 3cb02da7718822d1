/**
 * The thread list: walks the upstream's pages and keeps exactly the threads whose messages the caller may read, by the
 * same decision as that route (design "Lists"; invariant 3).
 */
import { isListed, type Permit, type StandingFacts } from '../core/decide.ts'
import { isThreadId } from '../core/ids.ts'
import type { JsonObject } from '../core/json.ts'
import { refuse } from '../core/reasons.ts'
import type { Rules } from '../core/rules.ts'
import { gather, isJoinCode, limitIn, readThreadPage, type Gathering, type Place, type ThreadPage } from '../core/thread-page.ts'
import type { CursorSeal } from './cursor.ts'
import type { Exchange } from './exchange.ts'
import type { Forwarder } from './forward.ts'
import type { OwnerRecords } from './owner-records.ts'
import { readAnswer, writtenAnew, type Rewritten, type Unread } from './rewriting.ts'

/** What the list works with. */
export interface ThreadListParts {
  readonly records: Pick<OwnerRecords, 'records'>
  readonly scope: string
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly forwarder: Forwarder
  readonly seal: CursorSeal
}

/** Gives the caller's list. */
export type ThreadList = (permit: Permit, exchange: Exchange, signal: AbortSignal) => Promise<Rewritten>

/** Bounds of one walk: a page in bytes, and pages for one request. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024
const MAX_PAGES = 20

/** Makes the list. */
export function makeThreadList(parts: ThreadListParts): ThreadList {
  /** What of one upstream page the caller may read; one store query for the page. */
  const reader = async (page: ThreadPage, permit: Permit): Promise<(id: string) => boolean> => {
    const ids = page.threads.map((thread) => thread.id).filter(isThreadId)
    const owners = await parts.records.records(parts.scope, ids, permit.principal)
    return (threadId) => {
      return isListed(threadId, owners.get(threadId) ?? null, permit.principal, parts.rules, parts.facts)
    }
  }

  /** Under `observe`: what the upstream gives, but for join codes; and how much of it enforcing would have hidden. */
  const observed: ThreadList = async (permit, exchange, signal) => {
    const answer = await parts.forwarder.ask(permit, exchange, signal)
    if (answer.outcome === 'answered' && answer.status !== 200) return { outcome: 'elsewise', answer }
    const read = await readAnswer(answer, MAX_PAGE_BYTES, 'upstream-list-unreadable')
    if (read.outcome !== 'read') return read
    const page = readThreadPage(read.value)
    if (page === null) return refuse('upstream-list-unreadable')
    const mayRead = await reader(page, permit)
    exchange.hidden = page.threads.filter(({ id }) => !mayRead(id)).length
    const passing = Object.entries(read.value as JsonObject).filter(([name]) => parts.facts.userScoped || !isJoinCode(name))
    return writtenAnew(Object.fromEntries(passing), 'upstream-list-unreadable')
  }

  const filtered: ThreadList = async (permit, exchange, signal) => {
    const query = permit.descriptor.query.filter(([name]) => name !== 'limit' && name !== 'cursor')
    const bound = [permit.principal.id, query]
    const limit = limitIn(permit.descriptor.query)
    if (limit === null) return refuse('query-limit-invalid')
    const start = readStart(permit, parts.seal, bound)
    if (start === null) return refuse('query-cursor-invalid')

    const gathering: Gathering = { items: [], limit }
    let joinCodes: ThreadPage['joinCodes'] = {}
    let place: Place | null = start
    for (let pages = 0; place !== null && pages < MAX_PAGES; pages += 1) {
      const page: ThreadPage | Unread = await fetchPage(parts.forwarder, permit, exchange, signal, query, place.page)
      if ('outcome' in page) return page
      if (pages === 0 && parts.facts.userScoped) joinCodes = page.joinCodes
      const rest = gather(page, place, await reader(page, permit), gathering)
      if (rest !== null) {
        place = rest
        break
      }
      place = page.next === null ? null : { page: page.next, offset: 0 }
    }
    // Nothing of the caller's is left as far as was walked: no cursor, which would only tell that others' threads follow.
    const nextCursor = place === null ? {} : { nextCursor: parts.seal.seal(place, bound) }
    return writtenAnew({ threads: gathering.items, ...nextCursor, ...joinCodes }, 'upstream-list-unreadable')
  }

  return parts.facts.enforcement === 'observe' ? observed : filtered
}

async function fetchPage(
  forwarder: Forwarder,
  permit: Permit,
  exchange: Exchange,
  signal: AbortSignal,
  query: readonly (readonly [string, string])[],
  cursor: string | null,
): Promise<ThreadPage | Unread> {
  const withCursor = cursor === null ? query : [...query, ['cursor', cursor] as const]
  const answer = await forwarder.ask(permit, exchange, signal, { query: withCursor })
  const read = await readAnswer(answer, MAX_PAGE_BYTES, 'upstream-list-unreadable')
  if (read.outcome !== 'read') return read
  return readThreadPage(read.value) ?? refuse('upstream-list-unreadable')
}

function readStart(permit: Permit, seal: CursorSeal, bound: readonly unknown[]): Place | null {
  const cursor = new Map(permit.descriptor.query).get('cursor')
  return cursor === undefined ? { page: null, offset: 0 } : seal.open(cursor, bound)
}
