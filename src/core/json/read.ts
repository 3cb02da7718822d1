/** Strict JSON: refuses what two parsers may read differently (runtime-behaviour.md, "Run input"; docs/threat-model.md). */
import { makeShape, type MemberBounds, type Shape } from './shape.ts'
import { readInSteps, type SteppedReading } from './read-in-steps.ts'
import { isObject, type Json, type JsonObject } from './value.ts'
import { refuse, type Refusal } from '../reasons.ts'
import { atOnce, type Steps } from './steps.ts'

export { isObject, type Json, type JsonObject }

const NONE = new Uint8Array()

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface JsonSource {
  readonly value: JsonObject
  readonly text: string
  /** True if JSON.stringify would write this text, but for the order of whole-number keys. False may occur for such a text. */
  readonly asWritten: boolean
}

export type JsonReading = ({ readonly outcome: 'read' } & JsonSource) | Refusal

export interface JsonReader {
  /** @returns a refusal, even before the rest has arrived, or null to go on; after a refusal the reader is done */
  push(bytes: Uint8Array): Refusal | null
  values(): number
  isLarge(): boolean
  end(): JsonReading
  /** @param opened the objects whose members are wanted separately: names with a `/` between them */
  inSteps(opened: readonly string[]): Steps<SteppedReading | Refusal>
}

/** In characters. */
const LARGE = 256 * 1024
const MANY_VALUES = 8192
/** Escaped keys are read in steps in any case, and each costs more. */
const LARGE_IF_ESCAPED = 16 * 1024

/** Keeps the text that arrived, not the bytes. By default only the number of all values is bounded. */
export function makeJsonReader(bounds?: MemberBounds): JsonReader {
  const shape = makeShape(bounds)
  const pieces: string[] = []
  let length = 0
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
      length += piece.length
      return shape.take(piece)
    },
    values: () => shape.values(),
    isLarge: () => length > (shape.hasEscapedKeys() ? LARGE_IF_ESCAPED : LARGE) || shape.values() > MANY_VALUES,
    end: () => (cut.length > 0 ? refuse('body-not-utf8') : parse(pieces.splice(0).join(''), shape)),
    inSteps: (opened) => (cut.length > 0 ? refusedAtOnce(refuse('body-not-utf8')) : readInSteps(pieces.splice(0), opened)),
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
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

function* refusedAtOnce(refusal: Refusal): Steps<Refusal> {
  return refusal
}

function parse(text: string, shape: Shape): JsonReading {
  // V8 may read an escaped key as another key that it has seen before (nodejs/node#63785), even in another user's body.
  if (shape.hasEscapedKeys()) {
    const reading = atOnce(readInSteps([text]))
    return reading.outcome === 'refused' ? reading : { outcome: 'read', value: reading.value, text, asWritten: shape.asWritten() }
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
  if (kept.members !== shape.members()) return refuse('body-key-repeated')
  return { outcome: 'read', value, text, asWritten: shape.asWritten() }
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
