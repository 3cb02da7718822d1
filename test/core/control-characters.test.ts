/** Control characters are found wherever they are, and however the bytes lie in their buffer. */
import { test } from 'tap'
import { hasControlsIn } from '../../src/core/json/control-characters.ts'
import { atOnce } from '../../src/core/json/steps.ts'

const has = (...pieces: readonly Uint8Array[]): boolean => atOnce(hasControlsIn(pieces))

void test('each byte counts as it is, at each place of a word', (t) => {
  for (let length = 0; length <= 12; length += 1)
    for (let offset = 0; offset < 4; offset += 1)
      for (let at = 0; at < length; at += 1)
        for (let byte = 0; byte < 256; byte += 1) {
          // Around it are the bytes from which a subtraction borrows most, or least.
          for (const around of [0x20, 0x7f, 0x80, 0xff]) {
            const buffer = Buffer.alloc(offset + length + 4, 0)
            const bytes = buffer.subarray(offset, offset + length).fill(around)
            bytes[at] = byte
            if (has(bytes) !== byte < 0x20) return t.fail(`${byte} at ${at} of ${length}, from ${offset}, in ${around}`)
          }
        }
  t.equal(has(), false)
  t.equal(has(Buffer.alloc(0)), false)
  t.end()
})

void test('every piece is looked at, to its last byte', (t) => {
  const large = Buffer.alloc(300_001, 'x')
  t.equal(has(large, large), false)
  for (const at of [0, 128 * 1024 - 1, 128 * 1024, 300_000]) {
    const other = Buffer.from(large)
    other[at] = 0x0a
    t.equal(has(large, other), true, String(at))
  }
  t.end()
})
