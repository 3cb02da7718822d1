/** Reads AG-UI events from server-sent events (HTML Standard §9.2.6), without keeping them: a large event costs no memory. */
import { usageTokens, type EventScanner, type SeenEvent, type UsageEntry } from './run-events.ts'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const UNICODE_ESCAPE = 0x75

const DATA = 'data'

/** Names, types and usage that are longer are none that the gateway knows. */
const MOST_NAME = 64
const MOST_USAGE = 64 * 1024

export function textEvents(take: (event: SeenEvent) => void): EventScanner {
  const json = jsonEvent()
  /** Of a line: its name; then its value, or what is skipped. */
  let part: 'name' | 'first' | 'value' | 'skipped' = 'name'
  let name = ''
  let hasData = false
  let afterCr = false

  const dispatch = (): void => {
    if (hasData) take(json.finish())
    hasData = false
  }
  const endLine = (): void => {
    if (part === 'name' && name === '') dispatch()
    part = 'name'
    name = ''
  }
  return {
    see(chunk) {
      for (let at = 0; at < chunk.length;) {
        const byte = chunk[at] as number
        if (byte === LF || byte === CR) {
          if (byte === CR || !afterCr) endLine()
          afterCr = byte === CR
          at += 1
          continue
        }
        afterCr = false
        if (part === 'name') {
          if (byte === COLON) part = name === DATA ? 'first' : 'skipped'
          else if (name.length <= DATA.length) name += String.fromCharCode(byte)
          at += 1
          continue
        }
        if (part === 'first') {
          part = 'value'
          hasData = true
          if (byte === SPACE) {
            at += 1
            continue
          }
        }
        const end = endOfLine(chunk, at)
        if (part === 'value') json.see(chunk, at, end)
        at = end
      }
    },
    underWay: () => json.text(),
    // A client reads the last event also where the stream ends without the empty line.
    end: dispatch,
  }
}

function endOfLine(chunk: Uint8Array, from: number): number {
  let at = from
  while (at < chunk.length && chunk[at] !== LF && chunk[at] !== CR) at += 1
  return at
}

function isOpening(byte: number): boolean {
  return byte === 0x5b || byte === 0x7b
}

function isClosing(byte: number): boolean {
  return byte === 0x5d || byte === 0x7d
}

function endOfText(chunk: Uint8Array, from: number, to: number): number {
  let at = from
  while (at < to && chunk[at] !== QUOTE && chunk[at] !== BACKSLASH) at += 1
  return at
}

interface JsonEvent {
  see(chunk: Uint8Array, from: number, to: number): void
  text(): number
  finish(): SeenEvent
}

type Member = 'key' | 'type' | 'delta' | 'other'

/** Follows the members of one object: `type`, the bytes of the string `delta`, and `usage`. Nothing inside of others counts. */
function jsonEvent(): JsonEvent {
  let depth = 0
  let key = ''
  /** What the string under way is; null outside of strings. */
  let string: Member | null = null
  let isEscaped = false
  /** Digits of a Unicode escape that are still to come. */
  let digits = 0
  let awaitsKey = false
  let type = ''
  let text = 0
  let usage: number[] | null = null
  let usageText = ''

  const reset = (): void => {
    depth = 0
    key = type = usageText = ''
    string = usage = null
    isEscaped = awaitsKey = false
    digits = text = 0
  }
  const keep = (kept: string, byte: number): string => (kept.length < MOST_NAME ? kept + String.fromCharCode(byte) : kept)

  /** A character as an escape counts two bytes at most, so that the count stays a floor. */
  const inString = (byte: number): void => {
    if (digits > 0) {
      digits -= 1
      return
    }
    if (isEscaped) {
      isEscaped = false
      if (byte === UNICODE_ESCAPE) digits = 4
      if (string === 'delta') text += byte === UNICODE_ESCAPE ? 2 : 1
      return
    }
    if (byte === BACKSLASH) {
      isEscaped = true
      // Not decoded: a name with an escape is none that the gateway knows.
      if (string === 'key') key = keep(key, byte)
      if (string === 'type') type = keep(type, byte)
    } else if (byte === QUOTE) string = null
    else if (string === 'delta') text += 1
    else if (string === 'key') key = keep(key, byte)
    else if (string === 'type') type = keep(type, byte)
  }
  const beginString = (): void => {
    if (depth !== 1) string = 'other'
    else if (awaitsKey) {
      string = 'key'
      key = ''
    } else string = key === 'type' || key === 'delta' ? key : 'other'
    if (string === 'type') type = ''
  }
  const endUsage = (): void => {
    if (usage === null) return
    usageText = usage.length > MOST_USAGE ? '' : new TextDecoder().decode(new Uint8Array(usage))
    usage = null
  }
  const outside = (byte: number): void => {
    if (byte === QUOTE) beginString()
    else if (isOpening(byte)) {
      depth += 1
      if (depth === 1) awaitsKey = true
    } else if (isClosing(byte)) depth -= 1
    else if (depth !== 1) return
    else if (byte === COMMA) awaitsKey = true
    else if (byte === COLON) {
      awaitsKey = false
      // As for every reader of JSON, the last of several members with one name counts.
      if (key === 'usage') usage = []
    }
  }
  return {
    see(chunk, from, to) {
      for (let at = from; at < to; at += 1) {
        // Most of a stream: nothing of it is looked at byte by byte.
        if ((string === 'delta' || string === 'other') && usage === null && !isEscaped && digits === 0) {
          const end = endOfText(chunk, at, to)
          if (string === 'delta') text += end - at
          at = end
          if (at === to) return
        }
        const byte = chunk[at] as number
        if (string === null && depth === 1 && (byte === COMMA || isClosing(byte))) endUsage()
        const isOfUsage = usage !== null
        if (string === null) outside(byte)
        else inString(byte)
        if (isOfUsage && usage !== null && usage.length <= MOST_USAGE) usage.push(byte)
      }
    },
    text: () => text,
    finish() {
      const seen = { kind: KINDS.get(type) ?? 'other', text, usage: usageIn(usageText) } as const
      reset()
      return seen
    },
  }
}

const KINDS: ReadonlyMap<string, SeenEvent['kind']> = new Map([
  ['RUN_STARTED', 'run-started'],
  ['RUN_FINISHED', 'run-over'],
  ['RUN_ERROR', 'run-over'],
])

function usageIn(text: string): number {
  if (text === '') return 0
  try {
    const usage: unknown = JSON.parse(text)
    return Array.isArray(usage) ? usageTokens(usage.filter(isEntry)) : 0
  } catch {
    return 0
  }
}

function isEntry(value: unknown): value is UsageEntry {
  return typeof value === 'object' && value !== null
}
