/** Counts depth and amount of a JSON text as it arrives, before anything recursive reads it. It also finds ends of strings. */
import { refuse, type Refusal } from '../reasons.ts'

/** The most values of a body: each costs far more than its bytes, and `{},` sixteen times more. */
export const MAX_VALUES = 250_000

/** The most levels of arrays and objects: agents' states stay far below, and a stack overflow begins at thousands. */
export const MAX_DEPTH = 128

/** The most characters of a number: JSON writers need at most 25. */
export const MAX_NUMBER = 4096

export const LONG_KEY = 1024

/** V8 hashes strings over 16,383 characters by length alone: distinguishing 2,000 such keys of one length took 4 seconds. */
export const MAX_LONG_KEYS = 256 * 1024

/** The most members of the object that is the whole text (`top`), and of every other object (`inner`). */
export interface MemberBounds {
  readonly top: number
  readonly inner: number
}

const UNBOUNDED: MemberBounds = { top: Number.POSITIVE_INFINITY, inner: Number.POSITIVE_INFINITY }

/** For a text that is not JSON the counts mean nothing. */
export interface Shape {
  take(piece: string): Refusal | null
  /** Counts colons outside strings. */
  members(): number
  /** Approximate: counts beginnings of objects and lists, and commas. */
  values(): number
  hasEscapedKeys(): boolean
  /** False if any text differs, or may differ, from what JSON.stringify writes. */
  asWritten(): boolean
}

export function makeShape(bounds: MemberBounds = UNBOUNDED): Shape {
  let members = 0
  let escapedKeys = false
  let depth = 0
  let values = 0
  let inString = false
  let escaped = false
  /** The previous piece ended within an escape. */
  let cut = false
  let asWritten = true
  let stringLength = 0
  let numberLength = 0
  let longKeys = 0
  const membersAt = new Uint32Array(MAX_DEPTH + 1)

  const member = (): Refusal | null => {
    members += 1
    escapedKeys ||= escaped
    if (stringLength > LONG_KEY) {
      longKeys += stringLength
      stringLength = 0
      if (longKeys > MAX_LONG_KEYS) return refuse('body-keys-too-long')
    }
    // A text that closes more than it opened is not JSON, so its count does not matter.
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
      // The first character may belong to an escape that began in the previous piece.
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
              // A number that continues in the next piece is not known as a whole.
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

export function isNumberStart(code: number): boolean {
  return code === 0x2d || isDigit(code)
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

export function numberEnd(text: string, at: number): number {
  for (let end = at; end < text.length; end += 1) {
    const code = text.charCodeAt(end)
    // . + e E
    if (!isNumberStart(code) && code !== 0x2e && code !== 0x2b && code !== 0x65 && code !== 0x45) return end
  }
  return text.length
}

/** The most digits with which every whole number is exact in a double. */
const EXACT_DIGITS = 15

/** False for some numbers that JSON.stringify writes unchanged: those with a fraction or more digits. */
export function isPlainNumber(text: string, from: number, to: number): boolean {
  const first = text.charCodeAt(from) === 0x2d ? from + 1 : from
  if (text.charCodeAt(first) === 0x30) return to === from + 1
  if (to === first || to - first > EXACT_DIGITS) return false
  for (let at = first; at < to; at += 1) if (!isDigit(text.charCodeAt(at))) return false
  return true
}

export interface Strings {
  /** Callers must ask for strings in order. Returns the place of the quote that ends the string, or the text's length. */
  endFrom(at: number): number
  escaped(): boolean
  cut(): boolean
  /** True if JSON.stringify writes its escapes for the same characters, control characters excepted. */
  asWritten(): boolean
}

/** Escapes that JSON.stringify writes only for control characters, or never. JSON.parse refuses what is no escape. */
const FOREIGN_ESCAPE = /\\[u/]/g

/** Does not search again at each string or escape. */
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

function isEscaped(text: string, at: number, from: number): boolean {
  let before = at
  while (before > from && text.charCodeAt(before - 1) === 0x5c) before -= 1
  return (at - before) % 2 === 1
}

function indexFrom(text: string, sought: string, at: number): number {
  const index = text.indexOf(sought, at)
  return index === -1 ? text.length : index
}
