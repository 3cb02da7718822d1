/**
 * Puts small pieces of a body together. Its sender chooses how it is cut, down to a byte a chunk (RFC 9112 §7.1), and a piece
 * that is kept costs some 250 bytes besides its own: the bounds on bodies would hold for what is counted, and not for what
 * is held.
 */
import type { Refusal } from '../../core/reasons.ts'

/** Takes the next bytes of a body, or refuses them. They are its own from then on. */
export type Take = (bytes: Buffer) => Refusal | null

/** A body, handed on in pieces that are worth keeping. */
export interface Pieces {
  /** Takes the next bytes; of small pieces they may wait for more. */
  readonly take: Take
  /** Hands on what still waits, at the end of the body. */
  readonly end: () => Refusal | null
}

const SMALL = 1024

/** True for a piece that costs more to keep by itself than it is worth. */
export function isSmall(bytes: Uint8Array): boolean {
  return bytes.length < SMALL
}

/** So many small ones of a body are handed on as they come: what is hostile in them is refused before the rest has come. */
const AS_THEY_COME = 64

/** Where small pieces are put together: as much as a sender who stops can make the gateway hold beyond what was counted. */
const ROOM = 4096

/**
 * Hands a body on.
 * @param take is handed, behind the first small pieces, such of at least 1 KiB, and one between any two of these
 */
export function inPieces(take: Take): Pieces {
  let asTheyCome = AS_THEY_COME
  let room: Buffer | null = null
  let filled = 0

  const handOn = (): Refusal | null => {
    if (room === null || filled === 0) return null
    const together = room.subarray(0, filled)
    filled = 0
    // A few bytes would keep all of the room.
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
