/**
 * Reading of a large JSON object with a long list in it, piece by piece: between two pieces other requests get their turn, and
 * whoever wants little of the list holds no more of it. What comes of it is what JSON.parse makes of the text.
 */
import { isObject, type Json } from './read.ts'

const PIECE = 64 * 1024

/** A guess looks at so many ends of objects at most. */
const MOST_BRACES = 4096

/** The name that the rest of the list has while it is read: no text has a member of that name. */
const REST = `the rest of the list ${crypto.randomUUID()}`

// What JSON.parse sees of bytes: a byte order mark stays, and what is no UTF-8 is read as U+FFFD.
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })

export interface Rest {
  /** The value, or undefined for what is no JSON. */
  readonly value: Json | undefined
  /** True if its list goes on where the last piece ended; false if it holds all of it, and the pieces mean nothing. */
  readonly goesOn: boolean
}

/**
 * Parses a JSON text.
 * @param bytes the text in UTF-8
 * @param list the name of a member that holds a list of objects. If it is the first one and its list is long, the text is
 * read in pieces; else at once
 * @param piece about how many bytes are parsed at once
 * @returns the items of the list, piece by piece, and at the end the rest
 */
export function* parsedInPieces(bytes: Uint8Array, list: string, piece = PIECE): Generator<readonly Json[], Rest, void> {
  const head = new RegExp(`^[ \\t\\r\\n]*\\{[ \\t\\r\\n]*"${list}"[ \\t\\r\\n]*:[ \\t\\r\\n]*\\[`)
  const first = head.exec(UTF8.decode(bytes.subarray(0, PIECE)))?.[0]
  let pieces = 0
  // Up to the list there are characters of one byte only.
  let from = first === undefined ? bytes.length : first.length
  let isGuessing = true
  while (bytes.length - from > 2 * piece) {
    // A guess costs next to nothing. Where it was wrong once, it may be so everywhere: callers choose the names of threads.
    const gap = (isGuessing ? gapBehind : gapBetween)(bytes, from + piece, from)
    if (gap === null && isGuessing) {
      isGuessing = false
      yield []
      continue
    }
    if (gap === null) break
    // The gap may lie within a string, or an item. What is read from the left has one reading: if all up to the gap is a list,
    // an item ends there and the next one begins behind it; if not, this is no list, or the guess was wrong.
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
  // Where this is no such list, or of two lists that JSON.parse would take the second of, the text is read at once.
  if (!isObject(rest) || !Array.isArray(last) || Object.hasOwn(rest, list))
    return { value: parsed(UTF8.decode(bytes)), goesOn: false }
  const others = Object.entries(rest).filter(([name]) => name !== REST)
  return { value: Object.fromEntries<Json>([[list, last as readonly Json[]], ...others]), goesOn: true }
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Where one item ends, and where the next one begins. */
interface Gap {
  readonly end: number
  readonly next: number
}

/**
 * The next place that looks as if one object ended and another began behind a comma.
 * @returns null where it is not near: a name may be nothing but ends of objects
 */
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

/** The next place where an item ends and another begins, found by all that stands before it from the beginning of an item on. */
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
          // A comma that nothing comes behind is none of a list.
          return bytes[next] === 0x5d ? null : { end: at, next }
        }
        break
    }
  }
  return null
}

/** The place of the quote that ends the string which this is a place in, or one behind the text. */
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
