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

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** A text, or its bytes in UTF-8: what the functions of this file look for is ASCII. */
export type Text = string | Buffer

function codeAt(text: Text, at: number): number {
  return typeof text === 'string' ? text.charCodeAt(at) : (text[at] as number)
}

export function numberEnd(text: Text, at: number): number {
  for (let end = at; end < text.length; end += 1) {
    const code = codeAt(text, end)
    // . + e E
    if (!isNumberStart(code) && code !== 0x2e && code !== 0x2b && code !== 0x65 && code !== 0x45) return end
  }
  return text.length
}

/** The most digits with which every whole number is exact in a double. */
const EXACT_DIGITS = 15

/** False for some numbers that JSON.stringify writes unchanged: those with a fraction or more digits. */
export function isPlainNumber(text: Text, from: number, to: number): boolean {
  const first = codeAt(text, from) === 0x2d ? from + 1 : from
  if (codeAt(text, first) === 0x30) return to === from + 1
  if (to === first || to - first > EXACT_DIGITS) return false
  for (let at = first; at < to; at += 1) if (!isDigit(codeAt(text, at))) return false
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

/**
 * True for escapes that JSON.stringify writes only for control characters, or never. JSON.parse refuses all other escapes.
 * @param code the character behind a backslash
 */
export function isForeignEscape(code: number): boolean {
  return code === 0x75 || code === 0x2f // u /
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Does not search again at each string or escape. */
export function stringsOf(text: Text): Strings {
  let from = 0
  let end = 0
  let escape = -1
  let foreign = -1
  const firstEscape = (characters: string): number => {
    let at = text.indexOf(characters, from)
    while (at !== -1 && isEscaped(text, at, from)) at = text.indexOf(characters, at + 1)
    return at === -1 ? text.length : at
  }
  const strings = {
    hasEscapes: false,
    endFrom(at: number) {
      from = at
      if (escape < at) escape = find(text, BACKSLASH, at)
      end = find(text, QUOTE, at)
      while (escape < end && end < text.length && isEscaped(text, end, at)) end = find(text, QUOTE, end + 1)
      strings.hasEscapes = escape < end
      return end
    },
    cut: () => isEscaped(text, end, from),
    asWritten() {
      if (!strings.hasEscapes) return true
      if (foreign < from) foreign = Math.min(firstEscape('\\u'), firstEscape('\\/'))
      return foreign >= end
    },
  }
  return strings
}

/** Looking at so many bytes takes as long as a call of Buffer.indexOf, and most strings are shorter. */
const NEAR = 24

/** @returns the next place of a character, or the text's length */
function find(text: Text, code: number, from: number): number {
  let at: number
  if (typeof text === 'string') at = text.indexOf(String.fromCharCode(code), from)
  else {
    const near = Math.min(from + NEAR, text.length)
    for (at = from; at < near; at += 1) if (text[at] === code) return at
    at = text.indexOf(code, near)
  }
  return at === -1 ? text.length : at
}

function isEscaped(text: Text, at: number, from: number): boolean {
  let before = at
  while (before > from && codeAt(text, before - 1) === BACKSLASH) before -= 1
  return (at - before) % 2 === 1
}
