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

/** How deep arrays and objects may nest: agents' states stay far below, a stack overflow begins at thousands. */
export const MAX_DEPTH = 128

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
  const members = countMembers(text)
  if (members === null) return refuse('body-too-deep')
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch {
    return refuse('body-not-json')
  }
  if (!isObject(value)) return refuse('body-not-object')
  const kept = countKeys(value)
  if (typeof kept !== 'number') return kept
  // JSON.parse keeps one of several equal keys: fewer keys than members means that the text had duplicates.
  if (kept !== members) return refuse('body-key-repeated')
  return { outcome: 'read', value }
}

/** True for a JSON object: no array, no null. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Counts the object members of a JSON text, that is its colons outside strings, and bounds its depth before anything
 * recursive sees it. For a text that is not JSON the count means nothing, and JSON.parse refuses it next.
 * @returns the count, or null if the text nests deeper than MAX_DEPTH
 */
function countMembers(text: string): number | null {
  let members = 0
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22: {
        at = endOfString(text, at)
        break
      }
      case 0x3a: // :
        members += 1
        break
      case 0x7b: // {
      case 0x5b: // [
        depth += 1
        if (depth > MAX_DEPTH) return null
        break
      case 0x7d: // }
      case 0x5d: // ]
        depth -= 1
        break
    }
  }
  return members
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
function countKeys(value: Json): number | Refusal {
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : refuse('body-number-out-of-range')
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (!isObject(value)) {
    for (const item of value) {
      const inner = countKeys(item)
      if (typeof inner !== 'number') return inner
      count += inner
    }
    return count
  }
  for (const key of Object.keys(value)) {
    if (key === '__proto__') return refuse('body-key-forbidden')
    const inner = countKeys(value[key] as Json)
    if (typeof inner !== 'number') return inner
    count += 1 + inner
  }
  return count
}
