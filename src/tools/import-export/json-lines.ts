/** Reads the lines of a file with a JSON object in each, as a stream. */
import { sizeText } from '../../document/quantities.ts'
import { makeJsonReader } from '../../core/json/read.ts'
import { isRefusal } from '../../core/reasons.ts'
import type { SourceLine } from './problem.ts'
import { suggestion } from '../../document/nearest.ts'

/** The longest line, in bytes. */
const MOST_LINE = 64 * 1024
const NEWLINE = 0x0a
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** Empty lines are left out. */
export async function* jsonLines<C extends string>(
  bytes: AsyncIterable<Uint8Array>,
  columns: readonly C[],
): AsyncGenerator<SourceLine<C>> {
  let line = 0
  for await (const text of splitLines(bytes)) {
    line += 1
    if (text === 'too-long') yield { line, fault: `it is longer than ${sizeText(MOST_LINE)}` }
    else if (text.some((byte) => byte > 0x20)) yield { line, ...read(text, columns) }
  }
}

function read<C extends string>(
  text: Buffer,
  columns: readonly C[],
): { readonly fault: string } | { readonly fields: Readonly<Partial<Record<C, unknown>>> } {
  const reader = makeJsonReader()
  const reading = reader.push(text) ?? reader.end()
  if (isRefusal(reading)) return { fault: faultOf(reading.reason) }
  const unknown = Object.keys(reading.value).find((key) => !(columns as readonly string[]).includes(key))
  if (unknown !== undefined) return { fault: `the format has no key "${unknown}": ${suggestion(unknown, columns, 'it has')}` }
  return { fields: reading.value as Partial<Record<C, unknown>> }
}

function faultOf(reason: string): string {
  switch (reason) {
    case 'body-not-utf8':
      return 'it is not UTF-8'
    case 'body-key-repeated':
      return 'it has a key twice'
    default:
      return 'it is not a JSON object'
  }
}

/** Splits at newlines; it does not keep a line that is too long. */
async function* splitLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | 'too-long'> {
  let held: Uint8Array[] = []
  let length = 0
  let isFirst = true
  const taken = (): Buffer | 'too-long' => {
    const whole = Buffer.concat(held)
    const marked = isFirst && whole.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    const line = length > MOST_LINE ? 'too-long' : marked ? whole.subarray(BYTE_ORDER_MARK.length) : whole
    held = []
    length = 0
    isFirst = false
    return line
  }
  const hold = (piece: Uint8Array): void => {
    length += piece.length
    if (length <= MOST_LINE) held.push(piece)
    else held = []
  }
  for await (const chunk of bytes) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      hold(chunk.subarray(from, end))
      yield taken()
      from = end + 1
    }
    hold(chunk.subarray(from))
  }
  if (length > 0) yield taken()
}
