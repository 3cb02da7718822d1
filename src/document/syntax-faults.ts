/** Explains YAML errors to an operator: one error for each line, because a single mistake causes several. */
import type { ErrorCode, LineCounter } from 'yaml'
import type { Fault } from './fault.ts'

/** Wrong indentation causes most of these errors, whatever the parser reports. */
const INDENTATION = 'check the indentation: items of one list start in the same column, and no tabs'

interface SyntaxFault {
  readonly code: ErrorCode
  readonly message: string
  readonly pos: readonly [number, number]
}

/** For errors with a cause other than indentation, by the parser's code. */
const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  DUPLICATE_KEY: 'write it once',
  MULTIPLE_DOCS: 'take out the line ---',
}

export function syntaxFaults(file: string, text: string, errors: readonly SyntaxFault[], lines: LineCounter): readonly Fault[] {
  const lineOf = ({ pos }: SyntaxFault): number => lines.linePos(pos[0]).line
  return errors
    .filter((error, at) => errors.findIndex((other) => lineOf(other) === lineOf(error)) === at)
    .map((error) => ({
      file,
      line: lineOf(error),
      path: '',
      message: `is not valid YAML: ${error.message.split('\n')[0]?.replace(/:? at line.*$/, '') ?? ''}${repeated(error, text)}`,
      hint: HINTS[error.code] ?? INDENTATION,
    }))
}

/** Empty unless the key is a plain word. */
function repeated({ code, pos }: SyntaxFault, text: string): string {
  if (code !== 'DUPLICATE_KEY') return ''
  const key = /^["']?([\w./-]+)["']?\s*:/.exec(text.slice(pos[0]))?.[1]
  return key === undefined ? '' : ` (${key})`
}
