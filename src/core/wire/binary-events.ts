/** AG-UI's binary events (`application/vnd.ag-ui.event+proto`): a 4-byte big-endian length, then a Protocol Buffers message. */
import type { EventBoundary } from './event-boundary.ts'

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
