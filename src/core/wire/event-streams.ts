/** The two forms of event streams: server-sent events, and AG-UI's binary events (`application/vnd.ag-ui.event+proto`). */

/** Tracks whether a stream is between two events: only there may the gateway add a comment or an event. */
export interface EventBoundary {
  see(chunk: Uint8Array): void
  between(): boolean
}

// The ends of an event (HTML Standard §9.2.5), with their bytes as a number: LF LF, CR CR, CR LF CR LF.
const LF_LF = 0x0a0a
const CR_CR = 0x0d0d
const CR_LF_CR_LF = 0x0d0a0d0a

export function eventBoundary(): EventBoundary {
  /** The last four bytes, the latest in the lowest position. */
  let last = 0
  let begun = false
  return {
    see(chunk) {
      for (let at = Math.max(0, chunk.length - 4); at < chunk.length; at += 1) last = (last << 8) | (chunk[at] as number)
      begun ||= chunk.length > 0
    },
    between() {
      const lastTwo = last & 0xffff
      return !begun || lastTwo === LF_LF || lastTwo === CR_CR || last === CR_LF_CR_LF
    },
  }
}

/** The length of a binary event: 4 bytes, big-endian. A Protocol Buffers message follows. */
const PREFIX_BYTES = 4

export function frameBoundary(): EventBoundary {
  let prefix = 0
  let prefixBytes = 0
  let left = 0
  return {
    see(chunk) {
      for (let at = 0; at < chunk.length;) {
        if (left > 0) {
          const step = Math.min(left, chunk.length - at)
          left -= step
          at += step
          continue
        }
        prefix = prefix * 256 + (chunk[at] as number)
        prefixBytes += 1
        at += 1
        if (prefixBytes < PREFIX_BYTES) continue
        left = prefix
        prefix = 0
        prefixBytes = 0
      }
    },
    between: () => left === 0 && prefixBytes === 0,
  }
}

/** Field numbers (events.proto of AG-UI): RUN_ERROR among the events, and its parts. */
const FIELD = { runError: 14, baseEvent: 1, type: 1, code: 2, message: 3 }
const RUN_ERROR = 13

export function binaryRunError(message: string, code: string): Uint8Array {
  const text = new TextEncoder()
  const event = delimited(FIELD.runError, [
    ...delimited(FIELD.baseEvent, [FIELD.type << 3, RUN_ERROR]),
    ...delimited(FIELD.code, text.encode(code)),
    ...delimited(FIELD.message, text.encode(message)),
  ])
  const written = new Uint8Array(PREFIX_BYTES + event.length)
  new DataView(written.buffer).setUint32(0, event.length)
  written.set(event, PREFIX_BYTES)
  return written
}

/** A field of bytes: its number with wire type 2, the length as a varint, and the bytes (Protocol Buffers, "Encoding"). */
function delimited(field: number, bytes: ArrayLike<number>): number[] {
  return [...varint((field << 3) | 2), ...varint(bytes.length), ...Array.from(bytes)]
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]
}
