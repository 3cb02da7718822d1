/**
 * One strict reading of a JSON text, as it comes. Whatever two parsers could read differently is refused: duplicate keys
 * at any level, `__proto__`, numbers that overflow, a byte order mark, trailing bytes, nesting deep enough to hurt
 * (contract §1.1, §3.1 #21; threats "The body"). What passes is re-serialised by the caller, so one reading is left.
 */
import { makeShape, stringsOf, type Shape } from './json-shape.ts'
import { refuse, type Refusal } from './reasons.ts'

/** A JSON value as JSON.parse gives it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

const NONE = new Uint8Array()

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** An object, with the text that it was read from. */
export interface JsonSource {
  readonly value: JsonObject
  readonly text: string
  /** True if the text is what JSON.stringify writes, but for the order of keys that are whole numbers. False may be said of such a one. */
  readonly asWritten: boolean
}

/** An object that was read; or why it was not: codes `body-malformed` and `body-too-large`. */
export type JsonReading = ({ readonly outcome: 'read' } & JsonSource) | Refusal

/** Reads one body. */
export interface JsonReader {
  /**
   * Takes the next bytes. What is hostile is refused here, before the rest has come; after a refusal the reader is done.
   * @returns a refusal, or null to go on
   */
  push(bytes: Uint8Array): Refusal | null
  /** About how many values came. */
  values(): number
  /** Reads what came as one JSON object. */
  end(): JsonReading
}

/** Makes the reader of one body. It holds the text that came, and not its bytes. */
export function makeJsonReader(): JsonReader {
  const shape = makeShape()
  const pieces: string[] = []
  let cut: Uint8Array = NONE
  return {
    push(bytes) {
      const whole = cut.length === 0 ? bytes : joined(cut, bytes)
      const over = cutCharacter(whole)
      cut = over === 0 ? NONE : whole.slice(-over)
      let piece: string
      try {
        piece = UTF8.decode(over === 0 ? whole : whole.subarray(0, -over))
      } catch {
        return refuse('body-not-utf8')
      }
      pieces.push(piece)
      return shape.take(piece)
    },
    values: () => shape.values(),
    end: () => (cut.length > 0 ? refuse('body-not-utf8') : parse(pieces.splice(0).join(''), shape)),
  }
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
  for (let back = 1; back <= 3; back += 1) {
    const byte = bytes.at(-back) ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

function parse(text: string, shape: Shape): JsonReading {
  let value: Json
  try {
    value = JSON.parse(text) as Json
    if (shape.hasEscapedKeys()) value = fromLists(JSON.parse(asLists(text)) as Listed)
  } catch {
    return refuse('body-not-json')
  }
  if (!isObject(value)) return refuse('body-not-object')
  const kept = { members: 0, areEscaped: shape.hasEscapedKeys() }
  const fault = countKeys(value, kept)
  if (fault !== null) return fault
  // An object keeps one of several equal keys: fewer keys than members means that the text had duplicates.
  if (kept.members !== shape.members()) return refuse('body-key-repeated')
  return { outcome: 'read', value, text, asWritten: shape.asWritten() }
}

/** A value whose objects are lists of keys and values in turn, behind a 0; lists stand behind a 1. */
type Listed = null | boolean | number | string | readonly Listed[]

/**
 * Writes the objects of a JSON text as lists. V8 may read a key with an escape as another key that it has seen before
 * (nodejs/node#63785), be it in another user's body; in a list a key is a text like any other, and none is misread.
 * @param text one that JSON.parse takes
 */
function asLists(text: string): string {
  const strings = stringsOf(text)
  let lists = ''
  let from = 0
  const replace = (at: number, by: string): void => {
    lists += text.slice(from, at) + by
    from = at + 1
  }
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '"') at = strings.endFrom(at + 1)
    else if (character === '{') replace(at, isEmptyAt(text, at + 1) ? '[0' : '[0,')
    else if (character === '[') replace(at, isEmptyAt(text, at + 1) ? '[1' : '[1,')
    else if (character === ':') replace(at, ',')
    else if (character === '}') replace(at, ']')
  }
  return lists + text.slice(from)
}

/** True if what comes next closes what was opened before. */
function isEmptyAt(text: string, at: number): boolean {
  const next = /[^ \t\n\r]/g
  next.lastIndex = at
  return /[}\]]/.test(String(next.exec(text)))
}

/** The value that asLists wrote as lists. Of equal keys one stays, as with JSON.parse. */
function fromLists(value: Listed): Json {
  if (typeof value !== 'object' || value === null) return value
  const [kind, ...items] = value
  if (kind === 1) return items.map(fromLists)
  const entries: (readonly [string, Json])[] = []
  for (let at = 0; at < items.length; at += 2) entries.push([items[at] as string, fromLists(items[at + 1] as Listed)])
  return Object.fromEntries(entries)
}

/**
 * Counts the keys of a parsed value at every level; refuses what re-serialising would change or a merge would obey, and halves of
 * surrogate pairs in keys: for some readers two such keys are one (RFC 8259 §8.2).
 */
function countKeys(value: Json, count: { members: number; readonly areEscaped: boolean }): Refusal | null {
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
    // UTF-8 has no such halves: they come by escapes alone.
    if (key === '__proto__' || (count.areEscaped && !key.isWellFormed())) return refuse('body-key-forbidden')
    count.members += 1
    const fault = countKeys(value[key] as Json, count)
    if (fault !== null) return fault
  }
  return null
}
