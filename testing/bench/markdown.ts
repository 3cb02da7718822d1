/** How results are written: tables in Markdown, and numbers with as many digits as mean something. */

/** A table: words on the left, numbers on the right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

/** Microseconds. */
export function micros(value: number): string {
  return value < 10 ? value.toFixed(1) : counted(Math.round(value))
}

/** A number, with commas. */
export function counted(value: number): string {
  return value.toLocaleString('en-US')
}

/**
 * A page with a text in the place that two comments mark.
 * @param what the name in the comments: `bench lists`
 * @throws an Error if the page has no such place
 */
export function withText(page: string, what: string, command: string, text: string): string {
  const [begin, end] = [`<!-- ${what}: written by ${command} -->`, `<!-- end of ${what} -->`]
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`a page has no place for ${what}: ${begin} … ${end}`)
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`
}
