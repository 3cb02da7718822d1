/** Cuts the pieces of a text into slices of one size: what is read in steps is read one slice at a time. */

/** A slice has at least so many characters, but for the last one, and less than twice as many. */
export const SLICE = 32 * 1024

/**
 * Cuts a text.
 * @param pieces of it; each is emptied when it was taken, so that it is not kept beside what is made of it
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

/** The place that is given, or the one behind it where that lies within a surrogate pair. */
export function cutAt(text: string, at: number): number {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at + 1 : at
}
