/** Joins small pieces of a body, down to one byte a chunk (RFC 9112 §7.1): each kept piece costs some 250 bytes more. */
import type { Refusal } from '../../core/reasons.ts'

/** Owns the bytes from then on. */
export type Take = (bytes: Buffer) => Refusal | null

export interface Pieces {
  readonly take: Take
  readonly end: () => Refusal | null
}

const SMALL = 1024

export function isSmall(bytes: Uint8Array): boolean {
  return bytes.length < SMALL
}

/** The small pieces of a body that pass on as they come: hostile ones are refused before the rest has come. */
const AS_THEY_COME = 64

/** Bytes for joining small pieces: a sender who stops can make the gateway hold this much beyond what was counted. */
const ROOM = 4096

/** `take` gets, after the first small pieces, pieces of at least 1 KiB, and one smaller piece between any two of these. */
export function inPieces(take: Take): Pieces {
  let asTheyCome = AS_THEY_COME
  let room: Buffer | null = null
  let filled = 0

  const handOn = (): Refusal | null => {
    if (room === null || filled === 0) return null
    const together = room.subarray(0, filled)
    filled = 0
    // A few bytes would keep the whole buffer in memory.
    if (2 * together.length < ROOM) return take(Buffer.from(together))
    room = null
    return take(together)
  }

  return {
    take(bytes) {
      if (!isSmall(bytes)) return handOn() ?? take(bytes)
      if (asTheyCome > 0) {
        asTheyCome -= 1
        return take(bytes)
      }
      room ??= Buffer.allocUnsafeSlow(ROOM)
      filled += bytes.copy(room, filled)
      return filled > ROOM - SMALL ? handOn() : null
    },
    end: handOn,
  }
}
