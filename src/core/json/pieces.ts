/** Reads a large JSON object with a long list piece by piece: other requests run in between. The result is JSON.parse's. */
import { isObject, type Json } from './read.ts'
import type { Steps } from './steps.ts'

const PIECE = 64 * 1024

const MOST_BRACES = 4096

/** The name of the rest of the list while it is read. No text has a member of that name. */
const REST = `the rest of the list ${crypto.randomUUID()}`

// As JSON.parse sees bytes: a byte order mark stays, and other bytes than UTF-8 become U+FFFD.
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })

export interface Rest {
  /** The value, or undefined if the text is not JSON. */
  readonly value: Json | undefined
  /** True if its list continues where the last piece ended. False if it holds the whole list, and the pieces mean nothing. */
  readonly goesOn: boolean
}

/** Reads in pieces of about `piece` bytes, but only if `list` is the first member and long; otherwise at once. */
export function* parsedInPieces(bytes: Uint8Array, list: string, piece = PIECE): Generator<readonly Json[], Rest, void> {
  const head = new RegExp(`^[ \\t\\r\\n]*\\{[ \\t\\r\\n]*"${list}"[ \\t\\r\\n]*:[ \\t\\r\\n]*\\[`)
  const first = head.exec(UTF8.decode(bytes.subarray(0, PIECE)))?.[0]
  let pieces = 0
  // Up to the list all characters are single bytes.
  let from = first === undefined ? bytes.length : first.length
  let isGuessing = true
  while (bytes.length - from > 2 * piece) {
    // A guess is very cheap. After a wrong guess every guess may be wrong: callers choose the names of threads.
    const gap = (isGuessing ? gapBehind : gapBetween)(bytes, from + piece, from)
    if (gap === null && isGuessing) {
      isGuessing = false
      yield []
      continue
    }
    if (gap === null) break
    // The gap may lie within a string or an item. Text from the left has a single reading: if all text up to the gap is a list,
    // an item ends there. Otherwise this is no list, or the guess was wrong.
    const some = parsed(`[${UTF8.decode(bytes.subarray(from, gap.end))}]`)
    if (Array.isArray(some) && some.length > 0) {
      pieces += 1
      from = gap.next
      yield some as readonly Json[]
    } else if (isGuessing) {
      isGuessing = false
      yield []
    } else break
  }
  const rest = pieces === 0 ? undefined : parsed(`{"${REST}":[${UTF8.decode(bytes.subarray(from))}`)
  const last = isObject(rest) ? rest[REST] : undefined
  // If this is no such list, or there are two lists of which JSON.parse would take the second, the text is read at once.
  if (!isObject(rest) || !Array.isArray(last) || Object.hasOwn(rest, list))
    return { value: parsed(UTF8.decode(bytes)), goesOn: false }
  const others = Object.entries(rest).filter(([name]) => name !== REST)
  return { value: Object.fromEntries<Json>([[list, last as readonly Json[]], ...others]), goesOn: true }
}

/** @returns what JSON.parse makes of it, or undefined if it is not JSON */
export function* parsedInSteps(bytes: Uint8Array, list: string): Steps<Json | undefined> {
  const reading = parsedInPieces(bytes, list)
  const items: Json[] = []
  for (;;) {
    const { done, value } = reading.next()
    if (done !== true) {
      for (const item of value) items.push(item)
      yield
      continue
    }
    const last = value.goesOn && isObject(value.value) ? value.value[list] : undefined
    if (!isObject(value.value) || !Array.isArray(last)) return value.value
    for (const item of last as readonly Json[]) items.push(item)
    return { ...value.value, [list]: items }
  }
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

interface Gap {
  readonly end: number
  readonly next: number
}

/** @returns null if no such place is near: a name may consist of ends of objects */
function gapBehind(bytes: Uint8Array, at: number): Gap | null {
  let brace = bytes.indexOf(0x7d, at)
  for (let braces = 0; brace !== -1 && braces < MOST_BRACES; braces += 1, brace = bytes.indexOf(0x7d, brace + 1)) {
    const comma = behindSpace(bytes, brace + 1)
    if (bytes[comma] !== 0x2c) continue
    const next = behindSpace(bytes, comma + 1)
    if (bytes[next] === 0x7b) return { end: brace + 1, next }
  }
  return null
}

function gapBetween(bytes: Uint8Array, behind: number, from: number): Gap | null {
  let depth = 0
  for (let at = from; at < bytes.length; at += 1) {
    switch (bytes[at] as number) {
      case 0x22: // "
        at = endOfString(bytes, at + 1)
        break
      case 0x7b: // {
      case 0x5b: // [
        depth += 1
        break
      case 0x7d: // }
      case 0x5d: // ]
        depth -= 1
        if (depth < 0) return null
        break
      case 0x2c: // ,
        if (depth === 0 && at >= behind) {
          const next = behindSpace(bytes, at + 1)
          // A comma with nothing behind it does not belong to a list.
          return bytes[next] === 0x5d ? null : { end: at, next }
        }
        break
    }
  }
  return null
}

/** @returns the place of the quote that ends the string around a place, or a place behind the text */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== 0x22) at += bytes[at] === 0x5c ? 2 : 1
  return at
}

function behindSpace(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
  return at
}
