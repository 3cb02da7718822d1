/** Removes secrets and terminal controls from findings, whatever answer they came from. */
import type { Finding } from './finding.ts'

/** Shorter values also occur as ordinary words, and are not secrets. */
const LEAST_SECRET = 6

const MOST_TEXT = 600

export function makeRedactor(secrets: readonly string[]): (finding: Finding) => Finding {
  // The longest first: a secret may be part of another.
  const hidden = secrets.filter((secret) => secret.length >= LEAST_SECRET).sort((a, b) => b.length - a.length)
  const any = hidden.length === 0 ? null : new RegExp(hidden.map(literally).join('|'), 'gi')
  const clean = (text: string): string => {
    const without = any === null ? text : text.replace(any, '(hidden)')
    const printable = without.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ')
    return printable.length > MOST_TEXT ? `${printable.slice(0, MOST_TEXT)}…` : printable
  }
  return ({ remedy, ...finding }) => ({
    ...finding,
    message: clean(finding.message),
    ...(remedy === undefined ? {} : { remedy: clean(remedy) }),
  })
}

function literally(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}
