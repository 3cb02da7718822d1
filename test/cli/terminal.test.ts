/** Text for terminals: colours only where there is one, and nothing in it that a terminal would obey. */
import { test } from 'tap'
import { complain, harmless, harmlessLines, listed, paintFor } from '../../src/cli/terminal.ts'
import { ended } from './in-process.ts'

const TERMINAL = { TERM: 'xterm' }

void test('colours are for terminals, and not where NO_COLOR is set', (t) => {
  const red = '\u001b[31mx\u001b[39m'
  t.equal(paintFor({ isTTY: true }, TERMINAL)('red', 'x'), red)
  t.equal(paintFor({ isTTY: true }, { ...TERMINAL, NO_COLOR: '' })('red', 'x'), red, 'set, and not empty')
  t.equal(paintFor({ isTTY: true }, { ...TERMINAL, NO_COLOR: '1' })('red', 'x'), 'x')
  t.equal(paintFor({ isTTY: true }, { TERM: 'dumb' })('red', 'x'), 'x', 'a terminal without colours')
  t.equal(paintFor({ isTTY: false }, { ...TERMINAL, FORCE_COLOR: '1' })('red', 'x'), red, 'a pipe of an operator who wants them')
  t.equal(paintFor({ isTTY: true }, { ...TERMINAL, FORCE_COLOR: '0' })('red', 'x'), 'x')
  t.equal(paintFor({ isTTY: false }, TERMINAL)('red', 'x'), 'x', 'a pipe')
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
  t.equal(harmlessLines(text, { isTTY: true }, TERMINAL), text)
  t.equal(harmlessLines(text, { isTTY: true }, { ...TERMINAL, NO_COLOR: '1' }), '\\u{1b}[1mx\\u{1b}[22m\n\\u{1b}[31mx\\u{1b}[39m')
  t.equal(harmlessLines(text, {}, {}), '\\u{1b}[1mx\\u{1b}[22m\n\\u{1b}[31mx\\u{1b}[39m')
  for (const other of others) {
    const made = harmlessLines(`a${other}b`, { isTTY: true }, TERMINAL)
    t.notMatch(made, /[\p{Cc}\p{Cf}]/u, JSON.stringify(other))
    t.equal(made, harmless(`a${other}b`))
  }
  t.end()
})

void test('every style that the paint has passes', (t) => {
  const paint = paintFor({ isTTY: true }, TERMINAL)
  for (const style of ['bold', 'dim', 'green', 'red', 'yellow'] as const) {
    t.equal(harmlessLines(paint(style, 'x'), { isTTY: true }, TERMINAL), paint(style, 'x'), style)
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

void test('errors and warnings are coloured on a terminal, and nothing that follows them', async (t) => {
  const said = (surroundings: Parameters<typeof ended>[3]) =>
    ended(
      t,
      [],
      (_, terminal) => {
        for (const line of ['error: \u001b[1mwrong', 'warning: odd', 'an error: none']) complain(terminal, line)
        return Promise.resolve(0)
      },
      surroundings,
    )
  t.equal(
    (await said({ isTTY: true })).stderr,
    '\u001b[31merror:\u001b[39m \\u{1b}[1mwrong\n\u001b[33mwarning:\u001b[39m odd\nan error: none\n',
  )
  t.equal((await said({})).stderr, 'error: \\u{1b}[1mwrong\nwarning: odd\nan error: none\n')
})
