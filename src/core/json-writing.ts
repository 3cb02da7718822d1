/**
 * Writes a JSON object anew, as JSON.stringify does, but of what stays as it was only the text is read again: V8 looks at each
 * character of a long string to write it, and a chat is long strings. What comes out is byte for byte the same, in the order
 * of the text.
 */
import { stringsOf, type Json, type JsonObject } from './json.ts'

/** An object, and the text that the strict reader took for it. */
export interface JsonSource {
  readonly value: JsonObject
  readonly text: string
}

/**
 * Writes an object.
 * @param body of which the parts that are the source's own are written from its text
 * @returns the very text of the source where it comes to the same
 */
export function writeAnew(body: JsonObject, { value, text }: JsonSource): string {
  const { members: texts, asWritten } = memberTexts(text)
  const keys = Object.keys(body)
  const own = (key: string): string | undefined => (body[key] === value[key] ? texts.get(key) : undefined)
  // With a key for each member the order is theirs: no key that passes anywhere is a whole number.
  if (asWritten && keys.length === texts.size && keys.every((key) => own(key) !== undefined)) return text
  const members = keys.map((key) => `${JSON.stringify(key)}:${own(key) ?? JSON.stringify(body[key] as Json)}`)
  return `{${members.join(',')}}`
}

/** The members of a text. */
export interface MemberTexts {
  /** Each as JSON.stringify would write it. */
  readonly members: ReadonlyMap<string, string>
  /** True if the whole text stands as JSON.stringify would write it. */
  readonly asWritten: boolean
}

/**
 * Takes the text of an object apart.
 * @param text of an object, one that JSON.parse takes and that has no key twice
 */
export function memberTexts(text: string): MemberTexts {
  const members = new Map<string, string>()
  const walk = walkThrough(text)
  walk.skipSpace()
  walk.expect('{')
  for (;;) {
    walk.skipSpace()
    if (walk.next() === '}') {
      walk.expect('}')
      walk.skipSpace()
      return { members, asWritten: walk.asWritten() }
    }
    if (walk.next() === ',') walk.expect(',')
    else {
      const key = JSON.parse(walk.value()) as string
      walk.skipSpace()
      walk.expect(':')
      walk.skipSpace()
      members.set(key, walk.value())
    }
  }
}

/** Goes through a text from one value to the next. */
interface Walk {
  next(): string
  expect(character: string): void
  skipSpace(): void
  /** Passes a value; gives it as JSON.stringify would write it. */
  value(): string
  /** True while everything that was passed stands so. */
  asWritten(): boolean
}

const NUMBER = /-?[0-9.eE+-]+/y
/** Written as it is read; with more digits it may not be. */
const PLAIN_NUMBER = /^(?:0|-?[1-9][0-9]{0,14})$/

function walkThrough(text: string): Walk {
  let at = 0
  const strings = stringsOf(text, 0)
  let asWritten = true

  /** Passes a string. @returns true if it stands as JSON.stringify would write it */
  const passString = (): boolean => {
    at = strings.endFrom(at + 1) + 1
    return strings.asWritten()
  }
  const passNumber = (): boolean => {
    NUMBER.lastIndex = at
    const digits = NUMBER.exec(text)?.[0] ?? ''
    at += digits.length
    return PLAIN_NUMBER.test(digits)
  }
  const skipSpace = (): void => {
    for (; at < text.length && isSpace(text.charCodeAt(at)); at += 1) asWritten = false
  }

  return {
    next: () => text.charAt(at),
    asWritten: () => asWritten,
    skipSpace,
    expect(character) {
      if (text.charAt(at) !== character) throw new Error('a text that is no object')
      at += 1
    },
    value() {
      let written = ''
      let from = at
      let depth = 0
      do {
        const begin = at
        const code = text.charCodeAt(at)
        if (code === 0x22 || code === 0x2d || (code >= 0x30 && code <= 0x39)) {
          if (!(code === 0x22 ? passString() : passNumber())) {
            written += text.slice(from, begin) + JSON.stringify(JSON.parse(text.slice(begin, at)))
            from = at
            asWritten = false
          }
        } else if (isSpace(code)) {
          written += text.slice(from, at)
          skipSpace()
          from = at
        } else {
          // A literal ends with its last letter, and everything else is one character.
          at += code === 0x66 ? 5 : code === 0x74 || code === 0x6e ? 4 : 1
          if (code === 0x7b || code === 0x5b) depth += 1
          else if (code === 0x7d || code === 0x5d) depth -= 1
        }
      } while (depth > 0 && at < text.length)
      return written + text.slice(from, at)
    },
  }
}

/** JSON's white space (RFC 8259 §2). */
function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}
