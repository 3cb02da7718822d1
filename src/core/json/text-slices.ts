/** Cuts the pieces of a text into slices of similar size, for reading in steps. */

/** The fewest characters of a slice, except the last. A slice has less than twice as many. */
export const SLICE = 32 * 1024

/**
 * @param pieces the text; each piece is emptied when it is taken, so that it is not kept beside the result
 * @returns slices, none of which ends between the halves of a surrogate pair
 */
export function* inSlices(pieces: string[]): Generator<string, undefined, undefined> {
  let waiting = ''
  for (let which = 0; which < pieces.length; which += 1) {
    let piece = waiting + (pieces[which] ?? '')
    pieces[which] = ''
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

/** Returns the given place, or the next place if the given place lies within a surrogate pair. */
export function cutAt(text: string, at: number): number {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at + 1 : at
}
