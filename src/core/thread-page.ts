/**
 * Rewriting of the upstream's thread list (design "Lists"). Only the parts named here leave the gateway: what else an
 * upstream writes beside the threads (counts, other people's codes) does not.
 */
import { isObject, type Json, type JsonObject } from './json.ts'

/** One page of the upstream's list, read. */
export interface ThreadPage {
  readonly threads: readonly { readonly id: string; readonly item: JsonObject }[]
  /** The upstream's cursor of the page after this, or null at the end. */
  readonly next: string | null
  /** Capabilities to subscribe with (contract §3.1 #26): they pass only where the upstream scopes users itself. */
  readonly joinCodes: JsonObject
}

/**
 * Reads a page of the upstream's list.
 * @param value the parsed answer
 * @returns the page, or null if this is no list of threads: an item without an id can't be decided
 */
export function readThreadPage(value: Json): ThreadPage | null {
  if (!isObject(value) || !Array.isArray(value['threads'])) return null
  const threads: { id: string; item: JsonObject }[] = []
  for (const item of value['threads'] as readonly Json[]) {
    if (!isObject(item) || typeof item['id'] !== 'string') return null
    threads.push({ id: item['id'], item })
  }
  const next = value['nextCursor'] ?? null
  if (next !== null && typeof next !== 'string') return null
  const codes = Object.entries(value).filter(([name, code]) => isJoinCode(name) && typeof code === 'string')
  return { threads, next: next === '' ? null : next, joinCodes: Object.fromEntries(codes) }
}

/** True for a name under which a list carries a capability to subscribe (contract §3.1 #26). */
export function isJoinCode(name: string): boolean {
  return name === 'joinCode' || name === 'joinToken'
}

/** A place in the upstream's pages: the cursor of a page (null for the first) and how many of its items are done. */
export interface Place {
  readonly page: string | null
  readonly offset: number
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

/**
 * Takes from a page what the caller may read, until the limit is full.
 * @param page the page, and the upstream cursor that named it
 * @param from the first item to look at
 * @param mayRead the decision for one thread id
 * @param gathering where the items go
 * @returns the place of the caller's first item that found no room, or null if all of the page was done
 */
export function gather(page: ThreadPage, from: Place, mayRead: (id: string) => boolean, gathering: Gathering): Place | null {
  for (const [at, thread] of page.threads.entries()) {
    if (at < from.offset || !mayRead(thread.id)) continue
    if (gathering.items.length >= gathering.limit) return { page: from.page, offset: at }
    gathering.items.push(thread.item)
  }
  return null
}
