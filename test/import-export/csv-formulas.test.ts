/** An exported cell is no formula in any spreadsheet, and its value comes back exactly. */
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { test } from 'tap'
import { asText, fromText } from '../../src/tools/import-export/csv-lines.ts'
import { exportLines } from '../../src/tools/import-export/export.ts'
import type { ThreadRow } from '../../src/store/port/administration.ts'
import { read } from './sources.ts'

const FORMULAS = [
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  '\n=1',
  '＝1',
  '＋1',
  '－1',
  '＠a',
  '=cmd|"/C calc"!A0',
  '-',
  '=',
]

/** True for a cell that a spreadsheet may take for a formula. */
const isFormula = (cell: string): boolean => /^["\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(cell)

const row = (name: string, owner = 'corp:alice'): ThreadRow => ({
  ...{ scope: '', threadId: 't-1', owner, agentId: '', name, archived: false, provisional: false },
  ...{ createdAt: 0, lastUsedAt: 0, deletedAt: null },
})

async function exported(rows: readonly ThreadRow[]): Promise<string> {
  async function* all() {
    yield* rows
  }
  let text = ''
  for await (const line of exportLines(all(), 'csv', { deleted: false, scope: false })) text += line
  return text
}

void test('a value that begins like a formula is a text', (t) => {
  for (const formula of FORMULAS) {
    t.equal(asText(formula)[0], "'", JSON.stringify(formula))
    t.equal(fromText(asText(formula)), formula)
  }
  t.equal(asText('=a,=b'), "'=a,'=b")
  t.end()
})

void test('any other value stays as it is, apostrophes too', (t) => {
  for (const value of [
    "'tis",
    "'",
    "''",
    "it's =1",
    'a\r\n\r\nb',
    'a\tb\t\tc',
    'a=b',
    'a-b',
    'corp:alice',
    '2026-01-31T12:00:00Z',
    't-1',
    "o'=x",
    '',
    'a, b',
    "a;'b",
  ]) {
    t.equal(asText(value), value)
    t.equal(fromText(value), value)
  }
  t.end()
})

void test('of several apostrophes the export adds one, and the import takes one', (t) => {
  t.equal(asText("'=1"), "''=1")
  t.equal(asText("''=1"), "'''=1")
  t.equal(fromText("''=1"), "'=1")
  t.equal(fromText("'=1"), '=1')
  t.end()
})

void test('no cell of a file is a formula, whatever the spreadsheet separates cells by', async (t) => {
  const names = [
    ...FORMULAS,
    ...FORMULAS.flatMap((one) =>
      [';', '|', '\t', ',', '\n', '\r\n', ';"', ';""', '; ', ',\u00a0'].map((lead) => `a${lead}${one}`),
    ),
  ]
  const text = await exported(names.map((name) => row(name)))
  for (const delimiter of [',', ';', '\t', '|']) {
    const records = parse(text, { delimiter, relax_quotes: true, relax_column_count: true, record_delimiter: ['\r\n', '\n'] })
    t.same(records.flat().filter(isFormula), [], JSON.stringify(delimiter))
  }
  // A program that knows nothing of quotes.
  t.same(text.split(/[,;|\t\r\n]/).filter(isFormula), [])
})

void test('users are cells, too', async (t) => {
  const text = await exported([row('x', '-corp:a'), row('x', 'corp:a;=1')])
  t.match(text, /^t-1,'-corp:a,/m)
  t.match(text, /^t-1,corp:a;'=1,/m)
})

void test('every value comes back', async (t) => {
  const odd = fc.string({ unit: fc.constantFrom(...`'"=+-@＝;,|\t\r\n \u00a0ab`), maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(odd, fc.string({ unit: 'binary' })), { maxLength: 20 }), async (values) => {
      const names = values.filter((name) => name !== '' && !name.includes('\0') && name.isWellFormed())
      const back = await read(await exported(names.map((name) => row(name))), 'csv')
      t.strictSame(
        back.map((one) => (one.kind === 'row' ? one.facts.name : one)),
        names,
      )
    }),
  )
  fc.assert(fc.property(fc.oneof(odd, fc.string({ unit: 'binary' })), (value) => fromText(asText(value)) === value))
})

void test('a long cell takes no longer for what is in it', (t) => {
  // A pattern that is tried at every character and reads up to the end each time would not end within the time of a test.
  for (const one of [' ', '"', "'", "' ", '=', "'=", '\t', ' "']) {
    const value = one.repeat(65_536 / one.length)
    t.equal(fromText(asText(value)), value)
  }
  t.end()
})
