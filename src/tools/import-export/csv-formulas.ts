/**
 * Keeps spreadsheets from running what users wrote: a cell that begins like a formula gets an apostrophe, which spreadsheets read
 * as the mark of a text (OWASP, CSV Injection). The import takes exactly that apostrophe away again.
 */

/** What begins a formula, in the full width of East Asian spreadsheets, too. */
const FORMULA = '=+\\-@\uff1d\uff0b\uff0d\uff20'
/** At the start of a field also what spreadsheets take away before they look. */
const FIRST = `${FORMULA}\\t\\r\\n`
const LEAD = '["\\p{Zs}]*'

/** Where a formula may begin: at the start, and where a spreadsheet that separates by another character begins a cell. */
function places(mark: '' | "'"): RegExp {
  const begins = `(?<=^${LEAD})${mark}(?='*[${FIRST}])|(?<=[,;|\\t\\r\\n]${LEAD})${mark}(?='*[${FORMULA}])`
  // The look ahead is for speed: a look behind at each of many blanks would go through all of them each time.
  return new RegExp(`(?=['${FIRST}])(?:${begins})`, 'gu')
}

const PLAIN = places('')
const MARKED = places("'")

/** A value as a cell that no spreadsheet takes for a formula. */
export function asText(value: string): string {
  return value.replace(PLAIN, "'")
}

/** The value of such a cell; any other cell is its own value. */
export function fromText(cell: string): string {
  return cell.replace(MARKED, '')
}
