/** Strict JSON: refuses what two parsers may read differently (runtime-behaviour.md, "Run input"; docs/contributing/threat-model.md). */
import { isAscii, isUtf8 } from 'node:buffer'
import { hasControls } from './control-characters.ts'
import { readInSteps, type SteppedReading } from './read-in-steps.ts'
import {
  isForeignEscape,
  isNumberStart,
  isObject,
  isPlainNumber,
  isSpace,
  numberEnd,
  stringsOf,
  type Json,
  type JsonObject,
} from './syntax.ts'
import { refuse, type Refusal } from '../reasons.ts'
import { atOnce, type Steps } from './steps.ts'

export { isObject, type Json, type JsonObject }

/** The most values of a body: each costs far more than its bytes, and `{},` sixteen times more. */
export const MAX_VALUES = 250_000

/** The most levels of arrays and objects: agents' states stay far below, and a stack overflow begins at thousands. */
export const MAX_DEPTH = 128

/** The most characters of a number: JSON writers need at most 25. */
export const MAX_NUMBER = 4096

/** In bytes, as a key is written. */
export const LONG_KEY = 1024

/** In bytes. V8 hashes strings over 16,383 characters by length alone: distinguishing 2,000 such keys of one length took 4 seconds. */
export const MAX_LONG_KEYS = 256 * 1024

/** The most members of the object that is the whole text (`top`), and of every other object (`inner`). */
export interface MemberBounds {
  readonly top: number
  readonly inner: number
}

const UNBOUNDED: MemberBounds = { top: Number.POSITIVE_INFINITY, inner: Number.POSITIVE_INFINITY }

const NONE: Buffer = Buffer.alloc(0)

export interface JsonSource {
  readonly value: JsonObject
  readonly text: string
  /** True if JSON.stringify would write this text, but for the order of whole-number keys. False may occur for such a text. */
  readonly asWritten: boolean
}

export type SteppedSource = SteppedReading & Pick<JsonSource, 'asWritten'>

export type JsonReading = ({ readonly outcome: 'read' } & JsonSource) | Refusal

export interface JsonReader {
  /** @returns a refusal, even before the rest has arrived, or null to go on; after a refusal the reader is done */
  readonly push: (bytes: Buffer) => Refusal | null
  /** All that was pushed; one piece after `end`. */
  readonly bytes: readonly Uint8Array[]
  /** Counts of the text so far. */
  readonly shape: Pick<Shape, 'values'>
  isLarge(): boolean
  end(): JsonReading
  /** @param opened the objects whose members are wanted separately: names with a `/` between them */
  inSteps(opened: readonly string[]): Steps<SteppedSource | Refusal>
}

/** In bytes. */
const LARGE = 256 * 1024
const MANY_VALUES = 8192
/** Escaped keys are read in steps in any case, and each costs more. */
const LARGE_IF_ESCAPED = 16 * 1024

/** By default only the number of all values is bounded. */
export function makeJsonReader(bounds: MemberBounds = UNBOUNDED): JsonReader {
  const shape = makeShape(bounds)
  const arrived: Buffer[] = []
  let length = 0
  let cut = NONE
  /** Latin-1 while all bytes are ASCII: it is decoded more quickly. */
  let encoding: 'latin1' | 'utf8' = 'latin1'
  /** How many pieces were searched for control characters. */
  let looked = 0
  let controls = false
  const look = (): void => {
    while (!controls && looked < arrived.length) controls = hasControls(arrived[looked++] as Buffer, encoding === 'latin1')
  }
  return {
    push(bytes) {
      arrived.push(bytes)
      if (cut.length > 0 || !isAscii(bytes)) {
        encoding = 'utf8'
        const characters = wholeCharacters(cut, bytes)
        cut = characters.cut
        if (!isUtf8(characters.whole)) return refuse('body-not-utf8')
      }
      length += bytes.length
      // Now, because the bytes are still in the processor's cache.
      if (length > LARGE) look()
      return shape.take(bytes)
    },
    bytes: arrived,
    shape,
    isLarge: () => length > (shape.hasEscapedKeys ? LARGE_IF_ESCAPED : LARGE) || shape.values > MANY_VALUES,
    end() {
      if (cut.length > 0) return refuse('body-not-utf8')
      const whole = arrived.length === 1 ? (arrived[0] as Buffer) : Buffer.concat(arrived)
      arrived.splice(0, arrived.length, whole)
      // A TextDecoder or StringDecoder takes longer. A byte order mark stays in the text.
      const text = whole.toString(encoding)
      const { asWritten } = shape
      // V8 may read an escaped key as another key that it has seen before (nodejs/node#63785), even in another user's body.
      if (shape.hasEscapedKeys) {
        const reading = atOnce(readInSteps([text]))
        return reading.outcome === 'refused' ? reading : { outcome: 'read', value: reading.value, text, asWritten }
      }
      let value: Json
      try {
        value = JSON.parse(text) as Json
      } catch {
        return refuse('body-not-json')
      }
      if (!isObject(value)) return refuse('body-not-object')
      const kept = { members: 0 }
      const fault = countKeys(value, kept)
      if (fault !== null) return fault
      // An object keeps only the last of equal keys: fewer keys than members means that the text had duplicates.
      return kept.members === shape.members ? { outcome: 'read', value, text, asWritten } : refuse('body-key-repeated')
    },
    *inSteps(opened) {
      if (cut.length > 0) return refuse('body-not-utf8')
      look()
      const { asWritten } = shape
      const reading = yield* readInSteps(textsOf(arrived, encoding), opened, {
        hasControls: controls,
        hasForeignEscapes: !asWritten,
      })
      return reading.outcome === 'refused' ? reading : { ...reading, asWritten }
    },
  }
}

/** The number of bytes at the end that begin an incomplete character (RFC 3629 §3). */
function cutCharacter(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back += 1) {
    const byte = bytes.at(-back) ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

/** @param cut what the piece before left of its last character */
function wholeCharacters(cut: Buffer, piece: Buffer): { readonly whole: Buffer; readonly cut: Buffer } {
  const all = cut.length === 0 ? piece : Buffer.concat([cut, piece])
  const end = all.length - cutCharacter(all)
  return { whole: all.subarray(0, end), cut: all.subarray(end) }
}

/** @param pieces a character may be in two of them */
function* textsOf(pieces: readonly Buffer[], encoding: 'latin1' | 'utf8'): Generator<string, undefined, undefined> {
  let cut = NONE
  for (const piece of pieces) {
    const characters = wholeCharacters(cut, piece)
    cut = characters.cut
    yield characters.whole.toString(encoding)
  }
  return undefined
}

/** Counts the keys of a parsed value at every level. Refuses what serialising again would change or a merge would obey. */
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

/** Of a text that is not JSON the numbers mean nothing. */
interface Shape {
  /** Colons outside strings. */
  readonly members: number
  /** Approximate: beginnings of objects and lists, and commas. */
  readonly values: number
  readonly hasEscapedKeys: boolean
  /** False if any text differs, or may differ, from what JSON.stringify writes. */
  readonly asWritten: boolean
  take(piece: Buffer): Refusal | null
}

/** Counts depth and amount of a text as it arrives, before anything recursive reads it. */
function makeShape(bounds: MemberBounds): Shape {
  let depth = 0
  let inString = false
  let stringHasEscapes = false
  /** The previous piece ended within an escape. */
  let cut = false
  let stringLength = 0
  let numberLength = 0
  let longKeys = 0
  const membersAt = new Uint32Array(MAX_DEPTH + 1)

  /** @returns the end of a number, or -1 if it is too long */
  const passNumber = (piece: Buffer, from: number): number => {
    const end = numberEnd(piece, from)
    numberLength += end - from
    if (numberLength > MAX_NUMBER) return -1
    if (end < piece.length) numberLength = 0
    return end
  }

  const shape = {
    members: 0,
    values: 0,
    hasEscapedKeys: false,
    asWritten: true,
    take(piece: Buffer) {
      const strings = stringsOf(piece)
      if (cut && isForeignEscape(piece[0] as number)) shape.asWritten = false
      // A string of the previous piece goes on, as if its quote came before. Its escape may have taken the first byte.
      const begin = inString ? (cut ? 0 : -1) : numberLength > 0 ? passNumber(piece, 0) : 0
      if (begin === -1 && !inString) return refuse('body-number-out-of-range')
      for (let at = begin; at < piece.length; at += 1) {
        const code = inString ? 0x22 : (piece[at] as number)
        switch (code) {
          case 0x22: {
            // "
            if (!inString) {
              stringHasEscapes = false
              stringLength = 0
            }
            const end = strings.endFrom(at + 1)
            stringLength += end - at - 1
            stringHasEscapes ||= strings.hasEscapes
            inString = end === piece.length
            cut = inString && strings.hasEscapes && strings.cut()
            shape.asWritten &&= !strings.hasEscapes || strings.asWritten()
            at = end
            break
          }
          case 0x5c: // \\ occurs in strings only
            return refuse('body-not-json')
          case 0x3a: {
            // :
            shape.members += 1
            shape.hasEscapedKeys ||= stringHasEscapes
            if (stringLength > LONG_KEY) {
              longKeys += stringLength
              stringLength = 0
              if (longKeys > MAX_LONG_KEYS) return refuse('body-keys-too-long')
            }
            // A text that closes more than it opened is not JSON, so its count does not matter.
            const count = (membersAt[depth] ?? 0) + 1
            membersAt[depth] = count
            if (count > (depth === 1 ? bounds.top : bounds.inner)) return refuse('body-too-many-members')
            break
          }
          case 0x2c: // ,
            shape.values += 1
            break
          case 0x7b: // {
          case 0x5b: // [
            depth += 1
            shape.values += 1
            membersAt[depth] = 0
            if (depth > MAX_DEPTH) return refuse('body-too-deep')
            break
          case 0x7d: // }
          case 0x5d: // ]
            depth -= 1
            break
          default:
            if (isSpace(code)) shape.asWritten = false
            else if (isNumberStart(code)) {
              const end = passNumber(piece, at)
              if (end === -1) return refuse('body-number-out-of-range')
              // A number that continues in the next piece is not known as a whole.
              shape.asWritten &&= end < piece.length && isPlainNumber(piece, at, end)
              at = end - 1
            }
        }
        if (shape.values > MAX_VALUES) return refuse('body-too-many-values')
      }
      return null
    },
  }
  return shape
}
