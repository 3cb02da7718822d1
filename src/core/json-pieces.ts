/**
 * Reading of a large JSON object with a long list in it, piece by piece: between two pieces other requests get their turn, and
 * whoever wants little of the list holds no more of it. What comes of it is what JSON.parse makes of the text.
 */
import { isObject, type Json } from './json.ts'

const PIECE = 64 * 1024

/** The name that the rest of the list has while it is read. */
const REST = 'the rest of the list'

/** How many pieces may be parsed in vain, besides as many as were parsed to a purpose. */
const MOST_IN_VAIN = 8

// What JSON.parse sees of bytes: a byte order mark stays, and what is no UTF-8 is read as U+FFFD.
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** What comes behind the pieces. */
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
  const first = head.exec(UTF8.decode(bytes.subarray(0, piece)))?.[0]
  let pieces = 0
  // Up to the list there are characters of one byte only.
  let from = first === undefined ? bytes.length : first.length
  let length = piece
  let inVain = 0
  while (bytes.length - from > 2 * length && inVain <= from + MOST_IN_VAIN * piece) {
    const gap = gapBehind(bytes, from + length)
    if (gap === null) break
    // The gap may lie within a string, or an item. What is read from the left has one reading: if all up to the gap is a list,
    // an item ends there and the next one begins behind it; if not, this is no list, and a later gap is tried.
    const some = parsed(`[${UTF8.decode(bytes.subarray(from, gap.end))}]`)
    if (Array.isArray(some)) {
      pieces += 1
      from = gap.next
      length = piece
      yield some as readonly Json[]
    } else {
      inVain += gap.end - from
      length *= 2
      yield []
    }
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

/** The next place where one object ends and another begins behind a comma: where the one ends, and where the other begins. */
function gapBehind(bytes: Uint8Array, at: number): { readonly end: number; readonly next: number } | null {
  for (let brace = bytes.indexOf(0x7d, at); brace !== -1; brace = bytes.indexOf(0x7d, brace + 1)) {
    const comma = behindSpace(bytes, brace + 1)
    if (bytes[comma] !== 0x2c) continue
    const next = behindSpace(bytes, comma + 1)
    if (bytes[next] === 0x7b) return { end: brace + 1, next }
  }
  return null
}

function behindSpace(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
  return at
}
