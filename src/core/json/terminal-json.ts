/** JSON as a terminal may get it. */

/** C0, DEL, C1, what turns the direction of writing or is invisible, separators of lines; JSON.stringify escapes C0 alone. */
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/**
 * JSON with the same meaning, in which a terminal obeys nothing but the ends of lines.
 * @param json what JSON.stringify wrote: it has no control outside of strings but ends of lines
 */
export function terminalJson(json: string): string {
  return json.replaceAll(OBEYED, (one) => (one === '\n' ? one : one.replaceAll(/[^]/g, escaped)))
}

/** RFC 8259 section 7: a code unit of UTF-16; a character beyond the first plane has two of them. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
