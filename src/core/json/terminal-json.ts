/** Writes JSON that is safe to print on a terminal. */

/** C0, DEL, C1, direction marks, invisible characters and line separators. JSON.stringify escapes C0 alone. */
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** @param json the output of JSON.stringify: outside strings its only controls are ends of lines */
export function terminalJson(json: string): string {
  return json.replaceAll(OBEYED, (one) => (one === '\n' ? one : one.replaceAll(/[^]/g, escaped)))
}

/** RFC 8259 §7: a character beyond the first plane has two code units. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
