/** Text for terminals: colours only where there is one, and nothing in it that a terminal would obey. */
import { test } from 'tap'
import { harmless, harmlessLines, listed, paintFor } from '../../src/cli/terminal.ts'

void test('colours are for terminals, and not where NO_COLOR is set', (t) => {
  t.equal(paintFor({ isTTY: true }, {})('red', 'x'), '\u001b[31mx\u001b[39m')
  t.equal(paintFor({ isTTY: true }, { NO_COLOR: '' })('red', 'x'), '\u001b[31mx\u001b[39m', 'set, and not empty')
  t.equal(paintFor({ isTTY: true }, { NO_COLOR: '1' })('red', 'x'), 'x')
  t.equal(paintFor({}, {})('red', 'x'), 'x')
  t.equal(paintFor({ isTTY: false }, {})('red', 'x'), 'x')
  t.end()
})

void test('controls and marks of direction are made visible', (t) => {
  t.equal(
    harmless('a\u001b[31m\n\u0085\u202e\u200b\u2028\ud800é😀'),
    'a\\u{1b}[31m\\u{a}\\u{85}\\u{202e}\\u{200b}\\u{2028}\\u{d800}é😀',
  )
  t.end()
})

void test('of several lines the ends stay, and the styles where there are colours', (t) => {
  const [bold, red] = ['\u001b[1mx\u001b[22m', '\u001b[31mx\u001b[39m']
  const others = [
    '\u001b[8m',
    '\u001b[1;31m',
    '\u001b[31',
    '\u001b',
    '\u009b1m',
    '\r',
    '\t',
    '\u007f',
    '\u202e',
    '\u001b[11m',
    '\u001b[0m',
  ]
  const text = `${bold}\n${red}`
  t.equal(harmlessLines(text, { isTTY: true }, {}), text)
  t.equal(harmlessLines(text, { isTTY: true }, { NO_COLOR: '1' }), '\\u{1b}[1mx\\u{1b}[22m\n\\u{1b}[31mx\\u{1b}[39m')
  t.equal(harmlessLines(text, {}, {}), '\\u{1b}[1mx\\u{1b}[22m\n\\u{1b}[31mx\\u{1b}[39m')
  for (const other of others) {
    const made = harmlessLines(`a${other}b`, { isTTY: true }, {})
    t.notMatch(made, /[\p{Cc}\p{Cf}]/u, JSON.stringify(other))
    t.equal(made, harmless(`a${other}b`))
  }
  t.end()
})

void test('every style that the paint has passes', (t) => {
  const paint = paintFor({ isTTY: true }, {})
  for (const style of ['bold', 'dim', 'green', 'red', 'yellow'] as const) {
    t.equal(harmlessLines(paint(style, 'x'), { isTTY: true }, {}), paint(style, 'x'), style)
  }
  t.end()
})

void test('entries stand below each other, and those without a line are left out', (t) => {
  const paint = paintFor({}, {})
  t.equal(
    listed(
      [
        ['a', ['one', 'two\u0007']],
        ['long', []],
        ['b', ['three']],
      ],
      paint,
    ),
    'a     one\n      two\\u{7}\nb     three',
  )
  t.end()
})
