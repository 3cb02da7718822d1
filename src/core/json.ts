/**
 * One strict reading of a JSON text, as it comes. Whatever two parsers could read differently is refused: duplicate keys
 * at any level, `__proto__`, numbers that overflow, a byte order mark, trailing bytes, nesting deep enough to hurt
 * (contract §1.1, §3.1 #21; threats "The body"). What passes is re-serialised by the caller, so one reading is left.
 */
import { refuse, type Refusal } from './reasons.ts'

/** A JSON value as JSON.parse gives it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

/** How many values a body may hold: each costs far more than its bytes, and `{},` sixteen times more. */
export const MAX_VALUES = 250_000

/** How deep arrays and objects may nest: agents' states stay far below, a stack overflow begins at thousands. */
export const MAX_DEPTH = 128

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The longest escape, `\u005c`: one that is cut off by the end of a piece waits for the next. */
const ESCAPE_LENGTH = 6

/** An object that was read, or why it was not: codes `body-malformed` and `body-too-large`. */
export type JsonReading = { readonly outcome: 'read'; readonly value: JsonObject } | Refusal

/** Reads one body. */
export interface JsonReader {
  /**
   * Takes the next bytes. What is hostile is refused here, before the rest has come; after a refusal the reader is done.
   * @returns a refusal, or null to go on
   */
  push(bytes: Uint8Array): Refusal | null
  /** Reads what came as one JSON object. */
  end(): JsonReading
}

/** Makes the reader of one body. It holds the text that came, and not its bytes. */
export function makeJsonReader(): JsonReader {
  const shape = makeShape()
  const pieces: string[] = []
  let cut = new Uint8Array()
  return {
    push(bytes) {
      const whole = cut.length === 0 ? bytes : joined(cut, bytes)
      const length = whole.length - cutCharacter(whole)
      cut = whole.slice(length)
      try {
        pieces.push(UTF8.decode(whole.subarray(0, length)))
      } catch {
        return refuse('body-not-utf8')
      }
      return shape.take(pieces.at(-1) as string)
    },
    end: () => (cut.length > 0 ? refuse('body-not-utf8') : parse(pieces.splice(0).join(''), shape)),
  }
}

/**
 * Reads the bytes of a request body as one JSON object.
 * @param bytes the whole body
 */
export function readJsonObject(bytes: Uint8Array): JsonReading {
  const reader = makeJsonReader()
  return reader.push(bytes) ?? reader.end()
}

/** True for a JSON object: no array, no null. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}

/** How many bytes at the end begin a character that goes on behind it (RFC 3629 §3). */
function cutCharacter(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] as number
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

function parse(text: string, shape: Shape): JsonReading {
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch {
    return refuse('body-not-json')
  }
  if (!isObject(value)) return refuse('body-not-object')
  const kept = { members: 0, withBackslash: 0 }
  const fault = countKeys(value, kept)
  if (fault !== null) return fault
  // JSON.parse keeps one of several equal keys: fewer keys than members means that the text had duplicates.
  if (kept.members !== shape.members()) return refuse('body-key-repeated')
  // V8 may read an escaped key as another one that it saw before with its backslash (nodejs/node#63785); what it then
  // gives has a backslash that the key in the text doesn't stand for, and could hide a duplicate.
  if (kept.withBackslash !== shape.withBackslash()) return refuse('body-key-misread')
  return { outcome: 'read', value }
}

/** What a JSON text holds, counted without parsing it. For a text that is not JSON the counts mean nothing. */
interface Shape {
  /** Takes the next piece; bounds depth and number of values before anything recursive or costly sees them. */
  take(piece: string): Refusal | null
  /** Object members at every level, that is colons outside strings. */
  members(): number
  /** Those whose key holds a backslash once its escapes are read. */
  withBackslash(): number
}

function makeShape(): Shape {
  let members = 0
  let withBackslash = 0
  let depth = 0
  let values = 0
  let inString = false
  /** Whether the string that was read last, or is being read, stands for one with a backslash. */
  let backslash = false
  let cut = ''
  /** Where the next backslash of the piece is: looked for once, not once a string. */
  let escape = 0

  /** Reads a string on from a place; gives the place of its closing quote, or the end of the text. */
  const string = (text: string, from: number): number => {
    let at = from
    let quote = indexFrom(text, '"', at)
    if (escape < at) escape = indexFrom(text, '\\', at)
    while (escape < quote) {
      if (text.length - escape < ESCAPE_LENGTH) {
        cut = text.slice(escape)
        return text.length
      }
      backslash ||= standsForBackslash(text, escape)
      at = escape + 2
      if (quote < at) quote = indexFrom(text, '"', at)
      escape = indexFrom(text, '\\', at)
    }
    if (quote < text.length) inString = false
    return quote
  }

  return {
    members: () => members,
    withBackslash: () => withBackslash,
    take(piece) {
      const text = cut + piece
      cut = ''
      escape = indexFrom(text, '\\', 0)
      for (let at = inString ? string(text, 0) + 1 : 0; at < text.length; at += 1) {
        switch (text.charCodeAt(at)) {
          case 0x22: // "
            inString = true
            backslash = false
            at = string(text, at + 1)
            break
          case 0x3a: // :
            members += 1
            if (backslash) withBackslash += 1
            break
          case 0x2c: // ,
            values += 1
            break
          case 0x7b: // {
          case 0x5b: // [
            depth += 1
            values += 1
            if (depth > MAX_DEPTH) return refuse('body-too-deep')
            break
          case 0x7d: // }
          case 0x5d: // ]
            depth -= 1
            break
        }
        if (values > MAX_VALUES) return refuse('body-too-many-values')
      }
      return null
    },
  }
}

/** The index of a character from a place on, or the text's length. */
function indexFrom(text: string, character: string, at: number): number {
  const index = text.indexOf(character, at)
  return index === -1 ? text.length : index
}

/** True if the escape at this place stands for a backslash (RFC 8259 §7). */
function standsForBackslash(text: string, at: number): boolean {
  return text[at + 1] === '\\' || text.slice(at + 1, at + ESCAPE_LENGTH).toLowerCase() === 'u005c'
}

/** Counts the keys of a parsed value at every level; refuses what re-serialising would change or a merge would obey. */
function countKeys(value: Json, count: { members: number; withBackslash: number }): Refusal | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : refuse('body-number-out-of-range')
  if (typeof value !== 'object' || value === null) return null
  if (!isObject(value)) {
    for (const item of value) {
      const fault = countKeys(item, count)
      if (fault !== null) return fault
    }
    return null
  }
  for (const key of Object.keys(value)) {
    if (key === '__proto__') return refuse('body-key-forbidden')
    count.members += 1
    if (key.includes('\\')) count.withBackslash += 1
    const fault = countKeys(value[key] as Json, count)
    if (fault !== null) return fault
  }
  return null
}
