/** Reads the lines of a CSV file (RFC 4180) with a header, as a stream. */
import { sizeText } from '../../document/quantities.ts'
import { pipeline, Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { SourceFault, type SourceLine } from './problem.ts'
import { suggestion } from '../../document/nearest.ts'

/** The longest record, in bytes: otherwise a quote that is never closed would take in the whole file. */
const MOST_RECORD = 64 * 1024

interface Parsed {
  readonly record: readonly string[]
  readonly info: { readonly lines: number }
}

/** @throws SourceFault for an invalid header, text that is not UTF-8, and quotes without a clear end: then no line is certain */
export async function* csvLines<C extends string>(
  bytes: AsyncIterable<Uint8Array>,
  columns: readonly C[],
  required: readonly C[],
): AsyncGenerator<SourceLine<C>> {
  const parser = parse({
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: MOST_RECORD,
  })
  // Its errors come out of the parser, which is read below.
  pipeline(Readable.from(decoded(bytes)), parser, () => {})
  let header: readonly C[] | undefined
  try {
    for await (const { record, info } of parser as AsyncIterable<Parsed>) {
      if (header === undefined) header = readHeader(record, columns, required)
      else if (record.length === header.length) yield { line: info.lines, fields: fieldsOf(header, record) }
      else yield { line: info.lines, fault: `it has ${record.length} fields, but the header has ${header.length}` }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new SourceFault(`line ${String(error['lines'])}: ${faultOf(error.code)}`)
  }
  if (header === undefined) throw new SourceFault('the file is empty: the first line must name the columns')
}

function readHeader<C extends string>(record: readonly string[], columns: readonly C[], required: readonly C[]): readonly C[] {
  for (const [at, name] of record.entries()) {
    if (!(columns as readonly string[]).includes(name))
      throw new SourceFault(`line 1: the format has no column "${name}": ${suggestion(name, columns, 'it has')}`)
    if (record.indexOf(name) !== at) throw new SourceFault(`line 1: the column "${name}" occurs twice`)
  }
  for (const name of required) if (!record.includes(name)) throw new SourceFault(`line 1: the column "${name}" is missing`)
  return record as readonly C[]
}

function fieldsOf<C extends string>(header: readonly C[], record: readonly string[]): Partial<Record<C, string>> {
  const fields: Partial<Record<C, string>> = {}
  for (const [at, name] of header.entries()) fields[name] = fromText(record[at] ?? '')
  return fields
}

function faultOf(code: string): string {
  switch (code) {
    case 'CSV_MAX_RECORD_SIZE':
      return `it is longer than ${sizeText(MOST_RECORD)}: check that the quotes before it are closed`
    case 'CSV_QUOTE_NOT_CLOSED':
      return 'a quote is not closed'
    default:
      return 'a quote is in a wrong place: quote the whole field, and write each quote in it twice'
  }
}

async function* decoded(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let line = 1
  try {
    for await (const chunk of bytes) {
      const text = decoder.decode(chunk, { stream: true })
      yield text
      line += text.split('\n').length - 1
    }
    yield decoder.decode()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new SourceFault(`the file is not UTF-8 after line ${line}: save it as UTF-8`)
  }
}

/** The characters that begin a formula, including the full-width ones of East Asian spreadsheets. */
const FORMULA = '=+\\-@\uff1d\uff0b\uff0d\uff20'
/** At the start of a field, spreadsheets also strip these characters before they look. */
const FIRST = `${FORMULA}\\t\\r\\n`
const LEAD = '["\\p{Zs}]*'

/** The places where a formula may begin: the start, and the start of a cell in a spreadsheet that uses another separator. */
function places(mark: '' | "'"): RegExp {
  const begins = `(?<=^${LEAD})${mark}(?='*[${FIRST}])|(?<=[,;|\\t\\r\\n]${LEAD})${mark}(?='*[${FORMULA}])`
  // The look-ahead is for speed: a look-behind at each of many blanks would go through all of them each time.
  return new RegExp(`(?=['${FIRST}])(?:${begins})`, 'gu')
}

const PLAIN = places('')
const MARKED = places("'")

/** Keeps spreadsheets from running what users wrote (OWASP, CSV Injection). Imports remove the apostrophe. */
export function asText(value: string): string {
  return value.replace(PLAIN, "'")
}

export function fromText(cell: string): string {
  return cell.replace(MARKED, '')
}
