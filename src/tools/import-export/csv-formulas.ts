/** Keeps spreadsheets from running what users wrote: formulas get an apostrophe (OWASP, CSV Injection); imports remove it. */

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

export function asText(value: string): string {
  return value.replace(PLAIN, "'")
}

export function fromText(cell: string): string {
  return cell.replace(MARKED, '')
}
