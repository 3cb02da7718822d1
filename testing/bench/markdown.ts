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
