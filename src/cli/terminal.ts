/** Formats text for a terminal: with colour where the terminal has it, and without control sequences from others. */
import type { Readable, Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { largest } from '../core/json/extremes.ts'
import { terminalJson } from '../core/json/terminal-json.ts'

export type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow'

export type Paint = (style: Style, text: string) => string

type Stream = { readonly isTTY?: boolean }

/** The streams and the environment of a command, as `process` has them. */
export interface Terminal {
  readonly stdin: Readable & Stream
  readonly stdout: Writable & Stream
  readonly stderr: Writable & Stream
  readonly env: NodeJS.ProcessEnv
}

/**
 * As styleText validates a stream, with the environment of the command instead of that of the process: Node knows
 * FORCE_COLOR, NO_COLOR (https://no-color.org), NODE_DISABLE_COLORS and TERM. Without FORCE_COLOR only a terminal has colours.
 */
function isColoured(stream: Stream, environment: NodeJS.ProcessEnv): boolean {
  if (stream.isTTY !== true && environment['FORCE_COLOR'] === undefined) return false
  // Older versions of Node also obey an empty NO_COLOR.
  const { NO_COLOR: none, ...others } = environment
  return WriteStream.prototype.getColorDepth.call(stream, (none ?? '') === '' ? others : environment) > 2
}

export function paintFor(stream: Stream, environment: NodeJS.ProcessEnv): Paint {
  return isColoured(stream, environment)
    ? (style, text) => styleText(style, text, { validateStream: false })
    : (_style, text) => text
}

/** What a terminal obeys, changes the writing direction or is invisible: C0, DEL, C1, bidi overrides, line separators. */
const OBEYED = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}'
const EVERY_ONE = new RegExp(`[${OBEYED}]`, 'gu')
const BUT_LINES = new RegExp(`\\n|[${OBEYED}]`, 'gu')
/** The sequences of every Style, and those that end them. */
const BUT_LINES_AND_STYLES = new RegExp(`\\n|\\u001b\\[(?:1|2|22|31|32|33|39)m|[${OBEYED}]`, 'gu')

/** A line with controls and direction changes made visible: it may come from a token or a file. */
export function harmless(text: string): string {
  return text.replaceAll(EVERY_ONE, visible)
}

/** The same for several lines, in the styles that paintFor gave them. */
export function harmlessLines(text: string, stream: Stream, environment: NodeJS.ProcessEnv): string {
  const but = isColoured(stream, environment) ? BUT_LINES_AND_STYLES : BUT_LINES
  return text.replaceAll(but, (one) => (one === '\n' || one.length > 2 ? one : visible(one)))
}

function visible(one: string): string {
  return `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`
}

export type Entry = readonly [label: string, lines: readonly string[], style?: Style]

export function listed(entries: readonly Entry[], paint: Paint): string {
  const width = largest(entries.map(([label]) => label.length)) + 2
  return entries
    .filter(([, lines]) => lines.length > 0)
    .map(([label, lines, style]) =>
      lines
        .map((line) => (style === undefined ? harmless(line) : paint(style, harmless(line))))
        .map((line, at) => `${at === 0 ? paint('bold', label.padEnd(width)) : ' '.repeat(width)}${line}`)
        .join('\n'),
    )
    .join('\n')
}

export function printEntries(terminal: Terminal, entries: readonly Entry[]): void {
  printLines(terminal, listed(entries, paintFor(terminal.stdout, terminal.env)))
}

export function columns(rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(harmless))
  const widths = (clean[0] ?? []).map((_cell, at) => largest(clean.map((row) => (row[at] ?? '').length)))
  return clean
    .map((row) =>
      row
        .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Every text of a command for stdout, as it is. */
export function write({ stdout }: Terminal, text: string): void {
  if (stdout.listenerCount('error') === 0) stdout.on('error', endIfClosed)
  stdout.write(text)
}

/** The reader of a pipe closed it because it needs no more: exit code 1, and no message. */
function endIfClosed(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(1)
}

/** Prints one line to stdout. A terminal obeys nothing in it, whatever part a caller or an upstream chose. */
export function print(terminal: Terminal, line: string): void {
  write(terminal, `${harmless(line)}\n`)
}

const STYLES: Readonly<Record<string, Style>> = { error: 'red', warning: 'yellow' }

/** Prints one line to stderr, with the same protection. `error:` and `warning:` at its start are coloured. */
export function complain({ stderr, env }: Terminal, line: string): void {
  const paint = paintFor(stderr, env)
  const text = harmless(line).replace(/^(error|warning):/, (start, level: string) => paint(STYLES[level] ?? 'bold', start))
  stderr.write(`${text}\n`)
}

/** Prints lines to stdout. Each line was made harmless when it was built: a line end in a value would forge a line. */
export function printLines(terminal: Terminal, text: string): void {
  write(terminal, `${harmlessLines(text, terminal.stdout, terminal.env)}\n`)
}

export function printData(terminal: Terminal, value: unknown, indent = 2): void {
  write(terminal, `${terminalJson(JSON.stringify(value, null, indent))}\n`)
}
