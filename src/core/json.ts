/**
 * One strict reading of a JSON text. Whatever two parsers could read differently is refused: duplicate keys at any
 * level, `__proto__`, numbers that overflow, a byte order mark, trailing bytes, nesting deep enough to hurt
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

/** Keys beyond this are not looked at for escapes: they hold no name that anything here knows. */
const MAX_KEY_LENGTH = 65_536

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads the bytes of a request body as one JSON object.
 * @param bytes the whole body
 * @returns the object, or a refusal whose code is `body-malformed`
 */
export function readJsonObject(bytes: Uint8Array): { readonly outcome: 'read'; readonly value: JsonObject } | Refusal {
  let text: string
  try {
    text = UTF8.decode(bytes)
  } catch {
    return refuse('body-not-utf8')
  }
  const shape = scan(text)
  if ('outcome' in shape) return shape
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
  if (kept.members !== shape.members) return refuse('body-key-repeated')
  // V8 may read an escaped key as another one that it saw before with its backslash (nodejs/node#63785); what it then
  // gives has a backslash that the key in the text doesn't stand for, and could hide a duplicate.
  if (kept.withBackslash !== shape.withBackslash) return refuse('body-key-misread')
  return { outcome: 'read', value }
}

/** True for a JSON object: no array, no null. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface Shape {
  /** Object members, at every level. */
  readonly members: number
  /** Those whose key holds a backslash once its escapes are read. */
  readonly withBackslash: number
}

/**
 * Counts the object members of a JSON text, that is its colons outside strings, and bounds depth and number of values
 * before anything recursive or costly sees it. For a text that is not JSON the counts mean nothing, and JSON.parse
 * refuses it next.
 */
function scan(text: string): Shape | Refusal {
  let members = 0
  let withBackslash = 0
  let depth = 0
  let values = 0
  let backslashKey = false
  let escape = text.indexOf('\\')
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(text, at)
        while (escape !== -1 && escape < at) escape = text.indexOf('\\', at)
        // Only escaped keys can be misread; a key is short, a value may be megabytes.
        const escaped = escape !== -1 && escape < end && end - at < MAX_KEY_LENGTH
        backslashKey = escaped && standsForBackslash(text.slice(at + 1, end))
        at = end
        break
      }
      case 0x3a: // :
        members += 1
        if (backslashKey) withBackslash += 1
        backslashKey = false
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
  return { members, withBackslash }
}

/** True if one of the escapes in the text of a string is that of a backslash (RFC 8259 §7). */
function standsForBackslash(raw: string): boolean {
  for (let at = raw.indexOf('\\'); at !== -1; at = raw.indexOf('\\', at + 2)) {
    if (raw[at + 1] === '\\' || raw.slice(at + 1, at + 6).toLowerCase() === 'u005c') return true
  }
  return false
}

/** The index of the quote that ends the string beginning at `start`, or the text's length. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes += 1
    if (slashes % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
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
