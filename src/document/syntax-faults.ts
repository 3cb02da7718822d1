/** What is wrong with the YAML of a file, in an operator's words: one fault a line, because one slip draws several. */
import type { ErrorCode, LineCounter } from 'yaml'
import type { Fault } from './fault.ts'

/** A slip of the indentation is what most of these are, whatever the parser makes of it. */
const INDENTATION = 'check the indentation: items of one list start in the same column, and no tabs'

/** What the parser says of a fault. */
interface SyntaxFault {
  readonly code: ErrorCode
  readonly message: string
  /** From where to where in the text. */
  readonly pos: readonly [number, number]
}

/** What to do about a fault that is no slip of the indentation; by the parser's code. */
const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  DUPLICATE_KEY: 'write it once',
  MULTIPLE_DOCS: 'take out the line ---',
}

/**
 * The faults of a text that is not YAML.
 * @param errors what the parser says, in the order of the text
 */
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

/** The key that stands twice, where it is a plain word. */
function repeated({ code, pos }: SyntaxFault, text: string): string {
  if (code !== 'DUPLICATE_KEY') return ''
  const key = /^["']?([\w./-]+)["']?\s*:/.exec(text.slice(pos[0]))?.[1]
  return key === undefined ? '' : ` (${key})`
}
