/** JSON for a terminal: the same value, and nothing that a terminal obeys. */
import fc from 'fast-check'
import { test } from 'tap'
import { terminalJson } from '../../src/core/json/terminal-json.ts'

const OBEYED = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

void test('what a terminal obeys is escaped, and nothing else', (t) => {
  t.equal(
    terminalJson(JSON.stringify({ a: '\u001b\u007f\u009b\u202e\u2028\u{e0041}é😀' })),
    String.raw`{"a":"\u001b\u007f\u009b\u202e\u2028\udb40\udc41é😀"}`,
  )
  const plain = JSON.stringify({ a: ['é', '😀', 1, null], b: { c: 'x y' } }, null, 2)
  t.equal(terminalJson(plain), plain)
  t.end()
})

void test('it means the same', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.constantFrom(0, 2), (value, name, indent) => {
      const json = JSON.stringify({ value, [name]: name }, null, indent)
      const made = terminalJson(json)
      t.notMatch(made, OBEYED)
      t.strictSame(JSON.parse(made), JSON.parse(json))
    }),
  )
  t.end()
})
