/** The strings of a JSON text end at the same quotes, whether they are looked for in the text or in its bytes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { stringsOf, type Text } from '../../src/core/json/syntax.ts'
import { runsOf } from '../../testing/support/sample.ts'

interface Seen {
  /** What follows the quote at which a string begins, up to the quote at which it ends. */
  readonly inside: string
  readonly hasEscapes: boolean
  readonly asWritten: boolean
}

/** Walks from string to string, as the readers do. `part` cuts out what lies between two places. */
function seen(text: Text, part: (from: number, to: number) => string): readonly Seen[] {
  const strings = stringsOf(text)
  const all: Seen[] = []
  for (let at = 0; at < text.length; at += 1) {
    if (part(at, at + 1) !== '"') continue
    const end = strings.endFrom(at + 1)
    all.push({ inside: part(at + 1, end), hasEscapes: strings.hasEscapes, asWritten: strings.asWritten() })
    at = end
  }
  return all
}

/** The same, by a regular expression. */
function expected(text: string): readonly Seen[] {
  return [...text.matchAll(/"((?:[^"\\]|\\[^])*\\?)(?:"|$)/gu)].map(([, inside = '']) => {
    const escapes = [...inside.matchAll(/\\([^]?)/gu)].map(([, behind]) => behind)
    return {
      inside,
      hasEscapes: escapes.length > 0,
      asWritten: !escapes.some((behind) => behind === 'u' || behind === '/'),
    }
  })
}

void test('a string ends at the first quote behind it that no backslash escapes', (t) => {
  // Long ones: bytes near the beginning of a string are looked at one by one, others by Buffer.indexOf.
  const inside = fc.oneof(
    fc.constantFrom('', 'a', '\\\\', '\\"', '\\n', '\\/', '\\u0061', '\\\\u', '\\\\/', 'é', '漢', '😀', ' '),
    fc.nat(60).map((length) => 'x'.repeat(length)),
    fc.nat(60).map((length) => '\\\\'.repeat(length)),
  )
  const string = fc.array(inside, { maxLength: 5 }).map((parts) => `"${parts.join('')}"`)
  const text = fc
    .array(fc.oneof(string, fc.constantFrom(':', ',', '{', ' ', '1')), { maxLength: 8 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, fc.nat(3), (whole, less) => {
      // A piece may end within a string and within an escape.
      const one = whole.slice(0, Math.max(0, whole.length - less))
      const meant = expected(one)
      if (!one.isWellFormed()) return
      assert.deepEqual(
        seen(one, (from, to) => one.slice(from, to)),
        meant,
      )
      const bytes = Buffer.from(one)
      assert.deepEqual(
        seen(bytes, (from, to) => bytes.toString('utf8', from, to)),
        meant,
      )
    }),
    { numRuns: runsOf(3000, 5) },
  )
  t.end()
})

void test('a text that ends within an escape is said to do so', (t) => {
  for (const [text, isCut] of [
    ['"a', false],
    ['"a\\', true],
    ['"a\\\\', false],
    ['"a\\\\\\', true],
    [`"${'\\\\'.repeat(40)}\\`, true],
  ] as const)
    for (const one of [text, Buffer.from(text)]) {
      const strings = stringsOf(one)
      t.equal(strings.endFrom(1), text.length)
      t.equal(strings.cut(), isCut, text)
    }
  t.end()
})
