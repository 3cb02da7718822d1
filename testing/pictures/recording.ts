/** Runs the demo and reads its terminal output. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A style of the terminal. */
export type Style = 'plain' | 'bold' | 'dim' | 'green' | 'yellow' | 'red'

/** Text in one style. */
export interface Span {
  readonly style: Style
  readonly text: string
}

/** A line of the terminal. */
export type TerminalLine = readonly Span[]

/** An exchange of the demo. */
export interface RecordedExchange {
  readonly who: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly says: string
}

const STYLES: Readonly<Record<string, Style>> = { 1: 'bold', 2: 'dim', 31: 'red', 32: 'green', 33: 'yellow' }

/**
 * Runs `npm run demo -- --once` without npm.
 * @returns what it prints, without the marks between the parts of a streamed answer: these differ from run to run
 * @throws if an exchange has an unexpected result
 */
export async function recordDemo(): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['examples/demo.ts', '--once'], {
    cwd: ROOT,
    env: { ...process.env, FORCE_COLOR: '1' },
  })
  return stdout.replaceAll('\x1b[2m¦\x1b[22m', '').replace(' A ¦ separates the parts of a streamed answer.', '')
}

/** The lines of a terminal's output. */
export function linesOf(output: string): readonly TerminalLine[] {
  return output.trimEnd().split('\n').map(spansOf)
}

function spansOf(line: string): TerminalLine {
  const spans: Span[] = []
  let style: Style = 'plain'
  for (const [at, part] of line.split(/\x1b\[(\d+)m/).entries()) {
    if (at % 2 === 1) style = STYLES[part] ?? 'plain'
    else if (part !== '') spans.push({ style, text: part })
  }
  return spans
}

/** The text of a line, without styles. */
export function textOf(line: TerminalLine): string {
  return line.map(({ text }) => text).join('')
}

/** The exchanges in the demo's output. */
export function exchangesOf(output: string): readonly RecordedExchange[] {
  return linesOf(output).flatMap((line) => {
    const found = /^[✓✗] (\S+) +(\S+) +(\(base path\)|\S+) +(\d{3}) {2}(.*)$/.exec(textOf(line))
    if (found === null) return []
    const [, who = '', method = '', path = '', status, says = ''] = found
    return [{ who, method, path, status: Number(status), says }]
  })
}
