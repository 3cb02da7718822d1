/** What JSON consists of: its values, and the spaces, numbers and strings of a text (RFC 8259). */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export type JsonObject = { readonly [key: string]: Json }

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
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
  /** True if the last string has a backslash. */
  readonly hasEscapes: boolean
  /** True if the text ends within an escape. */
  cut(): boolean
  /** True if JSON.stringify writes its escapes for the same characters, control characters excepted. */
  asWritten(): boolean
}

/** Escapes that JSON.stringify writes only for control characters, or never. JSON.parse refuses all other escapes. */
const FOREIGN_ESCAPE = /\\[u/]/g

/** @param code the character behind a backslash */
export function isForeignEscape(code: number): boolean {
  return code === 0x75 || code === 0x2f // u /
}

/** Does not search again at each string or escape. */
export function stringsOf(text: string): Strings {
  let from = 0
  let end = 0
  let escape = -1
  let foreign = -1
  const foreignFrom = (): number => {
    FOREIGN_ESCAPE.lastIndex = from
    while (FOREIGN_ESCAPE.test(text)) {
      const at = FOREIGN_ESCAPE.lastIndex - 2
      if (!isEscaped(text, at, from)) return at
    }
    return text.length
  }
  const strings = {
    hasEscapes: false,
    endFrom(at: number) {
      from = at
      if (escape < at) {
        escape = text.indexOf('\\', at)
        if (escape === -1) escape = text.length
      }
      end = text.indexOf('"', at)
      while (escape < end && isEscaped(text, end, at)) end = text.indexOf('"', end + 1)
      if (end === -1) end = text.length
      strings.hasEscapes = escape < end
      return end
    },
    cut: () => isEscaped(text, end, from),
    asWritten() {
      if (!strings.hasEscapes) return true
      if (foreign < from) foreign = foreignFrom()
      return foreign >= end
    },
  }
  return strings
}

function isEscaped(text: string, at: number, from: number): boolean {
  let before = at
  while (before > from && text.charCodeAt(before - 1) === 0x5c) before -= 1
  return (at - before) % 2 === 1
}
