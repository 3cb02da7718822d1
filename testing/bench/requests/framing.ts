/**
 * Where HTTP/1.1 messages begin and end in what comes on a connection (RFC 9112 §6, §7.1), as cheaply as possible: for a
 * generator of load and a stub, which see nothing but well-formed messages.
 */

/** Is told what comes. */
export interface Listener {
  /** A head, without the empty line. */
  head(text: string): void
  /** Bytes of a body as they come; of a chunked one with the ends of chunks. They are good until this returns. */
  body?(bytes: Buffer): void
  /** A message is there whole. */
  end(): void
}

const LENGTH = /\r\ncontent-length: *(\d+)/i
const CHUNKED = /\r\ntransfer-encoding: *chunked/i

/** Makes the reader of a connection. It takes bytes as they come, and may have them back when it returns. */
export function makeReader(listener: Listener): (bytes: Buffer) => void {
  let held: Buffer | null = null
  let left = 0
  let isChunked = false
  let isWithin = false
  return (bytes) => {
    const all: Buffer = held === null ? bytes : Buffer.concat([held, bytes])
    held = null
    let at = 0
    while (at < all.length) {
      if (left > 0) {
        const end = Math.min(all.length, at + left)
        listener.body?.(all.subarray(at, end))
        left -= end - at
        at = end
      } else {
        const next = isWithin ? chunkAt(all, at) : headAt(all, at)
        if (next < 0) {
          held = Buffer.from(all.subarray(at))
          return
        }
        at = next
      }
      if (isWithin && !isChunked && left === 0) over()
    }
  }

  function headAt(all: Buffer, at: number): number {
    const end = all.indexOf('\r\n\r\n', at, 'latin1')
    if (end < 0) return -1
    const text = all.toString('latin1', at, end)
    const length = LENGTH.exec(text)?.[1]
    left = length === undefined ? 0 : Number(length)
    isChunked = length === undefined && CHUNKED.test(text)
    isWithin = true
    listener.head(text)
    return end + 4
  }

  function chunkAt(all: Buffer, at: number): number {
    const end = all.indexOf('\r\n', at, 'latin1')
    if (end < 0) return -1
    const size = Number.parseInt(all.toString('latin1', at, end), 16)
    if (size > 0) {
      // Its data, and the end of line behind it.
      left = size + 2
      return end + 2
    }
    // No trailers: nobody sends any here.
    if (all.length < end + 4) return -1
    over()
    return end + 4
  }

  function over(): void {
    isWithin = false
    listener.end()
  }
}
