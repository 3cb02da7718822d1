/** Writes JSON that is safe to print on a terminal. */

/** C0, DEL, C1, direction marks, invisible characters and line separators. JSON.stringify escapes C0 alone. */
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/**
 * Escapes JSON without changing its meaning, so that a terminal obeys only the ends of lines.
 * @param json the output of JSON.stringify: outside strings its only controls are ends of lines
 */
export function terminalJson(json: string): string {
  return json.replaceAll(OBEYED, (one) => (one === '\n' ? one : one.replaceAll(/[^]/g, escaped)))
}

/** Escapes a code unit of UTF-16 (RFC 8259 section 7). A character beyond the first plane has two code units. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
