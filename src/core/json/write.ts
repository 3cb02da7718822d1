/** Writes JSON byte for byte as JSON.stringify does, but copies unchanged parts: V8 looks at each character of a long string. */
import { isNumberStart, isPlainNumber, isSpace, numberEnd, stringsOf } from './syntax.ts'
import type { JsonObject, JsonSource } from './read.ts'

export function writeAnew(body: JsonObject, { value, text }: JsonSource): string {
  const texts = memberTexts(text)
  const own = (key: string): string | undefined => (body[key] === value[key] ? texts.get(key) : undefined)
  const members = Object.keys(body).map((key) => `${JSON.stringify(key)}:${own(key) ?? JSON.stringify(body[key])}`)
  return `{${members.join(',')}}`
}

/** @param text must be accepted by JSON.parse and have no duplicate keys */
export function memberTexts(text: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>()
  const walk = walkThrough(text)
  walk.skipSpace()
  walk.expect('{')
  for (;;) {
    walk.skipSpace()
    if (walk.next() === '}') return members
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

interface Walk {
  next(): string
  expect(character: string): void
  skipSpace(): void
  /** Passes a value and returns it as JSON.stringify would write it. */
  value(): string
}

function walkThrough(text: string): Walk {
  let at = 0
  const strings = stringsOf(text)

  const passString = (): boolean => {
    at = strings.endFrom(at + 1) + 1
    return strings.asWritten()
  }
  const passNumber = (): boolean => {
    const begin = at
    at = numberEnd(text, begin)
    return isPlainNumber(text, begin, at)
  }
  const skipSpace = (): void => {
    while (isSpace(text.charCodeAt(at))) at += 1
  }

  return {
    next: () => text.charAt(at),
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
        if (code === 0x22 || isNumberStart(code)) {
          if (!(code === 0x22 ? passString() : passNumber())) {
            written += text.slice(from, begin) + JSON.stringify(JSON.parse(text.slice(begin, at)))
            from = at
          }
        } else if (isSpace(code)) {
          written += text.slice(from, at)
          skipSpace()
          from = at
        } else {
          // A literal ends with its last letter. Everything else is a single character.
          at += code === 0x66 ? 5 : code === 0x74 || code === 0x6e ? 4 : 1
          if (code === 0x7b || code === 0x5b) depth += 1
          else if (code === 0x7d || code === 0x5d) depth -= 1
        }
      } while (depth > 0 && at < text.length)
      return written + text.slice(from, at)
    },
  }
}
