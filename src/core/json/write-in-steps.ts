/** Writes a large object in steps, as JSON.stringify would. Copies unchanged parts from their text (json/member-texts.ts). */
import type { SteppedReading } from './read-in-steps.ts'
import type { MemberText, MemberTexts } from './member-texts.ts'
import { isObject, type Json, type JsonObject } from './syntax.ts'
import type { Steps } from './steps.ts'
import { cutAt, SLICE } from './text-slices.ts'

/** A step also ends when it has enough bytes. */
const TEXTS = 1024

export function* writeInSteps(body: JsonObject, { value, texts }: Omit<SteppedReading, 'outcome'>): Steps<readonly Uint8Array[]> {
  const output = new Output()
  yield* writeObject(body, value, texts, output)
  return output.end()
}

class Output {
  readonly #encoder = new TextEncoder()
  readonly #pieces: Uint8Array[] = []
  #pending = ''
  #texts = 0

  add(text: string): boolean {
    this.#pending += text
    this.#texts += 1
    if (this.#pending.length >= SLICE) this.#encode()
    else if (this.#texts < TEXTS) return false
    this.#texts = 0
    return true
  }

  end(): readonly Uint8Array[] {
    this.#encode()
    return this.#pieces
  }

  #encode(): void {
    if (this.#pending !== '') this.#pieces.push(this.#encoder.encode(this.#pending))
    this.#pending = ''
  }
}

function* writeObject(body: JsonObject, value: JsonObject, texts: MemberTexts, output: Output): Steps<void> {
  let before = '{'
  for (const [key, part] of Object.entries(body)) {
    if (output.add(`${before}${JSON.stringify(key)}:`)) yield
    before = ','
    const text = texts.get(key)
    const source = value[key]
    if (text !== undefined && part === source) yield* writeText(text, output)
    // The remaining members of a narrowed object still have their text.
    else if (text instanceof Map && isObject(part) && isObject(source))
      yield* writeObject(part, source, text as MemberTexts, output)
    else yield* writeValue(part, output)
  }
  if (output.add(before === '{' ? '{}' : '}')) yield
}

function* writeText(text: MemberText, output: Output): Steps<void> {
  if (!(text instanceof Map)) {
    for (const piece of text as readonly string[]) if (output.add(piece)) yield
    return
  }
  let before = '{'
  for (const [key, member] of text as MemberTexts) {
    if (output.add(`${before}${JSON.stringify(key)}:`)) yield
    before = ','
    yield* writeText(member, output)
  }
  if (output.add(before === '{' ? '{}' : '}')) yield
}

function* writeValue(value: Json, output: Output): Steps<void> {
  if (typeof value === 'string') yield* writeString(value, output)
  else if (typeof value !== 'object' || value === null) {
    if (output.add(JSON.stringify(value))) yield
  } else if (isSmall(value)) {
    if (output.add(JSON.stringify(value))) yield
  } else if (isObject(value)) yield* writeObject(value, NOTHING, NO_TEXTS, output)
  else {
    let before = '['
    for (const item of value) {
      if (output.add(before)) yield
      before = ','
      yield* writeValue(item, output)
    }
    if (output.add(before === '[' ? '[]' : ']')) yield
  }
}

/** Values in a value that is written at once, and characters in its strings and names: a few microseconds. */
const SMALL_VALUES = 64
const SMALL_CHARACTERS = 2048

function isSmall(value: Json): boolean {
  return takeRoom(value, { values: SMALL_VALUES, characters: SMALL_CHARACTERS })
}

/** Takes what a value needs. @returns false as soon as there is not enough */
function takeRoom(value: Json, room: { values: number; characters: number }): boolean {
  room.values -= 1
  if (typeof value === 'string') room.characters -= value.length
  if (room.values < 0 || room.characters < 0) return false
  if (typeof value !== 'object' || value === null) return true
  if (!isObject(value)) return value.every((item) => takeRoom(item, room))
  for (const name in value) {
    room.characters -= name.length
    if (!takeRoom(value[name] as Json, room)) return false
  }
  return true
}

const NOTHING: JsonObject = {}
const NO_TEXTS: MemberTexts = new Map()

function* writeString(text: string, output: Output): Steps<void> {
  if (text.length <= SLICE) {
    if (output.add(JSON.stringify(text))) yield
    return
  }
  if (output.add('"')) yield
  for (let from = 0; from < text.length;) {
    const end = cutAt(text, Math.min(from + SLICE, text.length))
    if (output.add(JSON.stringify(text.slice(from, end)).slice(1, -1))) yield
    from = end
  }
  if (output.add('"')) yield
}
