/**
 * Rewriting of the upstream's thread list (docs/how-it-works.md, "Lists"). Only the parts named here leave the gateway: what else an
 * upstream writes beside the threads (counts, other people's codes) does not.
 */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { parsedInPieces } from '../json/pieces.ts'
import type { Steps } from '../json/steps.ts'

/** The member of a page that holds its threads. */
export const THREADS = 'threads'

/** A thread on a page: where it stands among the others, from 0 on, and what the upstream says of it. */
export interface PageThread {
  readonly id: string
  readonly at: number
  readonly item: JsonObject
}

/** One page of the upstream's list, read. */
export interface ThreadPage {
  /** Those that are wanted, in their order. */
  readonly threads: readonly PageThread[]
  /** The upstream's cursor of the page after this, or null at the end. */
  readonly next: string | null
  /** Capabilities to subscribe with (runtime-behaviour.md, "What the runtime does not check"): they pass only where the upstream scopes users itself. */
  readonly joinCodes: JsonObject
}

/** True for a thread that is to be kept, by its id and where it stands on the page. */
export type Wanted = (id: string, at: number) => boolean

/**
 * Reads a page of the upstream's list.
 * @param value the parsed answer
 * @returns the page, or null if this is no list of threads: an item without an id can't be decided
 */
export function readThreadPage(value: Json): ThreadPage | null {
  return isList(value)
    ? pageOf(
        value,
        value[THREADS],
        makeKeeper(() => true),
      )
    : null
}

/**
 * Reads a page that may be long, in steps.
 * @param bytes of the answer
 * @param wanted which threads are kept; all have to be such as can be decided
 * @returns steps, between which others may have their turn; at the end the page, or null as above
 */
export function* threadPageIn(bytes: Uint8Array, wanted: Wanted): Steps<ThreadPage | null> {
  const reading = parsedInPieces(bytes, THREADS)
  const kept = makeKeeper(wanted)
  for (;;) {
    const { done, value } = reading.next()
    if (done !== true) {
      kept.take(value)
      yield
    } else if (!isList(value.value)) return null
    else return pageOf(value.value, value.value[THREADS], value.goesOn ? kept : makeKeeper(wanted))
  }
}

/**
 * Reads all of a page that may be long, in steps.
 * @returns what JSON.parse makes of it, or undefined for what is no JSON
 */
export function* wholePageIn(bytes: Uint8Array): Steps<Json | undefined> {
  const reading = parsedInPieces(bytes, THREADS)
  const items: Json[] = []
  for (;;) {
    const { done, value } = reading.next()
    if (done !== true) {
      for (const item of value) items.push(item)
      yield
    } else if (!value.goesOn || !isList(value.value)) return value.value
    else return { ...value.value, [THREADS]: [...items, ...value.value[THREADS]] }
  }
}

interface List extends JsonObject {
  readonly [THREADS]: readonly Json[]
}

function isList(value: Json | undefined): value is List {
  return isObject(value) && Array.isArray(value[THREADS])
}

/** Keeps of a page's items what is wanted. */
function makeKeeper(wanted: Wanted) {
  const threads: PageThread[] = []
  let count = 0
  let isDecidable = true
  return {
    take(items: readonly Json[]): void {
      for (const item of items) {
        const id = isObject(item) ? item['id'] : undefined
        if (!isObject(item) || typeof id !== 'string') isDecidable = false
        else if (wanted(id, count)) threads.push({ id, at: count, item })
        count += 1
      }
    },
    threads: (): readonly PageThread[] | null => (isDecidable ? threads : null),
  }
}

function pageOf(value: JsonObject, rest: readonly Json[], keeper: ReturnType<typeof makeKeeper>): ThreadPage | null {
  keeper.take(rest)
  const threads = keeper.threads()
  const next = value['nextCursor'] ?? null
  if (threads === null || (next !== null && typeof next !== 'string')) return null
  const codes = Object.entries(value).filter(([name, code]) => isJoinCode(name) && typeof code === 'string')
  return { threads, next: next === '' ? null : next, joinCodes: Object.fromEntries(codes) }
}

/** True for a name under which a list carries a capability to subscribe (runtime-behaviour.md, "What the runtime does not check"). */
export function isJoinCode(name: string): boolean {
  return name === 'joinCode' || name === 'joinToken'
}

/** A place in the upstream's pages: the cursor of a page (null for the first) and how many of its items are done. */
export interface Place {
  readonly page: string | null
  readonly offset: number
  /** The caller's threads on both sides of it: the last that was given, and the next one. Not in cursors of earlier versions. */
  readonly between?: readonly [last: string, next: string]
}

/**
 * Where to go on in a page. It may have changed since the place was noted: what stood before it is gone, or more than that stands
 * there now. Then the place is where the next thread stands, or behind the last that was given, if the next one is gone or moved up.
 * @param threads of the page, the caller's among them
 */
export function startIn(threads: readonly PageThread[], { offset, between }: Place): number {
  if (between === undefined) return offset
  const [lastId, nextId] = between
  if (threads.some(({ id, at }) => at === offset && id === nextId)) return offset
  const placeOf = (known: string): number => threads.find(({ id }) => id === known)?.at ?? -1
  const [last, next] = [placeOf(lastId), placeOf(nextId)]
  if (last === -1 && next === -1) return offset
  return next > last ? next : last + 1
}

/** Items of a page where the caller names no limit, and the most that one may name. */
const MAX_LIMIT = 1000

/**
 * How many items a caller wants.
 * @param query of the request
 * @returns null for a limit that is none
 */
export function limitIn(query: readonly (readonly [string, string])[]): number | null {
  const text = new Map(query).get('limit')
  if (text === undefined) return MAX_LIMIT
  return /^[1-9]\d{0,5}$/.test(text) ? Math.min(Number(text), MAX_LIMIT) : null
}

/** What a walk over the upstream's pages has gathered. */
export interface Gathering {
  readonly items: JsonObject[]
  readonly limit: number
}

/** What a runtime may write of a thread's owner into a record of it (runtime-behaviour.md, "Routes"), and what others call the same. */
const OWNER_FIELDS: ReadonlySet<string> = new Set(['createdBy', 'owner', 'ownerId', 'user', 'userId'])

/**
 * The record of a thread for somebody with whom it was shared: whose it is, is not for them. `createdById` is in every record; it
 * is empty then, as the runtime in memory leaves it.
 */
export function withoutOwner(item: JsonObject): JsonObject {
  const kept = Object.entries(item).filter(([name]) => !OWNER_FIELDS.has(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, name === 'createdById' ? '' : value]))
}

/** Whether a caller gets to see a thread of a list, or all of it but whose it is. */
export type Showing = boolean | 'without-owner'

/**
 * Takes from some threads of a page what the caller may read, until the limit is full.
 * @param showing the decision for each of the threads
 * @param gathering where the items go
 * @returns the caller's first thread that found no room, or null if all had it
 */
export function gather(threads: readonly PageThread[], showing: readonly Showing[], gathering: Gathering): PageThread | null {
  for (const [which, thread] of threads.entries()) {
    const how = showing[which] ?? false
    if (how === false) continue
    if (gathering.items.length >= gathering.limit) return thread
    gathering.items.push(how === true ? thread.item : withoutOwner(thread.item))
  }
  return null
}
