/** Control characters are found wherever they are, and however the bytes lie in their buffer. */
import { isAscii } from 'node:buffer'
import { test } from 'tap'
import { hasControls } from '../../src/core/json/control-characters.ts'
import { makeJsonReader } from '../../src/core/json/read.ts'
import { atOnce } from '../../src/core/json/steps.ts'

void test('each byte counts as it is, at each place of a word', (t) => {
  // Of ASCII, four words are looked at in one round.
  for (const length of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 31, 32, 35])
    for (let offset = 0; offset < 4; offset += 1)
      for (let at = 0; at < length; at += 1)
        for (let byte = 0; byte < 256; byte += 1) {
          // Around it are the bytes from which a subtraction borrows most, or least.
          for (const around of [0x20, 0x7f, 0x80, 0xff]) {
            const buffer = Buffer.alloc(offset + length + 4, 0)
            const bytes = buffer.subarray(offset, offset + length).fill(around)
            bytes[at] = byte
            for (const ascii of isAscii(bytes) ? [true, false] : [false])
              if (hasControls(bytes, ascii) !== byte < 0x20)
                return t.fail(`${byte} at ${at} of ${length}, from ${offset}, in ${around}`)
          }
        }
  t.equal(hasControls(Buffer.alloc(0), true), false)
  t.end()
})

void test('every piece of a large body is looked at, to its last byte', (t) => {
  const piece = 64 * 1024
  const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(600_000), more: 'y' }))
  const read = (bytes: Buffer) => {
    const reader = makeJsonReader()
    for (let from = 0; from < bytes.length; from += piece) reader.push(bytes.subarray(from, from + piece))
    t.ok(reader.isLarge())
    return atOnce(reader.inSteps([])).outcome
  }
  t.equal(read(body), 'read')
  // 256 KiB are not yet a large body: what came before counts as well as what comes behind.
  for (const at of [9, piece - 1, piece, 256 * 1024 - 1, 256 * 1024, 5 * piece - 1, 9 * piece, body.length - 3]) {
    const other = Buffer.from(body)
    other[at] = 0x0a
    t.equal(read(other), 'refused', String(at))
  }
  t.end()
})

void test('a body that is large for another reason than its length is looked at, too', (t) => {
  const many = `{"a":[${'"b",'.repeat(8200)}"b"],"s":"x?y"}`
  const escaped = `{"\\u0061":"${'b'.repeat(20_000)}","s":"x?y"}`
  for (const text of [many, escaped])
    for (const [between, outcome] of [
      ['-', 'read'],
      ['\n', 'refused'],
    ] as const) {
      const reader = makeJsonReader()
      reader.push(Buffer.from(text.replace('?', between)))
      t.ok(reader.isLarge())
      t.equal(atOnce(reader.inSteps([])).outcome, outcome)
    }
  t.end()
})
