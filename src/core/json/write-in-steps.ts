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

  /** @returns true where the step ends */
  add(text: string): boolean {
    this.#pending += text
    if (this.#pending.length < SLICE) return this.takes(1)
    this.#encode()
    this.#texts = 0
    return true
  }

  /** Counts work that is like writing so many texts. @returns true where the step ends */
  takes(texts: number): boolean {
    this.#texts += texts
    if (this.#texts < TEXTS) return false
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
  const members = Object.entries(body)
  // Wide objects in each other: each is listed as a whole.
  if (output.takes(members.length)) yield
  for (const [key, part] of members) {
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
  else if (isScalar(value) || (isObject(value) && new Few().takes(value))) {
    if (output.add(JSON.stringify(value))) yield
  } else if (isObject(value)) yield* writeObject(value, NOTHING, NO_TEXTS, output)
  else yield* writeList(value as readonly Json[], output)
}

function* writeList(list: readonly Json[], output: Output): Steps<void> {
  let before = '['
  for (let at = 0; at < list.length;) {
    if (output.add(before)) yield
    before = ','
    const few = new Few()
    const from = at
    while (at < list.length && few.takes(list[at] as Json)) at += 1
    if (at > from) {
      // One call of JSON.stringify takes as long as writing half an item.
      if (output.add(JSON.stringify(list.slice(from, at)).slice(1, -1))) yield
    } else {
      // Not by writeValue, which would look at a wide object again.
      const item = list[at] as Json
      if (isObject(item)) yield* writeObject(item, NOTHING, NO_TEXTS, output)
      else yield* writeValue(item, output)
      at += 1
    }
  }
  if (output.add(before === '[' ? '[]' : ']')) yield
}

/** Values that are written at once, and characters in their strings and names: some microseconds. */
const FEW_VALUES = 64
const FEW_CHARACTERS = 2048

/** Counts the values that are written at once: scalars and objects of scalars. */
class Few {
  #values = 0
  #characters = 0

  /** Looks at the value alone, not into what it contains: that would be looked at again on each level. */
  takes(value: Json): boolean {
    if (isScalar(value)) return this.#has(0, value)
    if (!isObject(value) || !this.#has(0, null)) return false
    for (const name in value) {
      const part = value[name] as Json
      if (!isScalar(part) || !this.#has(name.length, part)) return false
    }
    return true
  }

  #has(characters: number, scalar: Json): boolean {
    this.#values += 1
    this.#characters += characters + (typeof scalar === 'string' ? scalar.length : 0)
    return this.#values <= FEW_VALUES && this.#characters <= FEW_CHARACTERS
  }
}

function isScalar(value: Json): boolean {
  return typeof value !== 'object' || value === null
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
