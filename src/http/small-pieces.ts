/**
 * Puts small pieces of a body together. Its sender chooses how it is cut, down to a byte a chunk (RFC 9112 §7.1), and a piece
 * that is kept costs some 250 bytes besides its own: the bounds on bodies would hold for what is counted, and not for what
 * is held.
 */
import type { Refusal } from '../core/reasons.ts'

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

/** Where small pieces are put together: as much as a sender who stops can make the gateway hold beyond what was counted. */
const ROOM = 4096

/**
 * Hands a body on.
 * @param take is handed pieces of at least 1 KiB, but for one between two of these, and the last one
 */
export function inPieces(take: Take): Pieces {
  /** A small piece that nothing has come behind yet. */
  let alone: Buffer | null = null
  let room: Buffer | null = null
  let filled = 0

  const handOn = (): Refusal | null => {
    if (alone !== null) {
      const one = alone
      alone = null
      return take(one)
    }
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
      if (alone === null && filled === 0) {
        alone = bytes
        return null
      }
      room ??= Buffer.allocUnsafeSlow(ROOM)
      if (alone !== null) {
        filled = alone.copy(room)
        alone = null
      }
      filled += bytes.copy(room, filled)
      return filled > ROOM - SMALL ? handOn() : null
    },
    end: handOn,
  }
}
