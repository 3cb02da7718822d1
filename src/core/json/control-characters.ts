/** Looks for control characters in a text in UTF-8, four bytes at a time: a regular expression takes four times as long. */

/** True if a byte is less than 0x20: line breaks and tabs count, too. @param isAscii whether no byte is more than 0x7f */
export function hasControls(bytes: Uint8Array, isAscii: boolean): boolean {
  // Words of four bytes begin at a multiple of four in their buffer.
  const first = -bytes.byteOffset & 3
  const count = (bytes.length - first) >> 2
  if (count <= 0) return bytes.some(isControl)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + first, count)
  const ends = [bytes.subarray(0, first), bytes.subarray(first + 4 * count)]
  return (isAscii ? hasAsciiControls : hasUtf8Controls)(words, count) || ends.some((end) => end.some(isControl))
}

// Both loops end at a number that does not change: V8 would look up the length of the array for each word.

function hasAsciiControls(words: Int32Array, count: number): boolean {
  let all = -1
  let at = 0
  // Of bytes below 0x80, the sum has the highest bit of those that are at least 0x20. There is no carry: no sum exceeds 0xdf.
  for (const end = count - 3; at < end; at += 4) {
    const one = (words[at] as number) + 0x60606060
    const two = (words[at + 1] as number) + 0x60606060
    const three = (words[at + 2] as number) + 0x60606060
    const four = (words[at + 3] as number) + 0x60606060
    all &= one & two & three & four
  }
  for (; at < count; at += 1) all &= (words[at] as number) + 0x60606060
  return (~all & 0x80808080) !== 0
}

function hasUtf8Controls(words: Int32Array, count: number): boolean {
  let found = 0
  // A byte less than 0x20 without its own highest bit has that bit after the subtraction. Borrows only follow such a byte.
  for (let at = 0; at < count; at += 1) {
    const word = words[at] as number
    found |= (word - 0x20202020) & ~word
  }
  return (found & 0x80808080) !== 0
}

function isControl(byte: number): boolean {
  return byte < 0x20
}
