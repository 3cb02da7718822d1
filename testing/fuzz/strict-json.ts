/**
 * A second reader of JSON, written from RFC 8259 and without JSON.parse: it takes what has one reading for everybody, and
 * nothing else. What the gateway's reader takes is compared with it.
 */

/** What it gives: objects as maps, in the order of the text, so that no name of a key means anything. */
export type Strict = null | boolean | number | string | readonly Strict[] | ReadonlyMap<string, Strict>

/** What is no JSON, or has more than one reading. */
class NotStrict extends Error {}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const HEX = /[0-9a-fA-F]{4}/y
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}
const LITERALS = { true: true, false: false, null: null } as const

/**
 * Reads a text.
 * @param deepest how many objects and lists may stand in each other
 * @returns undefined for what is refused: no JSON object, a key twice, `__proto__` or half a character in a key, a number that
 *   no double is near, nesting
 */
export function readStrict(bytes: Uint8Array, deepest: number): ReadonlyMap<string, Strict> | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const value = new Reader(text, deepest).whole()
    return value instanceof Map ? value : undefined
  } catch (error) {
    if (error instanceof NotStrict || (error as { code?: string }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return undefined
    throw error
  }
}

class Reader {
  readonly #text: string
  readonly #deepest: number
  #at = 0

  constructor(text: string, deepest: number) {
    this.#text = text
    this.#deepest = deepest
  }

  whole(): Strict {
    const value = this.#value(0)
    if (this.#at < this.#text.length) throw new NotStrict()
    return value
  }

  #value(depth: number): Strict {
    this.#space()
    const value = this.#bare(depth)
    this.#space()
    return value
  }

  #bare(depth: number): Strict {
    const next = this.#text[this.#at]
    if (next === '{') return this.#object(depth + 1)
    if (next === '[') return this.#list(depth + 1)
    if (next === '"') return this.#string()
    for (const [word, value] of Object.entries(LITERALS)) if (this.#passes(word)) return value
    const number = Number(this.#match(NUMBER))
    if (!Number.isFinite(number)) throw new NotStrict()
    // -0 is written as 0, and nobody tells one from the other.
    return number + 0
  }

  #object(depth: number): ReadonlyMap<string, Strict> {
    const members = new Map<string, Strict>()
    this.#members(depth, '}', () => {
      this.#space()
      const key = this.#string()
      if (members.has(key) || key === '__proto__' || !key.isWellFormed()) throw new NotStrict()
      this.#space()
      this.#expect(':')
      members.set(key, this.#value(depth))
    })
    return members
  }

  #list(depth: number): readonly Strict[] {
    const items: Strict[] = []
    this.#members(depth, ']', () => void items.push(this.#value(depth)))
    return items
  }

  #members(depth: number, end: string, member: () => void): void {
    if (depth > this.#deepest) throw new NotStrict()
    this.#at += 1
    this.#space()
    if (this.#passes(end)) return
    do member()
    while (this.#passes(','))
    this.#expect(end)
  }

  #string(): string {
    this.#expect('"')
    let value = ''
    for (;;) {
      const unit = this.#text[this.#at] ?? ''
      this.#at += 1
      if (unit === '"') return value
      if (unit < ' ') throw new NotStrict()
      value += unit === '\\' ? this.#escape() : unit
    }
  }

  #escape(): string {
    const kind = this.#text[this.#at] ?? ''
    this.#at += 1
    if (kind === 'u') return String.fromCharCode(Number.parseInt(this.#match(HEX), 16))
    const character = ESCAPES[kind]
    if (character === undefined) throw new NotStrict()
    return character
  }

  #space(): void {
    while (/[ \t\n\r]/.test(this.#text[this.#at] ?? '')) this.#at += 1
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found === undefined) throw new NotStrict()
    this.#at += found.length
    return found
  }

  #passes(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false
    this.#at += word.length
    return true
  }

  #expect(word: string): void {
    if (!this.#passes(word)) throw new NotStrict()
  }
}

/** A value in this reader's form, made of one in JSON.parse's. */
export function asStrict(value: unknown): Strict {
  if (Array.isArray(value)) return value.map(asStrict)
  if (typeof value === 'number') return value + 0
  if (typeof value !== 'object' || value === null) return value as Strict
  return new Map(Object.entries(value).map(([key, member]) => [key, asStrict(member)]))
}
