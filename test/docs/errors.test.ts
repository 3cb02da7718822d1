/** docs/reference/errors.md is complete: every code and every reason, and nothing else. */
import { test } from 'tap'
import { CODES, REASONS } from '../../src/core/reasons.ts'
import { code, page, rows, section } from './markdown.ts'

const errors = page('docs/reference/errors.md')

const named = (heading: string) => rows(section(errors, heading))

void test('every code, with its status and text', (t) => {
  const written = named('Codes').map(([name, status, text]) => [code(name), Number(status), text])
  t.strictSame(
    written,
    Object.entries(CODES).map(([name, { status, text }]) => [name, status, text]),
  )
  t.end()
})

void test('every reason, with its code', (t) => {
  const written = named('Reasons').map(([reason, of]) => [code(reason), code(of)])
  t.strictSame(written, Object.entries(REASONS))
  t.end()
})

void test('every code and every reason has a cause and a remedy', (t) => {
  for (const [name = '', , , when, remedy] of named('Codes')) {
    t.match(when, /\S/, name)
    t.match(remedy, /\S/, name)
  }
  for (const [name = '', , why, remedy] of named('Reasons')) {
    t.match(why, /\S/, name)
    t.match(remedy, /\S/, name)
  }
  t.end()
})
