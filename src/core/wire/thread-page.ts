/** Rewrites the upstream's thread list (docs/explanation/lists-and-streams.md, "Lists"). Only the parts named here leave the gateway. */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { parsedInPieces } from '../json/pieces.ts'
import type { Steps } from '../json/steps.ts'

export const THREADS = 'threads'

/** `at` counts from 0; `item` is the upstream's record. */
export interface PageThread {
  readonly id: string
  readonly at: number
  readonly item: JsonObject
}

export interface ThreadPage {
  readonly threads: readonly PageThread[]
  readonly next: string | null
  /**
   * Capabilities to subscribe (runtime-behaviour.md, "What the runtime does not check"). They pass only if the upstream scopes
   * users itself.
   */
  readonly joinCodes: JsonObject
}

export type Wanted = (id: string, at: number) => boolean

/** @returns null for no list of threads: the gateway cannot decide an item without an id */
export function readThreadPage(value: Json): ThreadPage | null {
  return isList(value)
    ? pageOf(
        value,
        value[THREADS],
        makeKeeper(() => true),
      )
    : null
}

/** @param wanted which threads are kept; the gateway must be able to decide the others too */
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

interface List extends JsonObject {
  readonly [THREADS]: readonly Json[]
}

function isList(value: Json | undefined): value is List {
  return isObject(value) && Array.isArray(value[THREADS])
}

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

/** See runtime-behaviour.md, "What the runtime does not check". */
export function isJoinCode(name: string): boolean {
  return name === 'joinCode' || name === 'joinToken'
}

/** The cursor is null for the first page; `offset` counts the items of the page that are done. */
export interface Place {
  readonly page: string | null
  readonly offset: number
  /** The caller's threads around the place. Cursors of earlier versions lack it. */
  readonly between?: readonly [last: string, next: string]
}

/** The page may have changed since. Finds the next thread or, if that is gone or moved up, the place behind the last one. */
export function startIn(threads: readonly PageThread[], { offset, between }: Place): number {
  if (between === undefined) return offset
  const [lastId, nextId] = between
  if (threads.some(({ id, at }) => at === offset && id === nextId)) return offset
  const placeOf = (known: string): number => threads.find(({ id }) => id === known)?.at ?? -1
  const [last, next] = [placeOf(lastId), placeOf(nextId)]
  if (last === -1 && next === -1) return offset
  return next > last ? next : last + 1
}

const MAX_LIMIT = 1000

/** @returns null for an invalid limit */
export function limitIn(query: readonly (readonly [string, string])[]): number | null {
  const text = new Map(query).get('limit')
  if (text === undefined) return MAX_LIMIT
  return /^[1-9]\d{0,5}$/.test(text) ? Math.min(Number(text), MAX_LIMIT) : null
}

export interface Gathering {
  readonly items: JsonObject[]
  readonly limit: number
}

/** Fields in which a runtime may write an owner (runtime-behaviour.md, "Routes"), and other names for the same. */
const OWNER_FIELDS: ReadonlySet<string> = new Set(['createdBy', 'owner', 'ownerId', 'user', 'userId'])

/** Every record has `createdById`: it becomes empty, as the in-memory runtime leaves it. */
export function withoutOwner(item: JsonObject): JsonObject {
  const kept = Object.entries(item).filter(([name]) => !OWNER_FIELDS.has(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, name === 'createdById' ? '' : value]))
}

export type Showing = boolean | 'without-owner'

/** @returns the caller's first thread that found no room, or null if all found room */
export function gather(threads: readonly PageThread[], showing: readonly Showing[], gathering: Gathering): PageThread | null {
  for (const [which, thread] of threads.entries()) {
    const how = showing[which] ?? false
    if (how === false) continue
    if (gathering.items.length >= gathering.limit) return thread
    gathering.items.push(how === true ? thread.item : withoutOwner(thread.item))
  }
  return null
}
