/** Reads AG-UI's binary events (Protocol Buffers, each after its length) without keeping them: a large event costs no memory. */
import { addTokens, usageTokens, type EventScanner, type SeenEvent, type UsageEntry } from './run-events.ts'

interface Message {
  readonly kind: SeenEvent['kind']
  /** The field of its text, and of its entries of usage. */
  readonly delta?: number
  readonly usage?: number
}

/** Events that matter, by the field of the envelope (events.proto of AG-UI 1.0). */
const MESSAGES: ReadonlyMap<number, Message> = new Map([
  [2, { kind: 'other', delta: 3 }], // TEXT_MESSAGE_CONTENT
  [5, { kind: 'other', delta: 3 }], // TOOL_CALL_ARGS
  [12, { kind: 'run-started' }],
  [13, { kind: 'run-over', usage: 7 }], // RUN_FINISHED
  [14, { kind: 'run-over', usage: 4 }], // RUN_ERROR
  [17, { kind: 'other', delta: 4 }], // TEXT_MESSAGE_CHUNK
  [18, { kind: 'other', delta: 5 }], // TOOL_CALL_CHUNK
  [27, { kind: 'other', delta: 4 }], // REASONING_MESSAGE_CONTENT
  [29, { kind: 'other', delta: 4 }], // REASONING_MESSAGE_CHUNK
])

const USAGE_FIELDS: ReadonlyMap<number, keyof UsageEntry> = new Map([
  [3, 'inputTokens'],
  [4, 'outputTokens'],
  [5, 'totalTokens'],
])

const PREFIX_BYTES = 4
/** Two labels and six numbers. */
const MOST_ENTRY = 4096
const MOST_VARINT_BYTES = 10

export function frameEvents(take: (event: SeenEvent) => void): EventScanner {
  let prefix = 0
  let prefixBytes = 0
  let frameLeft = 0
  /** The event that is being read, and how much of it is left; null in the envelope. */
  let message: Message | null = null
  let messageLeft = 0
  let expects: 'tag' | 'length' | 'number' = 'tag'
  let field = 0
  let varint = 0
  let varintBytes = 0
  let skip = 0
  let entry: number[] | null = null
  let kind: SeenEvent['kind'] = 'other'
  let text = 0
  let usage = 0

  const endFrame = (): void => {
    take({ kind, text, usage })
    message = null
    entry = null
    kind = 'other'
    expects = 'tag'
    text = usage = skip = varint = varintBytes = messageLeft = 0
  }
  const consumed = (bytes: number): void => {
    frameLeft -= bytes
    if (message !== null) {
      messageLeft -= bytes
      if (messageLeft <= 0 && skip === 0) message = null
    }
    if (frameLeft === 0) endFrame()
  }
  const endSkip = (): void => {
    // Added at once: a frame may have any number of entries.
    if (entry !== null) usage = addTokens(usage, usageTokens([usageEntry(entry)]))
    entry = null
  }
  const readLength = (length: number): void => {
    expects = 'tag'
    const known = message === null ? MESSAGES.get(field) : undefined
    if (known !== undefined) {
      if (known.kind !== 'other') ({ kind } = known)
      message = known
      // The byte that ended this length is counted next.
      messageLeft = length + 1
      return
    }
    skip = length
    if (field === message?.delta) text += Math.min(length, frameLeft)
    if (field === message?.usage && length <= MOST_ENTRY) entry = []
    if (length === 0) endSkip()
  }
  const readTag = (tag: number): void => {
    field = Math.floor(tag / 8)
    switch (tag % 8) {
      case 0:
        expects = 'number'
        return
      case 1:
        skip = 8
        return
      case 2:
        expects = 'length'
        return
      case 5:
        skip = 4
        return
      default:
        // Unreadable from here on, as for every reader.
        skip = Number.MAX_SAFE_INTEGER
    }
  }
  const readByte = (byte: number): void => {
    varint += (byte & 127) * 2 ** (7 * varintBytes)
    varintBytes += 1
    if (byte >= 128 && varintBytes < MOST_VARINT_BYTES) return
    const value = varint
    varint = varintBytes = 0
    if (expects === 'tag') readTag(value)
    else if (expects === 'length') readLength(value)
    else expects = 'tag'
  }
  return {
    see(chunk) {
      for (let at = 0; at < chunk.length;) {
        if (frameLeft === 0) {
          prefix = prefix * 256 + (chunk[at] as number)
          prefixBytes += 1
          at += 1
          if (prefixBytes < PREFIX_BYTES) continue
          frameLeft = prefix
          prefix = prefixBytes = 0
          continue
        }
        if (skip === 0) {
          readByte(chunk[at] as number)
          at += 1
          consumed(1)
          continue
        }
        const step = Math.min(skip, chunk.length - at, frameLeft)
        for (let of = at; entry !== null && of < at + step; of += 1) entry.push(chunk[of] as number)
        skip -= step
        at += step
        if (skip === 0) endSkip()
        consumed(step)
      }
    },
    underWay: () => text,
    // A frame that is not whole is no event.
    end() {},
  }
}

/** As for every reader, the last of several fields with one number counts. */
function usageEntry(bytes: readonly number[]): UsageEntry {
  const entry: Partial<Record<keyof UsageEntry, number>> = {}
  let at = 0
  const read = (): number => {
    let value = 0
    for (let digit = 0; at < bytes.length && digit < MOST_VARINT_BYTES; digit += 1) {
      const byte = bytes[at] as number
      at += 1
      value += (byte & 127) * 2 ** (7 * digit)
      if (byte < 128) break
    }
    return value
  }
  while (at < bytes.length) {
    const tag = read()
    const wire = tag % 8
    const name = USAGE_FIELDS.get(Math.floor(tag / 8))
    if (wire === 0) {
      const value = read()
      if (name !== undefined) entry[name] = value
    } else if (wire === 2) {
      const length = read()
      at += length
    } else if (wire === 1) at += 8
    else if (wire === 5) at += 4
    else break
  }
  return entry
}
