/**
 * Knows whether a byte stream of server-sent events stands between two events, where a comment may be put in without
 * cutting one (HTML Standard §9.2.5: an event ends with an empty line; lines end with LF, CR LF or CR).
 */
export interface EventBoundary {
  /** Takes the next bytes of the stream. */
  see(chunk: Uint8Array): void
  /** True before the first byte and after an empty line. */
  between(): boolean
}

const LF = 0x0a
const CR = 0x0d

/** Starts at the beginning of a stream. */
export function eventBoundary(): EventBoundary {
  let tail = ''
  return {
    see(chunk) {
      const last = chunk.subarray(-4)
      tail = (tail + last.reduce((text, byte) => text + (byte === LF ? 'n' : byte === CR ? 'r' : '.'), '')).slice(-4)
    },
    between: () => tail === '' || tail.endsWith('nn') || tail === 'rnrn' || tail.endsWith('rr'),
  }
}
