/**
 * What a JSON text holds, counted as it comes and without parsing it: how deep it nests and how much it holds, before
 * anything recursive or costly sees it; and where its strings end.
 */
import { refuse, type Refusal } from '../reasons.ts'

/** How many values a body may hold: each costs far more than its bytes, and `{},` sixteen times more. */
export const MAX_VALUES = 250_000

/** How deep arrays and objects may nest: agents' states stay far below, a stack overflow begins at thousands. */
export const MAX_DEPTH = 128

/** How many characters a number may have: none that a writer of JSON makes has more than 25. */
export const MAX_NUMBER = 4096

/** A key of more characters is long. */
export const LONG_KEY = 1024

/**
 * How many characters the long keys of a body may have together. V8 hashes a string of more than 16,383 characters by its length
 * alone: 2,000 such keys of one length took it four seconds to tell apart.
 */
export const MAX_LONG_KEYS = 256 * 1024

/** How many members one object may have. */
export interface MemberBounds {
  /** The object that the text is. */
  readonly top: number
  /** Any other. */
  readonly inner: number
}

const UNBOUNDED: MemberBounds = { top: Number.POSITIVE_INFINITY, inner: Number.POSITIVE_INFINITY }

/** The shape of a text. For a text that is not JSON the counts mean nothing. */
export interface Shape {
  /** Takes the next piece; bounds depth and number of values before anything recursive or costly sees them. */
  take(piece: string): Refusal | null
  /** Object members at every level, that is colons outside strings. */
  members(): number
  /** About how many values there are: what begins an object or a list, or stands behind a comma. */
  values(): number
  /** True if a key is written with an escape. */
  hasEscapedKeys(): boolean
  /** False if anything stands otherwise than JSON.stringify writes it, or may do so. */
  asWritten(): boolean
}

/** Makes the shape of a text of which nothing has come yet. */
export function makeShape(bounds: MemberBounds = UNBOUNDED): Shape {
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
  /** How many characters of the string that was read last, and of the number that is being read, have come. */
  let stringLength = 0
  let numberLength = 0
  let longKeys = 0
  /** How many members the open objects have, by depth. */
  const membersAt = new Uint32Array(MAX_DEPTH + 1)

  const member = (): Refusal | null => {
    members += 1
    escapedKeys ||= escaped
    if (stringLength > LONG_KEY) {
      longKeys += stringLength
      stringLength = 0
      if (longKeys > MAX_LONG_KEYS) return refuse('body-keys-too-long')
    }
    // What closes more than was opened is no JSON, whatever is counted.
    const count = (membersAt[depth] ?? 0) + 1
    membersAt[depth] = count
    return count > (depth === 1 ? bounds.top : bounds.inner) ? refuse('body-too-many-members') : null
  }

  return {
    members: () => members,
    values: () => values,
    hasEscapedKeys: () => escapedKeys,
    asWritten: () => asWritten,
    take(text) {
      if (text === '') return null
      // The first character may belong to an escape that the piece before began.
      const start = cut ? 1 : 0
      const strings = stringsOf(text)
      const string = (from: number): number => {
        const end = strings.endFrom(from)
        stringLength += end - from
        escaped ||= strings.escaped()
        inString = end === text.length
        cut = inString && strings.cut()
        asWritten &&= !cut && strings.asWritten()
        return end
      }
      /** @returns the end of a number, or -1 if it is too long */
      const number = (from: number): number => {
        const end = numberEnd(text, from)
        numberLength += end - from
        if (numberLength > MAX_NUMBER) return -1
        if (end < text.length) numberLength = 0
        return end
      }
      let begin = 0
      if (inString) begin = string(start) + 1
      else if (numberLength > 0) begin = number(0)
      if (begin === -1) return refuse('body-number-out-of-range')
      for (let at = begin; at < text.length; at += 1) {
        const code = text.charCodeAt(at)
        switch (code) {
          case 0x22: // "
            escaped = false
            stringLength = 0
            at = string(at + 1)
            break
          case 0x5c: // \\ stands in strings alone
            return refuse('body-not-json')
          case 0x3a: {
            // :
            const fault = member()
            if (fault !== null) return fault
            break
          }
          case 0x2c: // ,
            values += 1
            break
          case 0x7b: // {
          case 0x5b: // [
            depth += 1
            values += 1
            membersAt[depth] = 0
            if (depth > MAX_DEPTH) return refuse('body-too-deep')
            break
          case 0x7d: // }
          case 0x5d: // ]
            depth -= 1
            break
          default:
            if (isSpace(code)) asWritten = false
            else if (isNumberStart(code)) {
              const end = number(at)
              if (end === -1) return refuse('body-number-out-of-range')
              // One that goes on in the next piece is not known as a whole.
              asWritten &&= end < text.length && isPlainNumber(text, at, end)
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
  return code === 0x2d || isDigit(code)
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Where the number ends that begins there: behind the last of what numbers are written with. */
export function numberEnd(text: string, at: number): number {
  for (let end = at; end < text.length; end += 1) {
    const code = text.charCodeAt(end)
    // . + e E
    if (!isNumberStart(code) && code !== 0x2e && code !== 0x2b && code !== 0x65 && code !== 0x45) return end
  }
  return text.length
}

/** How many digits a whole number may have to be exact in a double, whichever they are. */
const EXACT_DIGITS = 15

/** True for a number that JSON.stringify writes as it stands; with a fraction or more digits it may not. */
export function isPlainNumber(text: string, from: number, to: number): boolean {
  const first = text.charCodeAt(from) === 0x2d ? from + 1 : from
  if (text.charCodeAt(first) === 0x30) return to === from + 1
  if (to === first || to - first > EXACT_DIGITS) return false
  for (let at = first; at < to; at += 1) if (!isDigit(text.charCodeAt(at))) return false
  return true
}

/** Finds where the strings of a text end. */
export interface Strings {
  /** The place of the quote that ends the string which this is a place in, or the text's length. Strings are asked for in their order. */
  endFrom(at: number): number
  /** True if the string that was asked for last has an escape, from there on. */
  escaped(): boolean
  /** True if the text ends within an escape of it. */
  cut(): boolean
  /** True if its escapes are those that JSON.stringify writes for what they stand for, as far as these are not control characters. */
  asWritten(): boolean
}

/** The escapes that JSON.stringify writes nothing with, but for control characters. What is no escape at all JSON.parse refuses. */
const FOREIGN_ESCAPE = /\\[u/]/g

/** Reads the strings of a text, or of a piece of it. Nothing is looked for again at each string, nor at each escape. */
export function stringsOf(text: string): Strings {
  let from = 0
  let end = 0
  let escape = -1
  let foreign = -1
  const escaped = (): boolean => {
    if (escape < from) escape = indexFrom(text, '\\', from)
    return escape < end
  }
  const foreignFrom = (): number => {
    FOREIGN_ESCAPE.lastIndex = from
    while (FOREIGN_ESCAPE.test(text)) {
      const at = FOREIGN_ESCAPE.lastIndex - 2
      if (!isEscaped(text, at, from)) return at
    }
    return text.length
  }
  return {
    endFrom(at) {
      from = at
      end = indexFrom(text, '"', at)
      while (end < text.length && isEscaped(text, end, from)) end = indexFrom(text, '"', end + 1)
      return end
    },
    escaped,
    cut: () => isEscaped(text, end, from),
    asWritten() {
      if (!escaped()) return true
      if (foreign < from) foreign = foreignFrom()
      return foreign >= end
    },
  }
}

/** True if an odd number of backslashes stands before a place in a string, the beginning of which is given. */
function isEscaped(text: string, at: number, from: number): boolean {
  let before = at
  while (before > from && text.charCodeAt(before - 1) === 0x5c) before -= 1
  return (at - before) % 2 === 1
}

/** The index of a text from a place on, or the text's length. */
function indexFrom(text: string, sought: string, at: number): number {
  const index = text.indexOf(sought, at)
  return index === -1 ? text.length : index
}
