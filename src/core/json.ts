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
  const kept = { members: 0 }
  const fault = countKeys(value, kept)
  if (fault !== null) return fault
  // An object keeps one of several equal keys: fewer keys than members means that the text had duplicates.
  if (kept.members !== shape.members()) return refuse('body-key-repeated')
  return { outcome: 'read', value, text, asWritten: shape.asWritten() }
}

/** What a JSON text holds, counted without parsing it. For a text that is not JSON the counts mean nothing. */
interface Shape {
  /** Takes the next piece; bounds depth and number of values before anything recursive or costly sees them. */
  take(piece: string): Refusal | null
  /** Object members at every level, that is colons outside strings. */
  members(): number
  /** True if a key is written with an escape. */
  hasEscapedKeys(): boolean
  /** False if anything stands otherwise than JSON.stringify writes it, or may do so. */
  asWritten(): boolean
}

function makeShape(): Shape {
  let members = 0
  let escapedKeys = false
  let depth = 0
  let values = 0
  let inString = false
  /** Whether the string that was read last, or is being read, has an escape. */
  let escaped = false
  /** Whether the piece before ended within an escape. */
  let cut = false
  let asWritten = true

  return {
    members: () => members,
    hasEscapedKeys: () => escapedKeys,
    asWritten: () => asWritten,
    take(text) {
      if (text === '') return null
      // The first character may belong to an escape that the piece before began.
      const start = cut ? 1 : 0
      const strings = stringsOf(text, start)
      const string = (from: number): number => {
        const end = strings.endFrom(from)
        escaped ||= strings.escaped()
        asWritten &&= strings.asWritten()
        cut = strings.cut()
        inString = end === text.length
        return end
      }
      for (let at = inString ? string(start) + 1 : 0; at < text.length; at += 1) {
        const code = text.charCodeAt(at)
        switch (code) {
          case 0x22: // "
            escaped = false
            at = string(at + 1)
            break
          case 0x5c: // \\ stands in strings alone
            return refuse('body-not-json')
          case 0x3a: // :
            members += 1
            escapedKeys ||= escaped
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
          default:
            if (isSpace(code)) asWritten = false
            else if (isNumberStart(code)) {
              const end = numberEnd(text, at)
              // One that goes on in the next piece is not known as a whole.
              asWritten &&= end < text.length && isPlainNumber(text.slice(at, end))
              at = end - 1
            }
        }
        if (values > MAX_VALUES) return refuse('body-too-many-values')
      }
      return null
    },
  }
}

/** JSON's white space (RFC 8259 §2). */
export function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** True for what a number begins with. */
export function isNumberStart(code: number): boolean {
  return code === 0x2d || (code >= 0x30 && code <= 0x39)
}

const NUMBER = /[0-9.eE+-]+/y

/** Where the number ends that begins there. */
export function numberEnd(text: string, at: number): number {
  NUMBER.lastIndex = at
  return NUMBER.test(text) ? NUMBER.lastIndex : at
}

/** True for a number that JSON.stringify writes as it stands; with more digits it may not. */
export function isPlainNumber(digits: string): boolean {
  return /^(?:0|-?[1-9][0-9]{0,14})$/.test(digits)
}

/** Finds where the strings of a text end. */
export interface Strings {
  /** The place of the quote that ends the string which this is a place in, or the text's length. */
  endFrom(at: number): number
  /** True if the string that was read last has an escape, from there on. */
  escaped(): boolean
  /** True if its last escape goes on behind the text. */
  cut(): boolean
  /** True if its escapes are those that JSON.stringify writes for what they stand for, as far as these are not control characters. */
  asWritten(): boolean
}

/** What JSON.stringify writes behind a backslash, but for control characters: `"`, `\`, b, f, n, r, t. */
const OWN_ESCAPES: ReadonlySet<number> = new Set([0x22, 0x5c, 0x62, 0x66, 0x6e, 0x72, 0x74])

/** Strings are read in their order. Backslashes are looked for once, not once a string. */
export function stringsOf(text: string, start: number): Strings {
  let escape = indexFrom(text, '\\', start)
  let escaped = false
  let cut = false
  let asWritten = true
  return {
    escaped: () => escaped,
    cut: () => cut,
    asWritten: () => asWritten,
    endFrom(at) {
      escaped = false
      asWritten = true
      let end = indexFrom(text, '"', at)
      while (escape < end) {
        const after = escape + 2
        escaped = true
        cut = after > text.length
        asWritten &&= OWN_ESCAPES.has(text.charCodeAt(escape + 1))
        if (end < after) end = indexFrom(text, '"', after)
        escape = indexFrom(text, '\\', after)
      }
      return end
    },
  }
}

/** The index of a character from a place on, or the text's length. */
function indexFrom(text: string, character: string, at: number): number {
  const index = text.indexOf(character, at)
  return index === -1 ? text.length : index
}

/** A value whose objects are lists of keys and values in turn, behind a 0; lists stand behind a 1. */
type Listed = null | boolean | number | string | readonly Listed[]

/**
 * Writes the objects of a JSON text as lists. V8 may read a key with an escape as another key that it has seen before
 * (nodejs/node#63785), be it in another user's body; in a list a key is a text like any other, and none is misread.
 * @param text one that JSON.parse takes
 */
function asLists(text: string): string {
  const strings = stringsOf(text, 0)
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

/** Counts the keys of a parsed value at every level; refuses what re-serialising would change or a merge would obey. */
function countKeys(value: Json, count: { members: number }): Refusal | null {
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
    const fault = countKeys(value[key] as Json, count)
    if (fault !== null) return fault
  }
  return null
}
