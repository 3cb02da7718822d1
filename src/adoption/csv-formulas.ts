/**
 * Keeps spreadsheets from running what users wrote: a cell that begins like a formula gets an apostrophe, which spreadsheets read
 * as the mark of a text (OWASP, CSV Injection). The import takes exactly that apostrophe away again.
 */

/** What begins a formula, in the full width of East Asian spreadsheets, too; the blanks are those that spreadsheets take away. */
const BEGINS = '=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20'

/** Where a cell begins, also in a spreadsheet that separates cells by another character than the comma. */
const START = '(?<=(?:^|[,;|\\t\\r\\n])["\\p{Zs}]*)'

// The first look ahead is for speed: a look behind at each of many blanks would go through all of them each time.
const FORMULA = new RegExp(`(?=['${BEGINS}])${START}(?='*[${BEGINS}])`, 'gu')
const MARKED = new RegExp(`(?=')${START}'(?='*[${BEGINS}])`, 'gu')

/** A value as a cell that no spreadsheet takes for a formula. */
export function asText(value: string): string {
  return value.replace(FORMULA, "'")
}

/** The value of such a cell; any other cell is its own value. */
export function fromText(cell: string): string {
  return cell.replace(MARKED, '')
}
