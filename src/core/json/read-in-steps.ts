/** Reads large JSON in steps: JSON.parse blocks 0.5 s for 64 MiB of escapes, and misreads escaped keys (nodejs/node#63785). */
import {
  isDigit,
  isNumberStart,
  isPlainNumber,
  isSpace,
  numberEnd,
  stringsOf,
  isObject,
  type Json,
  type JsonObject,
} from './syntax.ts'
import { MemberRecorder, type MemberTexts } from './member-texts.ts'
import { refuse, type Reason, type Refusal } from '../reasons.ts'
import type { Steps } from './steps.ts'
import { inSlices } from './text-slices.ts'

export interface SteppedReading {
  readonly outcome: 'read'
  readonly value: JsonObject
  readonly texts: MemberTexts
}

/** The most tokens of a step. A step also ends at the end of a slice of the text. */
const TOKENS = 1024

const PLAIN = /[^"\\\u0000-\u001f]*/y
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const INDEX = /^(?:0|[1-9][0-9]{0,9})$/

/** Facts about a whole text: strings are not searched again for what they cannot have. */
export interface KnownText {
  readonly hasControls: boolean
  /** False if JSON.stringify would write each string with the same escapes. */
  readonly hasForeignEscapes: boolean
}

const UNKNOWN: KnownText = { hasControls: true, hasForeignEscapes: true }

/** json/read.ts has already bounded depth, values, and length of keys and numbers. */
export function* readInSteps(
  pieces: Iterable<string>,
  opened: readonly string[] = [],
  known = UNKNOWN,
): Steps<SteppedReading | Refusal> {
  const reader = new SteppedReader(inSlices(pieces), opened, known)
  while (reader.fault === null && !reader.isOver) {
    reader.step()
    yield
  }
  if (reader.fault !== null) return refuse(reader.fault)
  if (reader.value === null) return refuse('body-not-object')
  return { outcome: 'read', value: reader.value, texts: reader.recorder.texts }
}

type Next = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'nothing'

class SteppedReader {
  readonly #slices: Iterator<string, undefined>
  readonly #known: KnownText
  #text = ''
  #strings = stringsOf('')
  #at = 0
  #isLast = false
  /** The tokens left to this step: none after it went on to another slice. */
  #left = 0
  #next: Next = 'value'
  readonly #containers: (Json[] | Record<string, Json>)[] = []
  readonly #keys: string[] = []
  /** Null outside a string. */
  #string: string | null = null
  readonly recorder: MemberRecorder
  value: JsonObject | null = null
  fault: Reason | null = null
  isOver = false

  constructor(slices: Iterator<string, undefined>, opened: readonly string[], known: KnownText) {
    this.#slices = slices
    this.#known = known
    this.recorder = new MemberRecorder(opened)
  }

  step(): void {
    this.#left = TOKENS
    while (this.#left > 0 && this.fault === null) {
      this.#left -= 1
      if (this.#string !== null) this.#stringOn()
      else if (this.#skipSpace()) this.#token()
      else if (this.#isLast) {
        if (this.#next === 'nothing') this.isOver = true
        else this.fault = 'body-not-json'
        return
      } else this.#more(this.#text.length)
    }
  }

  #more(from: number): void {
    this.#left = 0
    this.recorder.cut(this.#text, from)
    const { value } = this.#slices.next()
    if (value === undefined) this.#isLast = true
    this.#text = this.#text.slice(from) + (value ?? '')
    this.#strings = stringsOf(this.#text)
    this.#at = 0
  }

  #skipSpace(): boolean {
    const text = this.#text
    const begin = this.#at
    let at = begin
    while (isSpace(text.charCodeAt(at))) at += 1
    if (at > begin) this.recorder.replace(text, begin, at, '')
    this.#at = at
    return at < text.length
  }

  #token(): void {
    const code = this.#text.charCodeAt(this.#at)
    const next = this.#next
    switch (code) {
      case 0x22: // "
        if (next === 'key' || next === 'key-or-end') this.#key()
        else if (next === 'value' || next === 'value-or-end') {
          this.#begin()
          this.#at += 1
          this.#string = ''
          this.#stringOn()
        } else this.fault = 'body-not-json'
        return
      case 0x7b: // {
        if (next === 'value' || next === 'value-or-end') this.#open({}, 'key-or-end')
        else this.fault = 'body-not-json'
        return
      case 0x5b: // [
        if (next === 'value' || next === 'value-or-end') this.#open([], 'value-or-end')
        else this.fault = 'body-not-json'
        return
      case 0x7d: // }
        this.#close('object', 'key-or-end')
        return
      case 0x5d: // ]
        this.#close('list', 'value-or-end')
        return
      case 0x3a: // :
        if (next !== 'colon') this.fault = 'body-not-json'
        this.#next = 'value'
        this.#at += 1
        return
      case 0x2c: // ,
        if (next !== 'comma-or-end') this.fault = 'body-not-json'
        this.#next = Array.isArray(this.#containers.at(-1)) ? 'value' : 'key'
        this.#at += 1
        return
      default:
        if (next !== 'value' && next !== 'value-or-end') this.fault = 'body-not-json'
        else if (isNumberStart(code)) this.#number()
        else this.#literal()
    }
  }

  #begin(isObject = false): void {
    this.recorder.begin(this.#at, this.#containers.length, this.#keys, isObject)
  }

  #put(value: Json): void {
    const depth = this.#containers.length
    this.recorder.end(this.#text, this.#at, depth)
    const container = this.#containers[depth - 1]
    if (container === undefined) {
      this.#next = 'nothing'
      this.value = isObject(value) ? value : null
      return
    }
    this.#next = 'comma-or-end'
    if (Array.isArray(container)) container.push(value)
    else putMember(container, this.#keys[depth - 1] ?? '', value)
  }

  #open(container: Json[] | Record<string, Json>, next: Next): void {
    this.#begin(!Array.isArray(container))
    this.#containers.push(container)
    this.#at += 1
    this.#next = next
  }

  #close(kind: 'object' | 'list', whereEmpty: Next): void {
    const container = this.#containers.at(-1)
    const isEnd = this.#next === 'comma-or-end' || this.#next === whereEmpty
    if (container === undefined || Array.isArray(container) !== (kind === 'list') || !isEnd) {
      this.fault = 'body-not-json'
      return
    }
    this.#containers.pop()
    this.#at += 1
    this.#put(container)
  }

  #key(): void {
    const begin = this.#at
    const end = this.#strings.endFrom(begin + 1)
    if (end === this.#text.length && !this.#isLast) {
      // A key is short, or nearly so: it is read again with the next slice.
      this.#more(begin)
      return
    }
    const isEscaped = this.#strings.hasEscapes
    const key = isEscaped ? this.#unescaped(begin + 1, end) : this.#plain(begin + 1, end)
    if (key === null || end === this.#text.length) {
      this.fault = 'body-not-json'
      return
    }
    const depth = this.#containers.length
    const container = this.#containers[depth - 1] as Record<string, Json>
    // Some readers take two keys with halves of surrogate pairs for the same key (RFC 8259 §8.2).
    // UTF-8 has no such halves: they come from escapes.
    if (key === '__proto__' || (isEscaped && !key.isWellFormed())) this.fault = 'body-key-forbidden'
    else if (Object.hasOwn(container, key)) this.fault = 'body-key-repeated'
    if (isEscaped) this.recorder.replace(this.#text, begin, end + 1, JSON.stringify(key))
    this.#keys[depth - 1] = key
    this.#at = end + 1
    this.#next = 'colon'
  }

  /** Of text without quotes and backslashes. */
  #plain(from: number, end: number): string | null {
    if (!this.#known.hasControls) return this.#text.slice(from, end)
    PLAIN.lastIndex = from
    PLAIN.test(this.#text)
    return PLAIN.lastIndex === end ? this.#text.slice(from, end) : null
  }

  #unescaped(from: number, end: number): string | null {
    try {
      return JSON.parse(`"${this.#text.slice(from, end)}"`) as string
    } catch {
      return null
    }
  }

  #stringOn(): void {
    const from = this.#at
    let end = this.#strings.endFrom(from)
    const isCut = end === this.#text.length
    const isEscaped = this.#strings.hasEscapes
    if (isCut && isEscaped) end = behindEscapes(this.#text, from)
    const isOpen = isCut && this.#isLast
    let decoded = isOpen ? null : isEscaped ? this.#unescaped(from, end) : this.#plain(from, end)
    if (decoded === null) {
      this.fault = 'body-not-json'
      return
    }
    if (isCut && isEscaped && isHighSurrogate(decoded)) {
      // The other half of the pair is in the next slice.
      end -= 6
      decoded = decoded.slice(0, -1)
    }
    if (this.#known.hasForeignEscapes && !this.#strings.asWritten())
      this.recorder.replace(this.#text, from, end, JSON.stringify(decoded).slice(1, -1))
    const read: string = (this.#string ?? '') + decoded
    if (isCut) {
      this.#string = read
      this.#more(end)
    } else {
      this.#string = null
      this.#at = end + 1
      this.#put(apart(read))
    }
  }

  #number(): void {
    if (!this.#isLast && numberEnd(this.#text, this.#at) === this.#text.length) {
      this.#more(this.#at)
      return
    }
    NUMBER.lastIndex = this.#at
    if (!NUMBER.test(this.#text)) {
      this.fault = 'body-not-json'
      return
    }
    this.#begin()
    const end = NUMBER.lastIndex
    const value = Number(this.#text.slice(this.#at, end))
    if (!Number.isFinite(value)) this.fault = 'body-number-out-of-range'
    if (!isPlainNumber(this.#text, this.#at, end)) this.recorder.replace(this.#text, this.#at, end, JSON.stringify(value))
    this.#at = end
    this.#put(value)
  }

  #literal(): void {
    if (!this.#isLast && this.#text.length - this.#at < 5) {
      this.#more(this.#at)
      return
    }
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#begin()
        this.#at += word.length
        this.#put(value)
        return
      }
    }
    this.fault = 'body-not-json'
  }
}

/** V8 copies a shorter slice in any case (SlicedString::kMinLength). */
const LEAST_SLICE = 13
/** Of interrupts. Other ids are shorter. */
const LONGEST_ID = 256

/** A slice keeps its whole text in memory, and a stream may need an id of a body for hours: so what may be an id is a copy. */
function apart(text: string): string {
  // V8 flattens the concatenation before it slices, so that the result refers only to the copy.
  return text.length < LEAST_SLICE || text.length > LONGEST_ID ? text : ` ${text}`.slice(1)
}

const LITERALS = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const

/** The end of a text that ends within a string, without an incomplete escape. */
function behindEscapes(text: string, from: number): number {
  const last = text.lastIndexOf('\\')
  // The longest escape has six characters.
  if (last < from || last < text.length - 5) return text.length
  let first = last
  while (first > from && text.charCodeAt(first - 1) === 0x5c) first -= 1
  // Behind an even number of backslashes this one begins an escape.
  const begins = (last - first) % 2 === 0
  return begins && (last === text.length - 1 || text.charCodeAt(last + 1) === 0x75) ? last : text.length
}

function isHighSurrogate(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
}

/** Puts a member into an object. For `{"999":1}`, a whole number as the only key, V8 would reserve room for 1,500 members. */
function putMember(object: Record<string, Json>, key: string, value: Json): void {
  // Few keys begin with a digit, and the regular expression takes longer than to look.
  const isIndex = key.length > 1 && isDigit(key.charCodeAt(0)) && INDEX.test(key)
  if (isIndex) Object.defineProperty(object, key, { value, enumerable: true, configurable: true })
  else object[key] = value
}
