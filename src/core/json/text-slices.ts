/** Cuts the pieces of a text into slices of similar size, for reading in steps. */

/** In characters. Only the last slice may have fewer; each has less than twice as many. */
export const SLICE = 32 * 1024

/** No slice ends between the halves of a surrogate pair. */
export function* inSlices(pieces: Iterable<string>): Generator<string, undefined, undefined> {
  let waiting = ''
  for (const next of pieces) {
    let piece = waiting + next
    while (piece.length >= 2 * SLICE) {
      const end = cutAt(piece, SLICE)
      yield piece.slice(0, end)
      piece = piece.slice(end)
    }
    if (piece.length >= SLICE) {
      yield piece
      waiting = ''
    } else waiting = piece
  }
  if (waiting !== '') yield waiting
  return undefined
}

export function cutAt(text: string, at: number): number {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at + 1 : at
}
